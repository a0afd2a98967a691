"""What `pegboard deploy` makes on a Prefect server: a board's deployments and automations.

Deploying again changes what is there. Everything is the board's own: deployments and queue have its
name, and triggers match its tag, its deployments or its resource, so boards share a server. A board
that is deployed under several names has one set of automations, for the name deployed last.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect import Flow, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.actions import ChangeFlowRunState, RunDeployment, SendNotification
from prefect.events.filters import AutomationFilter, AutomationFilterTags
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.exceptions import ObjectNotFound
from prefect.utilities.callables import parameter_schema
from prefect.workers.process import ProcessWorker

from flows.prefect.events import HELD, RUN_ENDED, SOURCE_FAILED
from flows.prefect.flows import HEARTBEAT_SECONDS, evaluate, prune, reindex, watch
from flows.prefect.names import board_resource, board_tag
from pegboard.errors import ConfigurationError
from pegboard.events import CATALOG_CHANGED
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

FLOWS: tuple[Flow[..., Any], ...] = (reindex, evaluate, prune, watch)
"""The flows that a board has a deployment of."""
HEARTBEAT = "prefect.flow-run.heartbeat"
LOST_SECONDS = 120
"""Seconds without a heartbeat after which a run is lost."""
PENDING_SECONDS = 600
"""Seconds that a run may take to start, such as to pull an image, before it is lost."""
ENDS = (
    *("Completed", "Published", "Unchanged", "Withdrawn", "Planned"),
    *("Held", "Incomplete", "Skipped"),
)
STARTED = ("Running", "Failed", "Crashed", "Cancelled", "Cancelling", "Scheduled", *ENDS)
"""Names of states after which a run is not Pending."""


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """What `pegboard deploy` is asked for.

    Attributes:
        name: of the deployments; by default that of the configuration's folder.
        pool: the work pool, made as one of processes if it is missing.
        folder: where workers run the flows; by default the configuration's folder.
        schedules: the cron schedule of each flow that has one.
        timezone: of the schedules.
        notify: a notification block, as `slack-webhook/ops`; None for no alerts.
        job_variables: further variables of the work pool, such as an image.
    """

    name: str | None = None
    pool: str = "pegboard"
    folder: str | None = None
    schedules: dict[str, str] = field(default_factory=dict[str, str])
    timezone: str = "UTC"
    notify: str | None = None
    job_variables: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a board has on the server.

    Attributes:
        name: of its deployments.
        deployments: their ids, by flow.
        automations: their names.
        resource: of the board's events.
    """

    name: str
    deployments: dict[str, UUID]
    automations: tuple[str, ...]
    resource: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "deployments": {flow: str(key) for flow, key in self.deployments.items()},
            "automations": list(self.automations),
            "resource": self.resource,
        }


def deploy_board(configuration: Configuration, options: DeployOptions) -> Deployed:
    """Make or change the deployments and automations of a board.

    Raises:
        ConfigurationError: another board has deployments of that name, or there is no such
            notification block. Nothing is changed.
    """
    name = options.name or _folder_name(configuration)
    tag = board_tag(configuration.uri)
    with get_client(sync_client=True) as client:
        block = _block(client, options.notify)
        _refuse_other_boards(client, name, tag)
        _make_pool(client, options.pool, name)
        deployments = {
            flow.name: _deploy(client, flow, configuration, options, name) for flow in FLOWS
        }
        automations = board_automations(
            configuration.uri, name, deployments, block, watched="watch" in options.schedules
        )
        _set_automations(client, tag, automations)
    names = tuple(automation.name for automation in automations)
    return Deployed(name, deployments, names, board_resource(configuration.uri))


def _folder_name(configuration: Configuration) -> str:
    name = configuration.file.resolve().parent.name.lower()
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-") or "board"


def _refuse_other_boards(client: "SyncPrefectClient", name: str, tag: str) -> None:
    for flow in FLOWS:
        try:
            existing = client.read_deployment_by_name(f"{flow.name}/{name}")
        except ObjectNotFound:
            continue
        if tag not in existing.tags:
            boards = ", ".join(row for row in existing.tags if row.startswith("board:"))
            raise ConfigurationError(
                f"{flow.name}/{name} deploys another board ({boards or 'it has no tag board:...'}),"
                f" expected {tag}. Give this one another --name, or delete that deployment."
            )


