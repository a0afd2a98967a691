"""The sweep: index configurations x encoders x plans x k x sizes of the catalog, measured cell by cell; and the best of them named.

read -> (build a board of its own, on a channel of its own) -> lay out -> measure every cell that is not done -> report

Every cell is a file that is named by what decides it, so a sweep that was killed goes on where it stopped.
"""

import time
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows import stale_runs
from flows.reindex import reindex
from pegboard.errors import CompletionError
from tasks import progress
from tasks.sweep.board_file import board_file
from tasks.sweep.cells import measure
from tasks.sweep.design import Design, lay_out
from tasks.sweep.pace import Pace
from tasks.sweep.report import report
from tasks.sweep.settings import Sweep, read_sweep

__all__ = ["sweep"]


@flow(name="sweep", flow_run_name="sweep of {config}")
def sweep(
    config: str = "pegboard.toml",
    golden: str | None = None,
    plans: list[str | dict[str, Any]] | None = None,
    k: list[int | str] | None = None,
    tools: list[int | str] | None = None,
    measures: list[str] | None = None,
    indexes: list[str] | None = None,
    seed: int | None = None,
    samples: int | None = None,
    max_tokens: float | None = None,
    max_ms: float | None = None,
    timed: int | None = None,
    board: str | None = None,
    release: str | None = None,
    out: str | None = None,
    llm: str | None = None,
    llm_api_base: str | None = None,
    write: bool = False,
) -> dict[str, Any]:
    """Measure every index of a configuration with every plan, and name the best.

    Args:
        config: the configuration's path; what is not given here stands in its `[sweep]` table, or has a default: see `SweepSettings`.
        write: write the recommended index and plan into the configuration.
    """
    given = {name: value for name, value in locals().items() if name not in ("config", "write")}
    stale_runs.clean_up()
    began = time.monotonic()
    wanted, problems = read_sweep(config, given, write=write), []
    if wanted.settings.release is None:
        wanted, problems = _built(wanted)
    design = lay_out(wanted)
    built = time.monotonic() - began
    _measure(design)
    measured = time.monotonic() - began - built
    outcome = report(design, write=write)
    outcome["warnings"] += problems
    outcome["seconds"] = {
        "build": round(built, 1),
        "measure": round(measured, 1),
        "all": round(time.monotonic() - began, 1),
    }
    create_markdown_artifact("\n\n".join(outcome["says"]), key="sweep", description=f"Sweep of {config}")
    return outcome


def _built(wanted: Sweep) -> tuple[Sweep, list[str]]:
    """The sweep of the release that is built for it, every index of the configuration side by side; and what went wrong with sources."""
    assert wanted.configuration is not None
    calibrated = any(plan.needs_calibration() for plan in wanted.plans)
    with board_file(wanted.configuration, wanted.uri, wanted.settings.indexes, calibrated=calibrated) as file:
        run = reindex(config=str(file))
    if run["outcome"] == "waiting":
        raise CompletionError(
            "A batch of the LLM is under way, so there is nothing to measure yet. Start the sweep again to collect it."
        )
    problems = [problem for catalog in run["catalogs"].values() for problem in catalog["problems"]]
    return wanted.of(run["release"]), [*problems, *run["problems"]]


def _measure(design: Design) -> None:
    todo = design.todo
    pace = Pace([len(cell.queries) for cell in todo])
    if todo:
        progress.start("queries", pace.total)
    progress.start("cells", len(design.cells))
    progress.advance("cells", design.finished, "done before" if design.finished else None)
    for cell in todo:
        measure(cell)
        progress.advance("cells", text=pace.after(len(cell.queries)))
