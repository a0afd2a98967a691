"""The watch: which sources changed, said as events, so that a catalog is indexed minutes after it changed.

An event for every catalog that changed -> the trigger of `reindex/nightly` (prefect.yaml) -> a run for that catalog.

A watch compares with what was published, not with what an earlier watch saw: until the run that its event asked for has
published, the next watch emits the same event again. That costs one more run, which waits for its turn, finds nothing left
to do and stops before it encodes; and it is what repeats a run that failed or an event that was lost.
"""

from typing import Any, cast

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.events import emit_event
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows import stale_runs
from tasks.changes import Change, compare_source
from tasks.configuration import load_configuration

__all__ = ["watch"]


@flow(
    name="watch",
    flow_run_name="watch {config}",
    task_runner=cast("TaskRunner[Any]", ThreadPoolTaskRunner(max_workers=8)),  # sources are waited for, not computed
)
def watch(config: str = "pegboard.toml") -> dict[str, Any]:
    """List every source, and emit `catalog.changed` for the catalogs that changed since they were published.

    A source that fails is said in the log, the artifact and the result; it is no event.
    """
    stale_runs.clean_up()
    configuration = load_configuration(config)
    futures = [compare_source.submit(config, name) for name in configuration.catalogs]
    changes = [future.result() for future in futures]

    changed = [change.catalog for change in changes if change.changed]
    for catalog in changed:
        emit_event(
            "catalog.changed",
            resource={"prefect.resource.id": f"pegboard.catalog.{catalog}"},
            payload={"catalog": catalog, "config": str(configuration.file)},
        )
    for change in changes:
        for problem in change.problems:
            get_run_logger().warning("%s: %s", change.catalog, problem)
    create_table_artifact([_row(change) for change in changes], key="sources", description=f"Sources of {config}")
    return {
        "changed": changed,
        "unchanged": [change.catalog for change in changes if not change.changed],
        "problems": {change.catalog: list(change.problems) for change in changes if change.problems},
    }


def _row(change: Change) -> dict[str, Any]:
    return {
        "catalog": change.catalog,
        "changed": "yes" if change.changed else "no",
        "tools": change.tools,
        "rejected": change.rejected,
        "problems": "; ".join(change.problems),
    }
