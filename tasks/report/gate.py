"""The gate of a release in its report: verdict, decision and measurements."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.errors import StoreError
from pegboard.formatting import count_text
from pegboard.store.gate import rules_text
from pegboard.store.releases import Channel, Release
from tasks.gate.results import read_details
from tasks.report.excerpts import first_rows

MAX_QUERIES = 100
"""Largest number of queries shown of each list: lost, broken, worst and unknown."""
MAX_GROUPS = 60
"""Largest number of groups of queries that are shown."""
NO_GATE = "Not measured: there were no golden queries. Name a file of them under [golden]."
NO_DETAILS = "What the gate measured was pruned from the lake."
GATE_KEYS = ("passed", "at", "queries", "rules", "canaries", "chosen", "live", "details")


def verdict_data(
    gate: Mapping[str, Any],
    changes: Mapping[str, Any],
    channels: Sequence[str],
    captured: Mapping[str, Any],
    unapproved: int = 0,
) -> dict[str, Any]:
    """Return the headline with its state and reason.

    The state is `passed`, `held`, `failed` for a release that is live all the same, `measured`
    (golden queries without rules and canaries) or `none`.

    Args:
        captured: the queries that suspicious tools captured.
        unapproved: number of new and changed tools that wait for approval.
    """
    is_first = "counts" in changes and changes.get("against") is None
    changed = _changed_tools(changes, is_first=is_first)
    live = f"Live on {', '.join(channels)}" if channels else "Not live"
    live = "Live" if list(channels) == ["live"] else live
    if is_first and channels:
        live = f"First release, {live[0].lower()}{live[1:]}"
    waiting = ""
    if unapproved and not channels:
        waiting = f"{count_text(unapproved, 'tool')} to approve"
        if gate.get("passed") is not False:
            says = _sentences(waiting, changed)
            return {"state": "held", "title": "Held, not live", "says": says}
    if gate.get("passed") is None:
        reason = "Published without golden queries: nothing was measured"
        return {"state": "none", "title": live, "says": _sentences(reason, changed)}
    chosen = gate.get("chosen") or {}
    value = f"{chosen['measure']} {chosen['value']:.3f}" if chosen.get("value") is not None else ""
    rules = list(gate.get("rules") or ())
    canaries = gate.get("canaries") or {}
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
        state = "failed" if channels else "held"
        return {"state": state, "title": title, "says": _sentences(_joined(reasons), value)}
    canaries_text = f"{count} found" if canaries.get("count") else ""
    if not (successes := _joined([rules_text(rules) if rules else "", canaries_text])):
        says = _sentences("Measured; there are no rules to pass", value, changed)
        return {"state": "measured", "title": live, "says": says}
    return {"state": "passed", "title": live, "says": _sentences(successes, value, changed)}


def _joined(parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part)


def _sentences(*parts: str) -> str:
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts if part)


def _captured_too_many(captured: Mapping[str, Any]) -> bool:
    return captured["most"] is not None and captured["total"] > captured["most"]


def _changed_tools(changes: Mapping[str, Any], *, is_first: bool) -> str:
    counts = changes.get("counts")
    if not counts:
        return ""
    if is_first:
        return count_text(counts["added"], "tool")
    words = (("added", "new"), ("changed", "changed"), ("removed", "removed"))
    parts = [f"{counts[name]:,} {word}" for name, word in words if counts.get(name)]
    return f"{', '.join(parts)} tools" if parts else "no tool changed"


def gate_data(uri: str, release: Release) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the gate of the manifest, and its measures, groups and queries."""
    gate: Mapping[str, Any] | None = release.manifest.get("gate")
    if not gate:
        return {"missing": NO_GATE}, _measurements({}, NO_GATE)
    try:
        details = read_details(uri, release)
    except (StoreError, ValueError):
        details = None
    missing = None if details else NO_DETAILS
    return {key: gate.get(key) for key in GATE_KEYS}, _measurements(details or {}, missing)


def _measurements(details: Mapping[str, Any], missing: str | None) -> dict[str, Any]:
    won: Mapping[str, Any] = details.get("won") or {}
    captured: Mapping[str, Any] = details.get("captured") or {}
    lists = ("lost", "broken", "worst", "unknown")
    return {
        "measures": {
            "missing": missing,
            "rows": list(details.get("measures", ())),
            "live": list(details.get("live_measures", ())),
            "live_trouble": details.get("live_trouble"),
        },
        "groups": first_rows(_groups(details.get("groups", ())), MAX_GROUPS),
        "queries": {
            "k": details.get("k"),
            "canary_k": details.get("canary_k"),
            "won": {"total": won.get("count", 0), "shown": list(won.get("first", ()))},
            "captured": {
                "total": captured.get("count", 0),
                "of": captured.get("of"),
                "most": captured.get("most"),
                "shown": list(captured.get("queries", ())),
            },
            **{name: first_rows(details.get(name, ()), MAX_QUERIES) for name in lists},
        },
    }


def _groups(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows by group of queries: kinds before catalogs, larger groups first."""
    by_group: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by = "kind" if "kind" in row else "catalog"
        values = {name: row[name] for name in ("measure", "value", "low", "high", "n")}
        by_group.setdefault((by, str(row[by])), []).append(values)
    groups = [
        {"by": by, "name": name, "n": values[0]["n"], "rows": values}
        for (by, name), values in by_group.items()
    ]
    return sorted(groups, key=lambda group: (group["by"] != "kind", -group["n"], group["name"]))


def channels_of(release: Release, channels: Sequence[Channel]) -> list[str]:
    """Return the names of the channels that point at a release."""
    return [channel.name for channel in channels if channel.release == release.id]
