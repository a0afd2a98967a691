"""One build of a board at a time, by the states of its flow runs.

A run waits while an older one of the same board is running. States are in the server's database, so
a restart loses nothing, and there is no slot that a lost run could keep. The wait is bounded: two
builds at once are safe, since promotion is a compare-and-set and the lake is content-addressed, and
only repeat work.
"""

import time
from collections.abc import Sequence
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, StateType

from tasks.runtime import progress

MAX_WAIT_SECONDS = 900.0
"""Seconds after which a run builds though an older one of its board is still running."""
POLL_SECONDS = 2.0
"""Seconds between two looks at the other runs."""


def wait_for_older_builds(run: UUID, tag: str, seconds: float = MAX_WAIT_SECONDS) -> None:
    """Wait until no older run builds the board, at most some seconds.

    Args:
        run: the flow run that waits.
        tag: that of the board's runs.
    """
    deadline = time.monotonic() + seconds
    announced = False
    while older := _older_builds(run, tag):
        if time.monotonic() >= deadline:
            progress.note(f"{older[0].name} still runs after {seconds:.0f} s; building beside it.")
            return
        if not announced:
            progress.note(f"Another run builds this board: {older[0].name}. Waiting for its end.")
            announced = True
        time.sleep(POLL_SECONDS)


def _older_builds(run: UUID, tag: str) -> list[FlowRun]:
    """Return the running builds that started before this one; none if the server is away."""
    try:
        with get_client(sync_client=True) as client:
            runs = client.read_flow_runs(
                flow_filter=FlowFilter(name=FlowFilterName(any_=["reindex"])),
                flow_run_filter=FlowRunFilter(
                    tags=FlowRunFilterTags(all_=[tag]),
                    state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
                ),
            )
    except httpx.HTTPError:
        return []
    return [row for row in started_before(run, runs) if not row.parameters.get("dry_run")]


def started_before(run: UUID, runs: Sequence[FlowRun]) -> list[FlowRun]:
    """Return the runs that started before another of them; none if that is not one of them."""
    order = {row.id: (str(row.start_time), str(row.id)) for row in runs}
    if run not in order:
        return []
    return [row for row in runs if order[row.id] < order[run]]
