"""Which strategies and indexes of a staged release are measured, and which become its default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.errors import PegboardError
from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.measures import Measure
from pegboard.retrieval.strategies import DEFAULT_STRATEGY, named_strategy
from pegboard.retrieval.strategy import Strategy
from pegboard.store.releases import Release
from tasks.gate.spec import GateSpec, configured_strategy
from tasks.settings.configuration import Configuration

THRESHOLD = "accept_95"
"""The threshold of the ranker that accepts 95 % of the requests with an answer."""
TOLERANCE = 1e-9
"""Means that differ by less count as equal (rounding of sums)."""


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A strategy in an index; `index` is None for a strategy that names its indexes."""

    strategy: Strategy
    index: str | None

    @classmethod
    def of(cls, strategy: Strategy, index: str) -> "SystemSpec":
        """Return the system in an index, unless the strategy names its indexes."""
        return cls(strategy, None if strategy.indexes else index)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The indexes that are searched."""
        return (self.index,) if self.index else self.strategy.indexes


@dataclass(frozen=True, slots=True)
class MeasuredSystem:
    """A system, its evaluation, and where in the lake its results are kept."""

    system: SystemSpec
    evaluation: Evaluation
    path: str


def default_system(release: Release) -> SystemSpec:
    """Return the default strategy and index of a release. Raises QueryError if it is unknown."""
    strategy: Mapping[str, Any] | None = release.manifest.get("strategy")
    resolved = (
        named_strategy(DEFAULT_STRATEGY) if strategy is None else Strategy.from_dict(strategy)
    )
    return SystemSpec.of(resolved, str(release.manifest["default_index"]))


def default_if_known(release: Release | None) -> list[SystemSpec]:
    """Return the default system of a release as a list; empty if this version lacks it."""
    try:
        return [default_system(release)] if release else []
    except PegboardError:
        return []


def list_systems(configuration: Configuration, gate: GateSpec) -> list[SystemSpec]:
    """Return every strategy in every index, the configured default first."""
    configured = SystemSpec.of(configured_strategy(configuration), configuration.default)
    everywhere = [strategy for strategy in gate.strategies if not strategy.indexes]
    systems = [
        SystemSpec(strategy, index.name)
        for index in configuration.indexes
        for strategy in everywhere
    ]
    systems += [SystemSpec(strategy, None) for strategy in gate.strategies if strategy.indexes]
    if gate.choose is None or configured in systems:
        return [configured, *(system for system in systems if system != configured)]
    return systems


def choose_best(
    measured: Sequence[MeasuredSystem], measure: Measure | None, preferred: Sequence[SystemSpec]
) -> MeasuredSystem:
    """Return the best by a measure; of equal ones the first that is preferred, or else the first.

    Without a measure, the first of all.
    """
    if measure is None:
        return measured[0]
    means = [float(candidate.evaluation.values[measure].mean()) for candidate in measured]
    best = [
        candidate
        for candidate, mean in zip(measured, means, strict=True)
        if mean >= max(means) - TOLERANCE
    ]
    for system in preferred:
        for candidate in best:
            if candidate.system == system:
                return candidate
    return best[0]


def manifest_default(chosen: SystemSpec, configuration: Configuration) -> dict[str, Any]:
    """Return `default_index` and `strategy` of a manifest for a chosen system."""
    index = chosen.index or chosen.strategy.index or configuration.default
    return {"default_index": index, "strategy": chosen.strategy.to_dict()}


def accept_threshold(system: SystemSpec, staged: Release) -> dict[str, Any] | None:
    """Return the probability from which on a request has an answer, in the first index searched;
    None for a search that is not hybrid.
    """
    if system.strategy.mode != "hybrid":
        return None
    thresholds = staged.manifest["indexes"][system.indexes[0]]["ranker"]["thresholds"]
    return {"name": THRESHOLD, "probability": thresholds[THRESHOLD]}
