"""The gate of a release, as commands show it: the manifest has it under `gate`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pegboard.formatting import count_text, interval_text, plain
from pegboard.store.releases import Channel, Release

STATES = {None: "skipped", True: "holds", False: "failed"}


def gate_state(release: Release, channels: Iterable[Channel]) -> str:
    """Return `passed`, `held`, or of one promoted by hand `approved`, if only its texts had to be,
    or `failed`; empty without a gate and such texts.
    """
    gate, waiting = _gate(release), release.manifest.get("unapproved")
    if not gate and not waiting:
        return ""
    passed = bool(gate.get("passed", True))
    if not waiting and passed:
        return "passed"
    promoted = "approved" if passed else "failed"
    return promoted if any(channel.release == release.id for channel in channels) else "held"


def failures(release: Release) -> list[str]:
    """Return the rules and canaries that failed; empty if it passed, or has no gate."""
    gate = _gate(release)
    failed = [rule for rule in gate.get("rules", ()) if rule["passed"] is False]
    lines = [f"{rule['rule']}: {rule['reason']}" for rule in failed]
    return [plain(line) for line in (*lines, *_broken_canaries(gate))]


def gate_lines(release: Release, channels: Iterable[Channel]) -> list[str]:
    """Return the state of the gate, what was measured, and every rule, one per line."""
    gate, waiting = _gate(release), release.manifest.get("unapproved")
    text = f"{waiting} new or changed tools to approve" if waiting else ""
    if not gate:
        return [f"{gate_state(release, channels)}: {text}"] if text else []
    chosen, canaries = gate["chosen"], gate["canaries"]["count"]
    lines = [
        f"{gate_state(release, channels)}, {gate['at']}: {gate['queries']} golden queries"
        f"{f', {canaries} canaries' if canaries else ''}"
        f"{', against ' + gate['live'] if gate['live'] else ''}",
        f"{chosen['measure']} {interval_text(chosen)} by strategy {chosen['strategy']} in index "
        f"{chosen['index']}",
        *(f"{STATES[rule['passed']]}: {rule['rule']}: {rule['reason']}" for rule in gate["rules"]),
        *(f"failed: {line}" for line in _broken_canaries(gate)),
        *([text] if text else []),
    ]
    return [plain(line) for line in lines]


def rules_text(rules: Sequence[Mapping[str, Any]]) -> str:
    """Return how many rules hold, or failed: `2 rules hold`, `1 of 2 rules failed`.

    A comparison with live is skipped where no release is live, and counts as neither."""
    judged = [rule["passed"] for rule in rules if rule["passed"] is not None]
    skipped, failed = len(rules) - len(judged), judged.count(False)
    parts = [f"{skipped} skipped, as no release is live"] if skipped else []
    if judged:
        count = count_text(len(judged), "rule")
        hold = "holds" if len(judged) == 1 else "hold"
        parts.insert(0, f"{failed} of {count} failed" if failed else f"{count} {hold}")
    return ", ".join(parts)


def _broken_canaries(gate: Mapping[str, Any]) -> list[str]:
    canaries = gate.get("canaries") or {}
    missed = canaries.get("missed")
    return [f"{missed} of {canaries['count']} canaries broke"] if missed else []


def _gate(release: Release) -> Mapping[str, Any]:
    return release.manifest.get("gate") or {}
