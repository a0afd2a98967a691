"""The gate of a release, as commands show it: the manifest has it under `gate`."""

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.cli.output import plain
from pegboard.cli.tables import interval_text
from pegboard.store.releases import Channel, Release

STATES = {None: "not judged", True: "holds", False: "failed"}


def gate_state(release: Release, channels: Iterable[Channel]) -> str:
    """Return `passed`, `held`, or `failed` if promoted by hand; empty without a gate."""
    gate = _gate(release)
    if not gate:
        return ""
    if gate["passed"]:
        return "passed"
    return "failed" if any(channel.release == release.id for channel in channels) else "held"


def failures(release: Release) -> list[str]:
    """Return the rules and canaries that failed; empty if it passed, or has no gate."""
    gate = _gate(release)
    failed = [rule for rule in gate.get("rules", ()) if rule["passed"] is False]
    lines = [f"{rule['rule']}: {rule['reason']}" for rule in failed]
    return [plain(line) for line in (*lines, *_broken_canaries(gate))]


def gate_lines(release: Release, channels: Iterable[Channel]) -> list[str]:
    """Return the state of the gate, what was measured, and every rule, one per line."""
    gate = _gate(release)
    if not gate:
        return []
    chosen, canaries = gate["chosen"], gate["canaries"]["count"]
    lines = [
        f"{gate_state(release, channels)}, {gate['at']}: {gate['queries']} golden queries"
        f"{f', {canaries} canaries' if canaries else ''}"
        f"{', against ' + gate['live'] if gate['live'] else ''}",
        f"{chosen['measure']} {interval_text(chosen)} by strategy {chosen['strategy']} in index "
        f"{chosen['index']}",
        *(f"{STATES[rule['passed']]}: {rule['rule']}: {rule['reason']}" for rule in gate["rules"]),
        *(f"failed: {line}" for line in _broken_canaries(gate)),
    ]
    return [plain(line) for line in lines]


def _broken_canaries(gate: Mapping[str, Any]) -> list[str]:
    canaries = gate.get("canaries") or {}
    missed = canaries.get("missed")
    return [f"{missed} of {canaries['count']} canaries broke"] if missed else []


def _gate(release: Release) -> Mapping[str, Any]:
    return release.manifest.get("gate") or {}
