"""The verdict on a release, and the checks of whoever decides whether it may be live."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.cli.gate import rules_text
from pegboard.cli.tables import count_text
from pegboard.encoders import UNDERSTOOD

Check = dict[str, str]
"""`name`, `state`, `says`, and the `section` of the page. A state is `good`, `bad` (why the release
is held), `look` (read it before promoting) or `none` (not measured)."""


def verdict_data(
    gate: Mapping[str, Any],
    changes: Mapping[str, Any],
    channels: Sequence[str],
    captured: Mapping[str, Any],
    unapproved: int = 0,
) -> dict[str, Any]:
    """Return the headline with its state and reason.

    The state is `passed`, `held`, `measured` (golden queries without rules and canaries) or `none`.

    Args:
        captured: the queries that suspicious tools captured.
        unapproved: new and changed tools that wait for approval.
    """
    first = "counts" in changes and changes.get("against") is None
    changed = _changed_tools(changes, first=first)
    live = f"Live on {', '.join(channels)}" if channels else "Not live"
    live = "Live" if list(channels) == ["live"] else live
    if first and channels:
        live = f"First release, {live[0].lower()}{live[1:]}"
    waiting = ""
    if unapproved and not channels:
        waiting = f"{count_text(unapproved, 'tool')} to approve"
        if gate.get("passed") is not False:
            says = _sentences(waiting, changed)
            return {"state": "held", "title": "Held, not live", "says": says}
    if gate.get("passed") is None:
        nothing = "Published without golden queries: nothing was measured"
        return {"state": "none", "title": live, "says": _sentences(nothing, changed)}
    chosen = gate.get("chosen") or {}
    value = f"{chosen['measure']} {chosen['value']:.3f}" if chosen.get("value") is not None else ""
    rules, canaries = list(gate.get("rules") or ()), gate.get("canaries") or {}
    count = count_text(canaries.get("count") or 0, "canary", "canaries")
    if not gate["passed"]:
        failed = any(rule["passed"] is False for rule in rules)
        too_many = f"{count_text(captured['total'], 'query', 'queries')} captured"
        reasons = [
            rules_text(rules) if failed else "",
            f"{canaries['missed']} of {count} broke" if canaries.get("missed") else "",
            too_many if _captured_too_many(captured) else "",
            waiting,
        ]
        title = f"{live}, by hand" if channels else "Held, not live"
        return {"state": "held", "title": title, "says": _sentences(_joined(reasons), value)}
    found = f"{count} found" if canaries.get("count") else ""
    if not (successes := _joined([rules_text(rules) if rules else "", found])):
        says = _sentences("Measured; there are no rules to pass", value, changed)
        return {"state": "measured", "title": live, "says": says}
    return {"state": "passed", "title": live, "says": _sentences(successes, value, changed)}


def _joined(parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part)


def _sentences(*parts: str) -> str:
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts if part)


def _captured_too_many(captured: Mapping[str, Any]) -> bool:
    return captured["most"] is not None and captured["total"] > captured["most"]


def _changed_tools(changes: Mapping[str, Any], *, first: bool) -> str:
    counts = changes.get("counts")
    if not counts:
        return ""
    if first:
        return count_text(counts["added"], "tool")
    words = (("added", "new"), ("changed", "changed"), ("removed", "removed"))
    parts = [f"{counts[name]:,} {word}" for name, word in words if counts.get(name)]
    return f"{', '.join(parts)} tools" if parts else "no tool changed"


def checks_data(data: Mapping[str, Any]) -> list[Check]:
    """Return the checks in the order in which the page shows what they are about.

    Args:
        data: the other parts of the report.
    """
    return [
        *_changes_check(data["changes"]),
        *_gate_checks(data["gate"], data["queries"]),
        *_safety_checks(data["flagged"], data["suspicious"], data["queries"]["captured"]),
        *_sources_checks(data["sources"], data["rejected"]),
        *_languages_check(data["indexes"]),
        *_twins_check(data["twins"]),
    ]


def _changes_check(changes: Mapping[str, Any]) -> list[Check]:
    counts = changes.get("counts")
    if not counts or changes.get("against") is None:
        return []
    says = _changed_tools(changes, first=False)
    state = "look" if any(counts.get(name) for name in ("changed", "removed")) else "good"
    return [_check("Changes", state, f"{says} since release {changes['against']}", "changes")]


def _gate_checks(gate: Mapping[str, Any], queries: Mapping[str, Any]) -> list[Check]:
    if gate.get("passed") is None:
        says = "not measured: name golden queries under [golden] or [gate]"
        return [_check("Measures", "none", says, "measures")]
    rules, canaries = list(gate.get("rules") or ()), gate.get("canaries") or {}
    failed = [rule for rule in rules if rule["passed"] is False]
    if failed:
        says = f"{rules_text(rules)}: {failed[0]['rule']}"
        checks = [_check("Measures", "bad", says, "measures")]
    elif rules:
        held = any(rule["passed"] for rule in rules)
        checks = [_check("Measures", "good" if held else "none", rules_text(rules), "measures")]
    else:
        checks = [_check("Measures", "none", "measured, without rules", "measures")]
    if canaries.get("count"):
        missed, count = canaries["missed"], count_text(canaries["count"], "canary", "canaries")
        says = f"{missed} of {count} broke" if missed else f"all of {count} found"
        checks.append(_check("Canaries", "bad" if missed else "good", says, "queries"))
    if gate.get("live"):
        lost, won = queries["lost"]["total"], queries["won"]["total"]
        says = f"{lost} lost and {won} won against live {gate['live']}"
        checks.append(_check("Queries", "look" if lost else "good", says, "queries"))
    return checks


def _safety_checks(
    flagged: Mapping[str, Any], suspicious: Mapping[str, Any], captured: Mapping[str, Any]
) -> list[Check]:
    checks: list[Check] = []
    if captured["total"]:
        says = f"{count_text(captured['total'], 'query', 'queries')} captured by other tools"
        state = "bad" if _captured_too_many(captured) else "look"
        checks.append(_check("Captured", state, says, "safety"))
    if flagged.get("total") is None:
        return checks
    parts = [f"{count_text(flagged['total'], 'tool')} flagged"] if flagged["total"] else []
    if suspicious["total"]:
        parts.append(f"{count_text(suspicious['total'], 'tool')} suspicious or to approve")
    says = ", ".join(parts) or "no tool is flagged"
    return [*checks, _check("Safety", "look" if parts else "good", says, "safety")]


def _sources_checks(
    sources: Sequence[Mapping[str, Any]], rejected: Mapping[str, Any]
) -> list[Check]:
    checks: list[Check] = []
    if sources:
        failed = [row["catalog"] for row in sources if row["problems"] or row["kept"]]
        says = f"failed: {', '.join(failed)}" if failed else f"all of {len(sources)} listed"
        checks.append(_check("Sources", "look" if failed else "good", says, "sources"))
    if total := rejected["total"]:
        says = f"{count_text(total, 'record')} left out"
        checks.append(_check("Records", "look", says, "sources"))
    return checks


def _languages_check(indexes: Sequence[Mapping[str, Any]]) -> list[Check]:
    foreign = [
        f"{1 - row['understood']:.0%} of index {row['name']}"
        for row in indexes
        if row.get("understood") is not None and row["understood"] < UNDERSTOOD
    ]
    if not foreign:
        return []
    says = f"{', '.join(foreign)} in languages that its encoder does not know"
    return [_check("Languages", "look", says, "release")]


def _twins_check(twins: Mapping[str, Any]) -> list[Check]:
    if not (total := twins.get("total")):
        return []
    says = f"{count_text(total, 'pair')} of tools of different agents do the same"
    return [_check("Twins", "look", says, "collisions")]


def _check(name: str, state: str, says: str, section: str) -> Check:
    return {"name": name, "state": state, "says": says, "section": section}
