"""The sweep: index configurations x encoders x strategies x k x sizes of the catalog, measured cell
by cell; and the best of them named.

read -> (build a board of its own, on a channel of its own) -> lay out -> measure every cell that is
not done -> report

Every cell is a file that is named by what decides it, so a sweep that was killed goes on where it
stopped."""

import time
from typing import Any

from flows.artifacts import sweep_artifact
from flows.reindex import reindex
from flows.runner import Direct, Runner
from pegboard.errors import CompletionError
from tasks import progress
from tasks.settings.sweep import Sweep
from tasks.sweep.board import sweep_configuration
from tasks.sweep.cells import measure_cell
from tasks.sweep.design import Design, design
from tasks.sweep.pace import Pace
from tasks.sweep.report import report_sweep


def sweep(settings: Sweep, *, write: bool = False, runner: Runner | None = None) -> dict[str, Any]:
    """Measure every index of a configuration with every strategy, and name the best.

    Args:
        settings: what `read_sweep` returns.
        write: write the recommended index and strategy into the configuration.

    Returns:
        What `report_sweep` says, as JSON values.
    """
    runner = runner or Direct()
    began, problems = time.monotonic(), list[str]()
    if settings.settings.release is None:
        settings, problems = _built(settings, runner)
    laid_out = runner.call(design, settings)
    built = time.monotonic() - began
    _measure(laid_out, runner)
    measured = time.monotonic() - began - built
    outcome = runner.call(report_sweep, laid_out, write=write)
    outcome["warnings"] += problems
    outcome["seconds"] = {
        "build": round(built, 1),
        "measure": round(measured, 1),
        "all": round(time.monotonic() - began, 1),
    }
    runner.show(sweep_artifact(outcome))
    return outcome


def _built(settings: Sweep, runner: Runner) -> tuple[Sweep, list[str]]:
    """The sweep of the release that is built for it, every index of the configuration side by side;
    and problems of its sources.
    """
    assert settings.configuration is not None
    calibrated = any(strategy.needs_calibration() for strategy in settings.strategies)
    configuration = sweep_configuration(
        settings.configuration, settings.uri, settings.settings.indexes, calibrated=calibrated
    )
    run = reindex(configuration, runner=runner)
    if run["outcome"] == "waiting":
        raise CompletionError(
            "A batch of the LLM is under way, so there is nothing to measure yet. Start the sweep "
            "again to collect it."
        )
    problems = [problem for catalog in run["catalogs"].values() for problem in catalog["problems"]]
    return settings.of(run["release"]), [*problems, *run["problems"]]


def _measure(design: Design, runner: Runner) -> None:
    todo = design.todo
    pace = Pace([len(cell.queries) for cell in todo])
    if todo:
        progress.start("queries", pace.total)
    progress.start("cells", len(design.cells))
    progress.advance("cells", design.finished, "done before" if design.finished else None)
    for cell in todo:
        runner.call(measure_cell, cell)
        progress.advance("cells", text=pace.after(len(cell.queries)))