def _make_pool(client: "SyncPrefectClient", pool: str, queue: str) -> None:
    """Make the work pool, and the board's queue in it, which runs one build at a time.

    A queue counts running runs in the database. The slots of a deployment's own limit are leases
    in the server's memory, and stay taken when it restarts.
    """
    try:
        client.read_work_pool(pool)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        client.create_work_pool(
            WorkPoolCreate(name=pool, type="process", base_job_template=template)
        )
    try:
        client.read_work_queue_by_name(queue, work_pool_name=pool)
    except ObjectNotFound:
        client.create_work_queue(queue, concurrency_limit=1, work_pool_name=pool)


def _deploy(
    client: "SyncPrefectClient",
    flow: Flow[..., Any],
    configuration: Configuration,
    options: DeployOptions,
    name: str,
) -> UUID:
    folder = options.folder or str(configuration.file.resolve().parent)
    schedules: list[DeploymentScheduleCreate] = []
    if cron := options.schedules.get(flow.name):
        schedule = CronSchedule(cron=cron, timezone=options.timezone)
        schedules.append(DeploymentScheduleCreate(schedule=schedule))
    environment = {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS)}
    return client.create_deployment(
        flow_id=client.create_flow(flow),
        name=name,
        description=(flow.description or "").partition("\n\n")[0].replace("\n", " "),
        entrypoint=f"{__package__}.flows.{flow.name}",
        path=folder,
        pull_steps=[
            {"prefect.deployments.steps.set_working_directory": {"directory": folder}},
        ],
        parameters={"config": configuration.file.name},
        parameter_openapi_schema=parameter_schema(flow).model_dump_for_openapi(),
        enforce_parameter_schema=True,
        tags=["pegboard", board_tag(configuration.uri)],
        schedules=schedules,
        work_pool_name=options.pool,
        work_queue_name=name if flow is reindex else "default",
        job_variables={"env": environment, **options.job_variables},
    )


def board_automations(
    uri: str,
    name: str,
    deployments: dict[str, UUID],
    block: UUID | None,
    *,
    watched: bool = False,
) -> list[AutomationCore]:
    """Return the automations of a board: its trigger, the ends of lost runs, the next start of its
    watch, and its alerts.

    Args:
        block: the notification block of the alerts; None for no alerts.
        watched: whether the watch has a schedule.
    """
    automations = [
        _start_on_change(uri, deployments["reindex"]),
        *_end_lost_runs(uri),
    ]
    if watched:
        automations.append(_start_watch_again(deployments["watch"]))
    if block is not None:
        automations += _alerts(uri, block)
    for automation in automations:
        automation.name = f"pegboard {name}: {automation.name}"
        automation.tags = [board_tag(uri)]
    return automations


def _start_on_change(uri: str, deployment: UUID) -> AutomationCore:
    resource = board_resource(uri)
    catalog = "{{ event.resource.id.partition('.catalog.')[2] | default('all', true) }}"
    run: Any = RunDeployment(
        source="selected",
        deployment_id=deployment,
        parameters={"catalog": catalog},
        job_variables=None,
    )
    return AutomationCore(
        name="a changed catalog is indexed",
        description="A build of the catalog that the event's resource names, or of all.",
        trigger=_reactive([CATALOG_CHANGED], {"prefect.resource.id": [resource, f"{resource}.*"]}),
        actions=[run],
    )


def _end_lost_runs(uri: str) -> list[AutomationCore]:
    # Events of states may come late, each after the one before; heartbeats and RUN_ENDED do not.
    # Running counts, too: a phase may be lost before its first heartbeat is sent.
    silent = EventTrigger(
        posture=Posture.Proactive,
        after={"prefect.flow-run.Running", HEARTBEAT},
        expect={"prefect.flow-run.*", RUN_ENDED},
        match=ResourceSpecification.model_validate({"prefect.resource.id": "prefect.flow-run.*"}),
        match_related=[_related("tag", board_tag(uri))],
        for_each={"prefect.resource.id"},
        threshold=1,
        within=timedelta(seconds=LOST_SECONDS),
    )
    stuck = silent.model_copy(
        update={
            "after": {"prefect.flow-run.Pending"},
            "expect": {HEARTBEAT, *(f"prefect.flow-run.{state}" for state in STARTED)},
            "within": timedelta(seconds=PENDING_SECONDS),
        }
    )
    return [
        _crash("lost runs end", silent, "No heartbeat for two minutes; the process is lost."),
        _crash("runs lost before they start end", stuck, "Not started for ten minutes; lost."),
    ]


