"""What a gate said of a release and of those before it, and what it measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.errors import StoreError
from pegboard.store.releases import Channel, Release
from tasks.gate.details import read_details
from tasks.report.compared import listed

RELEASES = 60
QUERIES = 100
GROUPS = 60
SYSTEMS = 40
"""Configurations, strategies in indexes, whose measures are shown."""
NO_GATE = (
    "This release was published without golden queries, so nothing is known of how well it finds "
    "tools. Name a file of them under "
    "[golden], and what has to hold for them under [gate] rules; the next build measures and "
    "decides."
)
GONE = "What the gate measured is no longer in the lake; its verdict stands in the release itself."


def gate_data(uri: str, release: Release) -> tuple[dict[str, Any], dict[str, Any]]:
    """The gate as the manifest has it, and beside it what it measured: measures, groups, curve, and
    the queries one by one.
    """
    said: Mapping[str, Any] | None = release.manifest.get("gate")
    if not said:
        return {"missing": NO_GATE}, _measured({}, NO_GATE)
    try:
        details = read_details(uri, release)
    except (StoreError, ValueError):
        details = None
    gate = {
        name: said.get(name)
        for name in ("passed", "at", "queries", "rules", "canaries", "chosen", "live", "details")
    }
    return gate, _measured(details or {}, None if details else GONE)


def _measured(details: Mapping[str, Any], missing: str | None) -> dict[str, Any]:
    rows: list[dict[str, Any]] = list(details.get("measures", ()))
    systems = list(dict.fromkeys((row["strategy"], row["index"]) for row in rows))
    kept = set(systems[:SYSTEMS])
    won: Mapping[str, Any] = details.get("won") or {}
    return {
        "measures": {
            "missing": missing,
            "systems": len(systems),
            "rows": [row for row in rows if (row["strategy"], row["index"]) in kept],
            "live": list(details.get("live_measures", ())),
            "live_trouble": details.get("live_trouble"),
            "not_measured": list(details.get("not_measured", ())),
        },
        "groups": listed(_by_group(details.get("groups", ())), GROUPS),
        "curve": list(details.get("curve", ())),
        "queries": {
            "k": details.get("k"),
            "canary_k": details.get("canary_k"),
            "lost": listed(details.get("lost", ()), QUERIES),
            "broken": listed(details.get("broken", ()), QUERIES),
            "won": {"total": won.get("count", 0), "shown": list(won.get("first", ()))},
            "worst": listed(details.get("worst", ()), QUERIES),
            "changed": listed(details.get("changed", ()), QUERIES),
            "unknown": listed(details.get("unknown", ()), QUERIES),
        },
    }


def _by_group(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of each group of queries together, those with most queries first."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by = "kind" if "kind" in row else "catalog"
        found.setdefault((by, str(row[by])), []).append(
            {name: row[name] for name in ("measure", "value", "low", "high", "n")}
        )
    groups = [
        {"by": by, "name": name, "n": rows[0]["n"], "rows": rows}
        for (by, name), rows in found.items()
    ]
    return sorted(groups, key=lambda one: (one["by"] != "kind", -one["n"], one["name"]))


def history_data(
    every: Sequence[Release], channels: Sequence[Channel], release: Release
) -> dict[str, Any]:
    """The gates of a board's releases, newest first."""
    return listed([_past(one, channels, one.id == release.id) for one in every], RELEASES)


def _past(release: Release, channels: Sequence[Channel], this: bool) -> dict[str, Any]:
    gate: Mapping[str, Any] = release.manifest.get("gate") or {}
    chosen: Mapping[str, Any] = gate.get("chosen") or {}
    return {
        "release": release.id,
        "this": this,
        "created_at": release.created_at.isoformat(timespec="seconds"),
        "channels": [one.name for one in channels if one.release == release.id],
        "tools": release.manifest.get("counts", {}).get("tools"),
        "passed": gate.get("passed"),
        "queries": gate.get("queries"),
        "failed": [rule["rule"] for rule in gate.get("rules") or () if rule["passed"] is False],
        "strategy": chosen.get("strategy"),
        "index": chosen.get("index"),
        "measure": chosen.get("measure"),
        **{name: chosen.get(name) for name in ("value", "low", "high")},
    }


def verdict_data(
    gate: Mapping[str, Any], changes: Mapping[str, Any], channels: Sequence[str]
) -> dict[str, Any]:
    """The headline: `passed`, `held`, `measured` (golden queries, but nothing that has to hold) or
    `none`; and why, in words.
    """
    what = _capital(_changed(changes["counts"])) + "." if changes.get("counts") else ""
    if gate.get("passed") is None:
        return {
            "state": "none",
            "title": "No gate",
            "says": f"Nothing was measured before it was published. {what}".strip(),
        }
    chosen, rules, canaries = (
        gate.get("chosen") or {},
        list(gate.get("rules") or ()),
        gate.get("canaries") or {},
    )
    value = (
        f"{chosen['measure']} is {chosen['value']:.3f}. " if chosen.get("value") is not None else ""
    )
    judged = [rule for rule in rules if rule["passed"] is not None]
    failed, lost = [rule for rule in judged if not rule["passed"]], canaries.get("lost") or 0
    if not gate["passed"]:
        why = [f"{len(failed)} of {_count(len(rules), 'rule')} failed"] if failed else []
        why += (
            [f"{lost} of {_count(canaries['asked'], 'canary', 'canaries')} broke"] if lost else []
        )
        where = (
            f"Promoted by hand: {', '.join(channels)}." if channels else "No channel moved to it."
        )
        return {
            "state": "held",
            "title": "Held back by the gate",
            "says": f"{', '.join(why)}. {value}{where}",
        }
    if not rules and not canaries.get("asked"):
        return {
            "state": "measured",
            "title": "Measured, not gated",
            "says": f"{value}No rule has to hold. {what}".strip(),
        }
    why = [f"{_count(len(judged), 'rule')} held"] if judged else []
    why += (
        [f"{_count(len(rules) - len(judged), 'rule')} not judged"]
        if len(judged) < len(rules)
        else []
    )
    why += (
        [f"{_count(canaries['asked'], 'canary', 'canaries')} found"]
        if canaries.get("asked")
        else []
    )
    return {
        "state": "passed",
        "title": "Passed the gate",
        "says": f"{_capital(', '.join(why))}. {value}{what}".strip(),
    }


def _changed(counts: Mapping[str, Any]) -> str:
    words = (("added", "new"), ("changed", "changed"), ("removed", "removed"))
    said = [f"{counts[name]:,} {word}" for name, word in words if counts.get(name)]
    return f"{', '.join(said)} tools" if said else "no tool changed"


def _count(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
