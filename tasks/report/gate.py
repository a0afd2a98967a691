"""The gate of a release in its report: what was decided, what was measured, and earlier gates."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.cli.tables import count_text
from pegboard.errors import StoreError
from pegboard.store.releases import Channel, Release
from tasks.gate.details import read_details
from tasks.report.excerpts import first_rows

MAX_RELEASES = 60
MAX_QUERIES = 100
MAX_GROUPS = 60
MAX_SYSTEMS = 40
"""Systems, each a strategy in an index, whose measures are shown."""
NO_GATE = (
    "This release was published without golden queries, so nothing is known of how well it finds "
    "tools. Name a file of them under "
    "[golden], and what has to hold for them under [gate] rules; the next build measures and "
    "decides."
)
NO_DETAILS = (
    "What the gate measured is no longer in the lake; its verdict stands in the release itself."
)
GATE_KEYS = ("passed", "at", "queries", "rules", "canaries", "chosen", "live", "details")


def gate_data(uri: str, release: Release) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the gate as the manifest has it; and its measures, groups, curve and queries."""
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
    rows: list[dict[str, Any]] = list(details.get("measures", ()))
    systems = list(dict.fromkeys((row["strategy"], row["index"]) for row in rows))
    shown = set(systems[:MAX_SYSTEMS])
    won: Mapping[str, Any] = details.get("won") or {}
    lists = ("lost", "broken", "worst", "changed", "unknown")
    return {
        "measures": {
            "missing": missing,
            "systems": len(systems),
            "rows": [row for row in rows if (row["strategy"], row["index"]) in shown],
            "live": list(details.get("live_measures", ())),
            "live_trouble": details.get("live_trouble"),
            "not_measured": list(details.get("not_measured", ())),
        },
        "groups": first_rows(_groups(details.get("groups", ())), MAX_GROUPS),
        "curve": list(details.get("curve", ())),
        "queries": {
            "k": details.get("k"),
            "canary_k": details.get("canary_k"),
            "won": {"total": won.get("count", 0), "shown": list(won.get("first", ()))},
            **{name: first_rows(details.get(name, ()), MAX_QUERIES) for name in lists},
        },
    }


def _groups(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows by group of queries: kinds before catalogs, those with most queries first."""
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


def history_data(
    releases: Sequence[Release], channels: Sequence[Channel], release: Release
) -> dict[str, Any]:
    """Return the gates of a board's releases, newest first."""
    rows = [_history_row(other, channels) | {"this": other.id == release.id} for other in releases]
    return first_rows(rows, MAX_RELEASES)


def _history_row(release: Release, channels: Sequence[Channel]) -> dict[str, Any]:
    gate: Mapping[str, Any] = release.manifest.get("gate") or {}
    chosen: Mapping[str, Any] = gate.get("chosen") or {}
    shown = ("strategy", "index", "measure", "value", "low", "high")
    return {
        "release": release.id,
        "created_at": release.created_at.isoformat(timespec="seconds"),
        "channels": channels_of(release, channels),
        "tools": release.manifest.get("counts", {}).get("tools"),
        "passed": gate.get("passed"),
        "queries": gate.get("queries"),
        "failed": [rule["rule"] for rule in gate.get("rules") or () if rule["passed"] is False],
        **{name: chosen.get(name) for name in shown},
    }


def channels_of(release: Release, channels: Sequence[Channel]) -> list[str]:
    """Return the names of the channels that point at a release."""
    return [channel.name for channel in channels if channel.release == release.id]


def verdict_data(
    gate: Mapping[str, Any], changes: Mapping[str, Any], channels: Sequence[str]
) -> dict[str, Any]:
    """Return the headline with its state and reason.

    The state is `passed`, `held`, `measured` (golden queries without rules and canaries) or `none`.
    """
    changed = _changed_tools(changes["counts"]) if changes.get("counts") else ""
    if gate.get("passed") is None:
        reason = f"Nothing was measured before it was published. {changed}"
        return {"state": "none", "title": "No gate", "says": reason.strip()}
    chosen = gate.get("chosen") or {}
    measured = chosen.get("value") is not None
    value = f"{chosen['measure']} is {chosen['value']:.3f}. " if measured else ""
    if not gate["passed"]:
        by_hand = f"Promoted by hand: {', '.join(channels)}." if channels else ""
        reason = f"{_failures(gate)}. {value}{by_hand or 'No channel moved to it.'}"
        return {"state": "held", "title": "Held back by the gate", "says": reason}
    successes = _successes(gate)
    if not successes:
        reason = f"{value}No rule has to hold. {changed}"
        return {"state": "measured", "title": "Measured, not gated", "says": reason.strip()}
    reason = f"{_capital(successes)}. {value}{changed}"
    return {"state": "passed", "title": "Passed the gate", "says": reason.strip()}


def _failures(gate: Mapping[str, Any]) -> str:
    rules, canaries = list(gate.get("rules") or ()), gate.get("canaries") or {}
    failed, missed = sum(rule["passed"] is False for rule in rules), canaries.get("missed")
    reasons = [f"{failed} of {count_text(len(rules), 'rule')} failed"] if failed else []
    if missed:
        reasons.append(f"{missed} of {count_text(canaries['count'], 'canary', 'canaries')} broke")
    return ", ".join(reasons)


def _successes(gate: Mapping[str, Any]) -> str:
    rules, canaries = list(gate.get("rules") or ()), gate.get("canaries") or {}
    judged = sum(rule["passed"] is not None for rule in rules)
    reasons = [f"{count_text(judged, 'rule')} held"] if judged else []
    if judged < len(rules):
        reasons.append(f"{count_text(len(rules) - judged, 'rule')} not judged")
    if canaries.get("count"):
        reasons.append(f"{count_text(canaries['count'], 'canary', 'canaries')} found")
    return ", ".join(reasons)


def _changed_tools(counts: Mapping[str, Any]) -> str:
    words = (("added", "new"), ("changed", "changed"), ("removed", "removed"))
    parts = [f"{counts[name]:,} {word}" for name, word in words if counts.get(name)]
    return _capital(f"{', '.join(parts)} tools" if parts else "no tool changed") + "."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
