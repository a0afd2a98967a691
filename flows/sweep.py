"""The sweep: indexes x strategies x k x sizes of the catalog are measured, and the best are named.

read -> (build a board of its own) -> design -> measure each strategy in each index -> report"""

import time
from collections.abc import Sequence
from typing import Any

from flows.options import source_problems
from flows.reindex import reindex
from pegboard.store.storage import remember_options
from tasks import progress
from tasks.settings.configuration import BoardSettings, Configuration
from tasks.settings.release import FindSettings
from tasks.settings.sweep import Sweep
from tasks.sweep.measuring import design, measure_system
from tasks.sweep.results import report_sweep

CHANNEL = "sweep"
"""The channel of a sweep's releases; no other channel moves."""


def sweep(settings: Sweep) -> dict[str, Any]:
    """Measure every index of a configuration with every strategy, and name the best.

    Args:
        settings: what `read_sweep` returns.

    Returns:
        The summary of `report_sweep`, with its seconds.
    """
    start, problems = time.monotonic(), list[str]()
    if settings.settings.release is None:
        settings, problems = _build(settings)
    plan = design(settings)
    progress.start("queries", len(plan.systems) * len(settings.queries))
    results = [result for system in plan.systems for result in measure_system(plan, *system)]
    summary = report_sweep(plan, results)
    summary["warnings"] += problems
    summary["seconds"] = round(time.monotonic() - start, 1)
    return summary


def _build(settings: Sweep) -> tuple[Sweep, list[str]]:
    """Build a release with every index; returns its sweep, and the problems of its sources."""
    configuration = sweep_configuration(
        settings.configuration, settings.uri, settings.settings.indexes
    )
    outcome = reindex(configuration)
    return settings.of(outcome["release"]), [*source_problems(outcome), *outcome["problems"]]


def sweep_configuration(
    configuration: Configuration, uri: str, indexes: Sequence[str] = ()
) -> Configuration:
    """Return the configuration of the board at `uri`, without report, golden queries, gate and
    default strategy.

    Args:
        indexes: those that the board has; all if empty.
    """
    storage = configuration.board.storage if "://" in uri else {}
    changes: dict[str, Any] = {
        "board": BoardSettings(uri=uri, channel=CHANNEL, report=False, storage=storage),
        "find": FindSettings(),
        "golden": None,
        "gate": None,
    }
    if indexes:
        changes["indexes"] = tuple(row for row in configuration.indexes if row.name in indexes)
        changes["default_index"] = None
    changed = configuration.model_copy(update=changes)
    remember_options(changed.uri, storage)
    return changed
