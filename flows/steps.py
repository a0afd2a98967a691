"""Which step is which Prefect task: its name, the name of its runs, and its policies.

No task caches its result or is retried by Prefect: every step finds in the lake what an earlier run
finished, and what may fail for a moment (a source, a store, an LLM) is retried where it is called,
with its own limits. Names of task runs are filled in from the arguments of the step.
"""

from collections.abc import Callable
from typing import Any

from prefect import Task, task
from prefect.cache_policies import NO_CACHE

from tasks.calibrate import calibrate_release
from tasks.compose import compose_agents, compose_index
from tasks.edges import compose_edges
from tasks.embed import embed_shard
from tasks.enrich import enrich_tools, estimate_tools
from tasks.filter import filter_enrichments
from tasks.gate.decision import gate_release
from tasks.plan import compare_with_source, make_plan
from tasks.prune import prune_board
from tasks.publish import publish_release
from tasks.release_spec import compose_records, make_release_spec
from tasks.report.storage import report_release
from tasks.revise import revise_snapshots
from tasks.snapshot import take_snapshot
from tasks.stage import stage_tables
from tasks.sweep.cells import measure_cell
from tasks.sweep.design import design
from tasks.sweep.report import report_sweep

# step: (name of the task, name of its runs)
_STEPS: dict[Callable[..., Any], tuple[str, str]] = {
    take_snapshot: ("snapshot", "snapshot {catalog}"),
    revise_snapshots: ("revise", "revise"),
    make_plan: ("plan", "plan {channel}"),
    estimate_tools: ("estimate", "estimate the cost of the LLM"),
    enrich_tools: ("enrich", "enrich with an LLM"),
    filter_enrichments: ("filter", "filter"),
    compose_index: ("compose", "compose {settings.name}"),
    compose_agents: ("compose agents", "compose agents of {settings.name}"),
    compose_edges: ("edges", "edges"),
    compose_records: ("records", "records"),
    make_release_spec: ("release", "release"),
    embed_shard: ("embed", "embed {shard.index} {shard.number}"),
    stage_tables: ("stage", "stage {spec.release}"),
    calibrate_release: ("calibrate", "calibrate {spec.release}"),
    gate_release: ("gate", "gate {spec.release}"),
    publish_release: ("publish", "publish {spec.release}"),
    prune_board: ("prune", "prune"),
    report_release: ("report", "report {release}"),
    compare_with_source: ("compare", "compare {catalog}"),
    design: ("lay out", "lay out the sweep"),
    measure_cell: ("measure", "measure {cell.name}"),
    report_sweep: ("report sweep", "report the sweep"),
}

_TASKS: dict[Callable[..., Any], Task[..., Any]] = {
    step: task(
        name=name, task_run_name=run_name, cache_policy=NO_CACHE, retries=0, timeout_seconds=None
    )(step)
    for step, (name, run_name) in _STEPS.items()
}


def task_of(step: Callable[..., Any]) -> Task[..., Any]:
    """The Prefect task of a step. Raises KeyError for a function that is not in the table above."""
    return _TASKS[step]
