"""Terminal messages about the decision of a gate, from its details."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.formatting import count_text, interval_text, list_text, plain
from pegboard.store.diff import FieldChange, field_lines
from pegboard.store.gate import rules_text
from tasks.safety.changed import unapproved

MAX_QUERIES = 10
"""Maximum lost queries and broken canaries that a message lists; the details have all."""
MAX_DESCRIBED = 20
"""Maximum changed tools that a message lists; the others are counted."""
MAX_TEXT = 70
"""Characters of a query that a message shows."""

Details = Mapping[str, Any]


def measured_line(details: Details) -> str:
    """Return the one-line summary of a release that passed."""
    chosen = details["chosen"]
    rules = details["rules"]
    parts = [rules_text(rules)] if rules else []
    if details["canaries"]["count"]:
        parts.append(count_text(details["canaries"]["count"], "canary", "canaries") + " found")
    if details["live"] and not details["live_trouble"]:
        lost_count = count_text(len(details["lost"]), "query", "queries")
        won_count = details["won"]["count"]
        parts.append(f"{lost_count} lost and {won_count} won against {details['live']}")
    return plain(
        f"Golden queries: {chosen['measure']} {interval_text(chosen)} over {details['queries']} by "
        f"strategy {chosen['strategy']} in index {chosen['index']}"
        f"{'; ' if parts else ''}{', '.join(parts)}."
    )


def held_run_lines(outcome: Mapping[str, Any]) -> list[str]:
    """Return why the release of a run (see `flows.reindex.reindex`) is held, and the next steps;
    details are indented by four blanks.
    """
    details = outcome["gate"]
    channel = outcome["plan"]["channel"]
    waiting = unapproved(outcome["suspicious"])
    lines: list[str] = []
    if details is not None and not details["passed"]:
        lines = held_lines(details, channel)
    return [*lines, *_unapproved_lines(outcome, waiting)] if waiting else lines


def _unapproved_lines(outcome: Mapping[str, Any], waiting: Mapping[str, Details]) -> list[str]:
    release = outcome["release"]
    plan = outcome["plan"]
    rows = (row for tool in waiting for row in outcome["suspicious"][tool])
    locked = any("change" in row for row in rows)
    stays = f"stays at release {plan['live']}" if plan["live"] else "names no release yet"
    of = "" if locked else ' of catalogs with trust = "limited"'
    where = " in the lock file" if locked else ""
    lines = [
        f"Release {release} is held; '{plan['channel']}' {stays}: "
        f"{count_text(len(waiting), 'new or changed tool')}{of} "
        f"{'waits' if len(waiting) == 1 else 'wait'} for approval{where}.",
        *definition_lines(waiting),
        _approve(release, plan, locked=locked),
    ]
    return [plain(line) for line in lines]


def definition_lines(tools: Mapping[str, Details]) -> list[str]:
    """Return the old and the new text of the changed fields of tools, by the ids of these; new
    tools come last, with their descriptions.
    """
    lines: list[str] = []
    ids = sorted(tools, key=lambda tool: "name" in tools[tool])
    for tool in ids[:MAX_DESCRIBED]:
        fields = tools[tool]
        is_new = "name" in fields
        lines.append(f"  {tool}{' is new' if is_new else ''}")
        for name, change in fields.items():
            if not is_new or name == "description":
                texts = FieldChange(change["before"], change["after"])
                lines += [f"    {line}" for line in field_lines(name, texts)]
    if others := ids[MAX_DESCRIBED:]:
        lines.append(f"  also: {list_text(others, MAX_DESCRIBED)}")
    return lines


def _approve(release: str, plan: Mapping[str, Any], *, locked: bool) -> str:
    option = "" if plan["channel"] == "live" else f" --channel {plan['channel']}"
    diff = f", whole with `pegboard releases diff {plan['live']} {release} --texts`"
    lock = "run `pegboard lock`, commit its file and build again, or for this release alone: "
    return (
        f"Next: read the texts{diff if plan['live'] else ''}; approve them: "
        f"{lock if locked else ''}pegboard promote {release}{option}; or skip the tools, or give "
        f"descriptions of your own, under [overrides]."
    )


def held_lines(details: Details, channel: str) -> list[str]:
    """Return why a release is held, the lost queries with the tools in front of theirs, what
    changed, and the next steps.
    """
    lines = [
        *_rule_lines(details, channel),
        *_canary_lines(details),
        *_query_lines(details["broken"], details["canary_k"]),
        *_captured_lines(details),
        *_lost_lines(details),
        *_query_lines(details["lost"], details["k"]),
        *_change_lines(details),
        _next_step(details, channel),
    ]
    return [plain(line) for line in lines]


def _rule_lines(details: Details, channel: str) -> list[str]:
    stays = f"stays at release {details['live']}" if details["live"] else "names no release yet"
    failed = [rule for rule in details["rules"] if rule["passed"] is False]
    return [
        f"Release {details['release']} did not pass its gate and is held; '{channel}' {stays}.",
        *(f"  rule failed: {rule['rule']}: {rule['reason']}" for rule in failed),
    ]


def _canary_lines(details: Details) -> list[str]:
    canaries = details["canaries"]
    if not canaries["missed"]:
        return []
    return [
        f"  {canaries['missed']} of {count_text(canaries['count'], 'canary', 'canaries')} broke: "
        f"not all their tools are among the first {details['canary_k']}"
    ]


def _captured_lines(details: Details) -> list[str]:
    captured = details.get("captured") or {"count": 0, "most": None}
    if captured["most"] is None or captured["count"] <= captured["most"]:
        return []
    lines = [
        f"  {captured['count']} of {captured['of']} queries are captured: their first place was "
        f"taken by a suspicious tool, or by a new or changed one of another agent; "
        f"{captured['most']} may be"
    ]
    for query in captured["queries"][:MAX_QUERIES]:
        flags = f" ({', '.join(query['flags'])})" if query["flags"] else ""
        live_tool = f", before: {query['before']}" if query["before"] else ""
        lines.append(f'    "{_short(query["query"])}" now: {query["tool"]}{flags}{live_tool}')
    return lines


def _lost_lines(details: Details) -> list[str]:
    if not details["lost"]:
        return []
    return [
        f"  {count_text(len(details['lost']), 'query', 'queries')} found all their tools among the "
        f"first {details['k']} in live {details['live']} and do not now; "
        f"{details['won']['count']} the other way round"
    ]


def _query_lines(queries: Sequence[Details], k: int) -> list[str]:
    """Each query: which of its tools are missing, with their ranks, and what stands in front."""
    lines: list[str] = []
    for query in queries[:MAX_QUERIES]:
        missing = [name for name, rank in query["now"].items() if rank is None or rank > k]
        ranks = ", ".join(f"{name} ({_rank_change(query, name)})" for name in missing)
        others = len(query["now"]) - len(missing)
        more = f"; {count_text(others, 'other')} found" if others else ""
        lines.append(f'    "{_short(query["query"])}" needs {ranks}{more}')
        if query["instead"]:
            lines.append(f"      in front now: {', '.join(query['instead'])}")
    if len(queries) > MAX_QUERIES:
        lines.append(f"    ... and {len(queries) - MAX_QUERIES} more; --json lists all")
    return lines


def _rank_change(query: Details, name: str) -> str:
    now = _rank(query["now"][name])
    return f"{_rank(query['before'][name])} -> {now}" if name in query["before"] else now


def _rank(rank: int | None) -> str:
    return "not found" if rank is None else f"rank {rank}"


def _change_lines(details: Details) -> list[str]:
    changes = details["changes"]
    live = changes["against"]
    if live is None:
        return []
    counts = ", ".join(f"{len(changes[kind])} {kind}" for kind in ("new", "changed", "removed"))
    lines = [f"  tools against live {live}: {counts}"]
    queries = [*details["lost"], *details["broken"]]
    tools = dict.fromkeys(tool for query in queries for tool in query["changed"])
    kinds = {tool: kind for kind in ("new", "changed", "removed") for tool in changes[kind]}
    if tools:
        named = list_text([f"{tool} ({kinds[tool]})" for tool in tools], MAX_DESCRIBED)
        lines.append(f"  needed by these queries, or in front: {named}")
        diff = f"pegboard releases diff {live} {details['release']} --texts"
        lines.append(f"  old and new texts: {diff}")
    elif queries:
        lines.append("  none of them is needed by these queries, or stands in front")
    return lines


def _next_step(details: Details, channel: str) -> str:
    option = "" if channel == "live" else f" --channel {channel}"
    return (
        f"Next: correct the source and build again; or change [gate] and build again; or accept "
        f"the release as it is: pegboard promote {details['release']}{option}"
    )


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."