def _crash(name: str, trigger: EventTrigger, message: str) -> AutomationCore:
    action = ChangeFlowRunState(
        name="Crashed", state=StateType.CRASHED, message=message, force=False
    )
    return AutomationCore(name=name, trigger=trigger, actions=[action])


def _start_watch_again(deployment: UUID) -> AutomationCore:
    """Start a watch again whose process was lost or whose time is over. One that ends within a
    minute of such a start waits for its schedule.
    """
    run: Any = RunDeployment(
        source="selected", deployment_id=deployment, parameters=None, job_variables=None
    )
    trigger = _reactive(
        ["prefect.flow-run.Crashed", "prefect.flow-run.Completed"],
        {"prefect.resource.id": "prefect.flow-run.*"},
        [_related("deployment", str(deployment))],
        within=timedelta(minutes=1),
    )
    return AutomationCore(name="a watch that ended starts again", trigger=trigger, actions=[run])


def _alerts(uri: str, block: UUID) -> list[AutomationCore]:
    resource = board_resource(uri)
    # Phases have the tag, too, but no deployment.
    deployed = [_related("tag", board_tag(uri)), _related("deployment", "*")]
    failed = [f"prefect.flow-run.{state}" for state in ("Failed", "Crashed", "Incomplete")]
    payload = "{{ event.payload"
    return [
        _alert(
            "a source failed",
            _reactive([SOURCE_FAILED], {"prefect.resource.id": f"{resource}.*"}),
            block,
            f"Pegboard: {payload}.catalog }}}} failed",
            f"{payload}.problems | join('\\n') }}}}",
        ),
        _alert(
            "a release is held",
            _reactive([HELD], {"prefect.resource.id": resource}),
            block,
            f"Pegboard: release {payload}.release }}}} is held",
            f"{payload}.reasons | join('\\n') }}}}",
        ),
        _alert(
            "a run failed",
            _reactive(failed, {"prefect.resource.id": "prefect.flow-run.*"}, deployed),
            block,
            "Pegboard: {{ flow_run.name }} is {{ flow_run.state.name }}",
            "{{ flow_run|ui_url }}\n{{ flow_run.state.message }}",
        ),
    ]


def _alert(
    name: str, trigger: EventTrigger, block: UUID, subject: str, body: str
) -> AutomationCore:
    action = SendNotification(block_document_id=block, subject=subject, body=body)
    return AutomationCore(name=name, trigger=trigger, actions=[action])


def _related(role: str, name: str) -> ResourceSpecification:
    """Return what matches events with a tag or a deployment."""
    labels = {"prefect.resource.id": f"prefect.{role}.{name}", "prefect.resource.role": role}
    return ResourceSpecification.model_validate(labels)


def _reactive(
    events: Sequence[str],
    match: dict[str, Any],
    related: Sequence[ResourceSpecification] = (),
    within: timedelta = timedelta(0),
) -> EventTrigger:
    """Return a trigger that fires at each of the events, but not again within some time."""
    return EventTrigger(
        posture=Posture.Reactive,
        expect=set(events),
        match=ResourceSpecification.model_validate(match),
        match_related=[*related],
        threshold=1,
        within=within,
    )


def _set_automations(
    client: "SyncPrefectClient", tag: str, automations: Sequence[AutomationCore]
) -> None:
    """Make or change the automations of a board, and remove its others: alerts that it has no more,
    and those of another name, whose trigger would start a second build.
    """
    of_board = AutomationFilter(tags=AutomationFilterTags(all_=[tag]))
    existing = client.read_automations(automations=of_board)
    ids = {row.name: row.id for row in existing}
    current: set[UUID] = set()
    for automation in automations:
        key = ids.get(automation.name)
        if key is None:
            client.create_automation(automation)
        else:
            client.update_automation(key, automation)
            current.add(key)
    for row in existing:
        if row.id not in current and row.name.startswith("pegboard "):
            client.delete_automation(row.id)


def _block(client: "SyncPrefectClient", notify: str | None) -> UUID | None:
    """Return the id of a notification block; None if none is named."""
    if notify is None:
        return None
    kind, _, name = notify.partition("/")
    try:
        block = client.read_block_document_by_name(name, kind)
    except ObjectNotFound:
        raise ConfigurationError(
            f"--notify {notify}: the server has no such block. Make one in its UI under Blocks, "
            f"and give its type and name as `prefect block ls` lists them."
        ) from None
    return block.id
