"""Which configurations of a staged release are measured, and which of them becomes its default."""

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.errors import PublishError
from pegboard.evaluation.measures import Measure
from pegboard.retrieval.calibration import Calibration
from pegboard.retrieval.evidence import searched_as
from pegboard.retrieval.strategies import DEFAULT_PLAN, named_strategy
from pegboard.retrieval.strategy import Strategy
from pegboard.store.releases import Release
from tasks.gate.asked import Gate, own_strategy
from tasks.gate.measured import Measured, System
from tasks.settings.configuration import Configuration

THRESHOLD = "accept_95"
"""The threshold of a calibration that a gate hands on: it lets 95 % of the requests with an answer
through.
"""
ALIKE = 1e-9
"""Means that differ by less are equal: sums in another order."""


def system_of(release: Release) -> System:
    """The strategy and the index by which a release is asked unless someone says otherwise. Raises
    QueryError for an unknown strategy.
    """
    written: Mapping[str, Any] | None = release.manifest.get("strategy")
    strategy = named_strategy(DEFAULT_PLAN) if written is None else Strategy.from_dict(written)
    return System(strategy, None if strategy.indexes else str(release.manifest["default_index"]))


def candidates(
    configuration: Configuration, gate: Gate, staged: Release
) -> tuple[list[System], list[str]]:
    """What is measured: every strategy in every index, the configured default first; and what
    cannot be, with the reason.

    Raises PublishError if nothing can be measured: then no reader could ask the release either.
    """
    own = own_strategy(configuration)
    first = System(own, None if own.indexes else configuration.default)
    wanted = [
        System(strategy, name)
        for name in (index.name for index in configuration.indexes)
        for strategy in gate.strategies
        if not strategy.indexes
    ]
    wanted += [System(strategy, None) for strategy in gate.strategies if strategy.indexes]
    if gate.choose is None or first in wanted:
        wanted = [first, *(one for one in wanted if one != first)]
    if gate.choose is None and (missing := _uncalibrated(first, staged)):
        raise PublishError(_unmeasurable([_why(first, missing)]))
    able = [one for one in wanted if not _uncalibrated(one, staged)]
    unable = [_why(one, missing) for one in wanted if (missing := _uncalibrated(one, staged))]
    if not able:
        raise PublishError(_unmeasurable(unable))
    return able, unable


def best_of(
    measured: Sequence[Measured], by: Measure | None, preferred: Sequence[System]
) -> Measured:
    """The best by a measure; of equal ones the first that is preferred, or else the first. The
    first of all where nothing is chosen.
    """
    if by is None:
        return measured[0]
    means = [float(one.evaluation.values[by].mean()) for one in measured]
    best = [one for one, mean in zip(measured, means, strict=True) if mean >= max(means) - ALIKE]
    for system in preferred:
        for one in best:
            if one.system == system:
                return one
    return best[0]


def default_of(chosen: System, configuration: Configuration) -> dict[str, Any]:
    """What a manifest says of a chosen system."""
    index = chosen.index
    if index is None:
        names = chosen.strategy.indexes
        index = configuration.default if configuration.default in names else names[0]
    return {"default_index": index, "strategy": chosen.strategy.to_dict()}


def threshold_of(system: System, staged: Release) -> dict[str, Any] | None:
    """The probability from which on a request has an answer, as the first index that is searched is
    calibrated; None if it is not.
    """
    said = staged.manifest["indexes"][system.searched[0]].get("calibration")
    mode = searched_as(system.strategy.modes)
    if said is None or mode not in (curves := Calibration.from_dict(said).curves):
        return None
    found = curves[mode].thresholds.get(THRESHOLD)
    if found is None:
        return None
    shares = {"answerable": found.answerable, "unanswerable": found.unanswerable}
    return {"name": THRESHOLD, "mode": mode, "probability": found.probability, **shares}


def _uncalibrated(system: System, staged: Release) -> list[str]:
    """The indexes of which the strategy wants to know probabilities that nobody knows."""
    if not system.strategy.needs_calibration():
        return []
    return [
        name for name in system.searched if "calibration" not in staged.manifest["indexes"][name]
    ]


def _why(system: System, missing: Sequence[str]) -> str:
    return (
        f"strategy '{system.strategy.name}' asks for probabilities, and index "
        f"{', '.join(missing)} is not calibrated"
    )


def _unmeasurable(unable: Sequence[str]) -> str:
    return (
        f"Nothing was published: no reader could ask this release: {'; '.join(unable)}. Add "
        f"requests to [golden], so that there are "
        "enough for a calibration, or other strategies to [gate] or [find]."
    )
