"""The gate of a release in its report: what was decided, and what was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.errors import StoreError
from pegboard.store.releases import Channel, Release
from tasks.gate.results import read_details
from tasks.report.excerpts import first_rows

MAX_QUERIES = 100
MAX_GROUPS = 60
NO_GATE = "Not measured: there were no golden queries. Name a file of them under [golden]."
NO_DETAILS = "What the gate measured was pruned from the lake."
GATE_KEYS = ("passed", "at", "queries", "rules", "canaries", "chosen", "live", "details")


def gate_data(uri: str, release: Release) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the gate as the manifest has it; and its measures, groups and queries."""
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
    lists = ("lost", "broken", "worst", "changed", "unknown")
    return {
        "bounds": list(details.get("bounds", ())),
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


def channels_of(release: Release, channels: Sequence[Channel]) -> list[str]:
    """Return the names of the channels that point at a release."""
    return [channel.name for channel in channels if channel.release == release.id]
