"""What came of a gate, for people: from its details, as lines of text that a terminal can show."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.cli.output import plain

SHOWN = 10
"""Lost queries, and broken canaries, that are told; the details have all."""
DESCRIBED = 20
"""Changed tools of which it is told what changed; of the others only that they did."""
WIDTH = 70
"""Characters of a query, or of what a field was and is."""
KINDS = {"new": "is new", "removed": "is gone"}

Values = Mapping[str, Any]


def measured_line(details: Values) -> str:
    """What was measured, in one line, for a release that passed."""
    chosen, rules = details["chosen"], details["rules"]
    judged = [one for one in rules if one["passed"] is not None]
    said = [f"{len(judged)} of {_count(len(rules), 'rule')} hold"] if rules else []
    if details["canaries"]["asked"]:
        said.append(_count(details["canaries"]["asked"], "canary", "canaries") + " found")
    if details["live"] and not details["live_trouble"]:
        said.append(
            f"{len(details['lost'])} queries lost and {details['won']['count']} won against "
            f"{details['live']}"
        )
    more = f"; {', '.join(said)}" if said else ""
    return plain(
        f"Golden queries: {chosen['measure']} {_interval(chosen)} over {details['queries']} by "
        f"strategy {chosen['strategy']} in index "
        f"{chosen['index']}{more}."
    )


def held_headline(details: Values, channel: str) -> str:
    """That a release is held, why, and what to do next, in a few lines."""
    lines = [
        *_rule_lines(details, channel),
        *_canary_lines(details),
        *_lost_lines(details),
        _next_step(details, channel),
    ]
    return "\n".join(map(plain, lines))


def held_lines(details: Values, channel: str) -> list[str]:
    """The same with the lost queries, the tools that they went to, and what changed in those."""
    lines = [
        *_rule_lines(details, channel),
        *_canary_lines(details),
        *_query_lines(details["broken"], details["canary_k"]),
        *_lost_lines(details),
        *_query_lines(details["lost"], details["k"]),
        *_change_lines(details),
        *(f"  not measured: {one}" for one in details["not_measured"]),
        _next_step(details, channel),
    ]
    return [plain(line) for line in lines]


def _rule_lines(details: Values, channel: str) -> list[str]:
    stays = f"stays at release {details['live']}" if details["live"] else "names no release yet"
    return [
        f"Release {details['release']} did not pass its gate and is held; '{channel}' {stays}.",
        *(
            f"  rule failed: {one['rule']}: {one['says']}"
            for one in details["rules"]
            if one["passed"] is False
        ),
    ]


def _canary_lines(details: Values) -> list[str]:
    lost, asked = details["canaries"]["lost"], details["canaries"]["asked"]
    if not lost:
        return []
    return [
        f"  {lost} of {_count(asked, 'canary', 'canaries')} broke: not all their tools are among "
        f"the first {details['canary_k']}"
    ]


def _lost_lines(details: Values) -> list[str]:
    lost, won = len(details["lost"]), details["won"]["count"]
    if not lost:
        return []
    return [
        f"  {_count(lost, 'query', 'queries')} found all their tools among the first "
        f"{details['k']} in live {details['live']} and "
        f"do not now; {won} the other way round"
    ]


def _query_lines(lost: Sequence[Values], k: int) -> list[str]:
    """Each lost query: which of its tools are lost, with their ranks before and now, and what
    stands in front instead.
    """
    lines: list[str] = []
    for one in lost[:SHOWN]:
        gone = [name for name, rank in one["now"].items() if rank is None or rank > k]
        ranks = ", ".join(f"{name} ({_moved(one, name)})" for name in gone)
        others = (
            f"; {_count(len(one['now']) - len(gone), 'other')} found"
            if len(one["now"]) > len(gone)
            else ""
        )
        lines.append(f'    "{_short(one["query"])}" needs {ranks}{others}')
        if one["instead"]:
            lines.append(f"      in front now: {', '.join(one['instead'])}")
    if len(lost) > SHOWN:
        lines.append(f"    ... and {len(lost) - SHOWN} more; --json lists all")
    return lines


def _moved(lost: Values, name: str) -> str:
    now = _rank(lost["now"][name])
    return f"{_rank(lost['before'][name])} -> {now}" if name in lost["before"] else now


def _rank(rank: int | None) -> str:
    return "not found" if rank is None else f"rank {rank}"


def _change_lines(details: Values) -> list[str]:
    changes, fields = details["changes"], details["changed"]
    if changes["against"] is None:
        return []
    counts = ", ".join(f"{len(changes[kind])} {kind}" for kind in ("new", "changed", "removed"))
    lines = [f"  tools against live {changes['against']}: {counts}"]
    for name, parts in changes["indexes"].items():
        said = ", ".join(
            f"{part} {_short(before)} -> {_short(after)}" for part, (before, after) in parts.items()
        )
        lines.append(f"  index {name} is made otherwise: {said}")
    if not (details["lost"] or details["broken"]):
        return lines
    if not fields:
        return [*lines, "  none of them is needed by these queries, or stands in front of what is"]
    lines.append(
        f"  of them {len(fields)} are needed by these queries, or stand in front of what is:"
    )
    for one in fields[:DESCRIBED]:
        lines += _tool_lines(one)
    if rest := [one["tool"] for one in fields[DESCRIBED:]]:
        lines.append(f"    also: {', '.join(rest)}")
    return lines


def _tool_lines(changed: Values) -> list[str]:
    kind = KINDS.get(changed["change"], f"changed in {', '.join(changed['fields'])}")
    lines = [f"    {changed['tool']} {kind}"]
    for name, pair in changed["fields"].items():
        parts = [
            f'{when} "{_short(pair[when])}"'
            for when in ("before", "after")
            if pair[when] is not None
        ]
        lines.append(f"      {name}: {', '.join(parts)}")
    return lines


def _next_step(details: Values, channel: str) -> str:
    where = "" if channel == "live" else f" --channel {channel}"
    return (
        "Next: mend the source and build again; or change [gate] and build again; or take the "
        "release as it is: "
        f"pegboard promote {details['release']}{where}"
    )


def _interval(values: Values) -> str:
    return f"{values['value']:.3f} [{values['low']:.3f}, {values['high']:.3f}]"


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def _count(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"
