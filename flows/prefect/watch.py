"""Builds of a watch, each a run of the board's deployment `reindex`, whose end is waited for.

The event `pegboard.catalog.changed` would start such a run, too, but would not say how it ended: a
change whose build failed would be lost.
"""

import json
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import httpx
from prefect import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    ArtifactFilterKey,
    DeploymentFilter,
    DeploymentFilterTags,
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import PrefectException
from prefect.runtime import deployment

from flows.prefect.names import board_key, board_tag
from flows.prefect.turns import started_before
from pegboard.errors import ConfigurationError
from pegboard.formatting import plain
from tasks.settings.configuration import Configuration
from tasks.watch.inputs import in_thread
from tasks.watch.loop import BuildResult, Watch
from tasks.watch.watcher import WatchEvent

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

POLL_SECONDS = 2.0
"""Seconds between two looks at a run that is under way."""
DONE = ("Held", "Incomplete")
"""Names of failed states of a run that did its work."""
logger = logging.getLogger(__name__)


def watch_sources(configuration: Configuration, interval: float, seconds: float) -> dict[str, int]:
    """Watch the sources of a configuration for some seconds; return how often each kind of event
    was reported.

    Args:
        interval: seconds between two looks at a source that does not announce changes.
    """
    counts: dict[str, int] = {}

    def report(event: WatchEvent) -> None:
        counts[event.kind] = counts.get(event.kind, 0) + 1
        logger.info("%s: %s", event.kind, plain(event.text))

    build = DeploymentBuild(deployment.name)

    async def run() -> None:
        with anyio.move_on_after(seconds):
            await Watch(configuration.file, build, report, interval).run()

    anyio.run(run)
    return counts


def older_watch(run: UUID, uri: str) -> FlowRun | None:
    """Return a run that started before this one and watches the board; None without one."""
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=["watch"])),
            flow_run_filter=FlowRunFilter(
                tags=FlowRunFilterTags(all_=[board_tag(uri)]),
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
            ),
        )
    return next(iter(started_before(run, runs)), None)


class DeploymentBuild:
    """Builds catalogs by runs of the board's deployment of `reindex`.

    Args:
        name: of the deployment, if the board has several.
    """

    def __init__(self, name: str | None) -> None:
        self._name = name

    async def __call__(self, configuration: Configuration, catalogs: list[str]) -> BuildResult:
        """Build some catalogs; return how it ended."""
        names = "all" if catalogs == [*configuration.catalogs] else ",".join(catalogs)
        run = await in_thread(partial(_start, configuration.uri, self._name, names))
        return await in_thread(partial(_wait, run, configuration.uri))


def _start(uri: str, name: str | None, catalogs: str) -> UUID:
    """Start a run of the board's deployment of `reindex`; return its id."""
    with get_client(sync_client=True) as client:
        deployments = client.read_deployments(
            flow_filter=FlowFilter(name=FlowFilterName(any_=["reindex"])),
            deployment_filter=DeploymentFilter(tags=DeploymentFilterTags(all_=[board_tag(uri)])),
        )
        if not deployments:
            raise ConfigurationError(
                f"The server has no deployment of reindex with the tag {board_tag(uri)}. Make it "
                "with `pegboard deploy`."
            )
        same_name = [row for row in deployments if row.name == name]
        run = client.create_flow_run_from_deployment(
            (same_name or deployments)[0].id, parameters={"catalog": catalogs}
        )
        return run.id


def _wait(run: UUID, uri: str) -> BuildResult:
    """Return how a run ended, as soon as it did. A server that is away is waited for."""
    while True:
        try:
            with get_client(sync_client=True) as client:
                state = client.read_flow_run(run).state
                if state is not None and state.is_final():
                    return _result(state, _failed_sources(client, run, uri), run)
        except (httpx.HTTPError, PrefectException, RuntimeError) as error:
            logger.debug("The run %s cannot be read: %s", run, type(error).__name__)
        time.sleep(POLL_SECONDS)


def _result(state: "State[Any]", failed: dict[str, str], run: UUID) -> BuildResult:
    succeeded = state.is_completed() or state.name in DONE
    text = f"{state.name}: {state.message or ''}".partition("\n")[0]
    facts = {"state": state.name, "run": str(run), "problems": failed}
    return BuildResult(text, succeeded, failed, 0 if succeeded else 1, facts)


def _failed_sources(client: "SyncPrefectClient", run: UUID, uri: str) -> dict[str, str]:
    """Return the problems of a run's sources, which its table of sources has."""
    artifacts = client.read_artifacts(
        artifact_filter=ArtifactFilter(
            flow_run_id=ArtifactFilterFlowRunId(any_=[run]),
            key=ArtifactFilterKey(any_=[f"sources-{board_key(uri)}"]),
        )
    )
    failed: dict[str, str] = {}
    for artifact in artifacts:
        rows: Any = artifact.data
        rows = json.loads(rows) if isinstance(rows, str) else rows or []
        failed |= {row["catalog"]: row["problem"] for row in rows if row["state"] == "failed"}
    return failed
