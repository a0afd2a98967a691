"""What the command line says of a release's gate: whether it passed, is held, and why. The manifest
has it under `gate`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.cli.output import plain
from pegboard.store.releases import Channel, Release


def gate_state(release: Release, channels: Iterable[Channel]) -> str:
    """`passed`; `held`: it failed and no channel names it; `failed`: it did and someone promoted
    it; blank without a gate.
    """
    gate = _gate(release)
    if not gate:
        return ""
    if gate["passed"]:
        return "passed"
    return "failed" if any(channel.release == release.id for channel in channels) else "held"


def failures(release: Release) -> list[str]:
    """What its gate says against a release, in words; nothing for one that passed, or has no
    gate.
    """
    gate = _gate(release)
    said = [
        f"{rule['rule']}: {rule['says']}"
        for rule in gate.get("rules", ())
        if rule["passed"] is False
    ]
    canaries = gate.get("canaries", {"lost": 0})
    if canaries["lost"]:
        said.append(f"{canaries['lost']} of {canaries['asked']} canaries broke")
    return [plain(one) for one in said]


def gate_lines(release: Release, channels: Iterable[Channel]) -> list[str]:
    """The gate of a release in lines: the state, what was measured, every rule."""
    gate = _gate(release)
    if not gate:
        return []
    chosen, canaries = gate["chosen"], gate["canaries"]
    asked = f", {canaries['asked']} canaries" if canaries["asked"] else ""
    against = f", against {gate['live']}" if gate["live"] else ""
    measured = (
        f"{chosen['measure']} {chosen['value']:.3f} [{chosen['low']:.3f}, {chosen['high']:.3f}]"
    )
    lines = [
        f"{gate_state(release, channels)}, {gate['at']}: {gate['queries']} golden "
        f"queries{asked}{against}",
        f"{measured} by strategy {chosen['strategy']} in index {chosen['index']}",
    ]
    marks = {None: "not judged", True: "holds", False: "failed"}
    lines += [f"{marks[rule['passed']]}: {rule['rule']}: {rule['says']}" for rule in gate["rules"]]
    if canaries["lost"]:
        lines.append(f"failed: {canaries['lost']} of {canaries['asked']} canaries broke")
    return [plain(line) for line in lines]


def _gate(release: Release) -> Mapping[str, Any]:
    return release.manifest.get("gate") or {}
