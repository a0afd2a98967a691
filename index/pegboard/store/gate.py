"""The gate's verdict on a release, from its manifest, as text for people."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pegboard.formatting import count_text, interval_text, plain
from pegboard.store.releases import Channel, Release

STATES = {None: "skipped", True: "holds", False: "failed"}


def gate_state(release: Release, channels: Iterable[Channel]) -> str:
    """Return the state of a release: `passed`; `held`; for a release that a channel names or named
    in spite of that, `approved` if the gate passed and only texts had to be approved, else
    `failed`; empty if it had neither a gate nor texts to approve.
    """
    gate = _gate(release)
    unapproved = release.manifest.get("unapproved")
    if not gate and not unapproved:
        return ""
    passed = bool(gate.get("passed", True))
    if not unapproved and passed:
        return "passed"
    if any(
        release.id in (channel.release, *channel.history, *channel.withdrawn)
        for channel in channels
    ):
        return "approved" if passed else "failed"
    return "held"


def is_good(release: Release) -> bool:
    """Whether a release passed its gate, or had none."""
    return bool(_gate(release).get("passed", True))


def failures(release: Release) -> list[str]:
    """Return a line for each rule that failed and for failed canaries; empty without failures."""
    gate = _gate(release)
    failed = [rule for rule in gate.get("rules", ()) if rule["passed"] is False]
    lines = [f"{rule['rule']}: {rule['reason']}" for rule in failed]
    return [plain(line) for line in (*lines, *_broken_canaries(gate))]


def gate_lines(release: Release, channels: Iterable[Channel]) -> list[str]:
    """Return the state of the gate, its measurement, and every rule, one per line."""
    gate = _gate(release)
    unapproved = release.manifest.get("unapproved")
    approval = f"{unapproved} new or changed tools to approve" if unapproved else ""
    if not gate:
        return [f"{gate_state(release, channels)}: {approval}"] if approval else []
    chosen = gate["chosen"]
    canaries = gate["canaries"]["count"]
    lines = [
        f"{gate_state(release, channels)}, {gate['at']}: {gate['queries']} golden queries"
        f"{f', {canaries} canaries' if canaries else ''}"
        f"{', against ' + gate['live'] if gate['live'] else ''}",
        f"{chosen['measure']} {interval_text(chosen)} by strategy {chosen['strategy']} in index "
        f"{chosen['index']}",
        *(f"{STATES[rule['passed']]}: {rule['rule']}: {rule['reason']}" for rule in gate["rules"]),
        *(f"failed: {line}" for line in _broken_canaries(gate)),
        *([approval] if approval else []),
    ]
    return [plain(line) for line in lines]


def rules_text(rules: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of rules that hold or failed: `2 rules hold`, `1 of 2 rules failed`.

    Comparisons with the live release are skipped if no release is live, and counted separately."""
    verdicts = [rule["passed"] for rule in rules if rule["passed"] is not None]
    skipped = len(rules) - len(verdicts)
    failed = verdicts.count(False)
    parts = [f"{skipped} skipped, as no release is live"] if skipped else []
    if verdicts:
        count = count_text(len(verdicts), "rule")
        hold = "holds" if len(verdicts) == 1 else "hold"
        parts.insert(0, f"{failed} of {count} failed" if failed else f"{count} {hold}")
    return ", ".join(parts)


def _broken_canaries(gate: Mapping[str, Any]) -> list[str]:
    canaries = gate.get("canaries") or {}
    missed = canaries.get("missed")
    return [f"{missed} of {canaries['count']} canaries broke"] if missed else []


def _gate(release: Release) -> Mapping[str, Any]:
    return release.manifest.get("gate") or {}
