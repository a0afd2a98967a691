"""End runs as Crashed that Prefect believes are running though their process is gone.

Nothing tells Prefect that a machine lost power. The run stays Running, and holds the one slot of
`reindex/nightly` until its lease expires: 225 to 315 s after the kill in Prefect 3.8, which renews
a lease of 300 s every 225 s; longer if the server restarts meanwhile, since leases live in its
memory and slots in its database. Nothing ever ends the run itself.

So every run records its process in its labels, and every run looks for stale ones, as does whoever
starts a worker:

    python -m flows.prefect.stale_runs && prefect worker start --pool pegboard

A waiting `reindex` cannot do it, as it is not started while the slot is held; `watch` has no slot.

A run is ended only if its process is known to be gone: same machine, and another boot, no such
process, or one that started at another time. Runs of other machines and containers are left alone,
and so are those that recorded no process: a Pending run's lease expires, too.
"""

import logging
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.context import FlowRunContext
from prefect.states import Crashed

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

FLOWS = ["reindex", "watch", "sweep"]
LABEL = "pegboard.process."
ACTIVE = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
LEASE_SECONDS = 300
"""How long a running flow renews its lease for in Prefect 3.8."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Process:
    """The identity of a process. `started` is in clock ticks since the boot."""

    machine: str
    boot: str
    namespace: str
    pid: int
    started: int

    def is_gone(self, here: "Process") -> bool:
        """Return whether the process is known to have ended, as seen from the process `here`."""
        if self.machine != here.machine:
            return False
        if self.boot != here.boot:
            return True
        if self.namespace != here.namespace:  # a container's process ids mean nothing here
            return False
        return not _runs(self.pid, self.started)


def clean_up() -> None:
    """At the start of a flow, record its process and end stale runs; a failure is only logged."""
    here, context = this_process(), FlowRunContext.get()
    if here is None or context is None or context.flow_run is None:
        return
    try:
        with get_client(sync_client=True) as client:
            run = client.read_flow_run(context.flow_run.id)
            # A retry may run in another process: the count tells whose labels these are.
            labels = {**asdict(here), "try": run.run_count}
            client.update_flow_run_labels(
                run.id, {LABEL + name: value for name, value in labels.items()}
            )
            end_stale_runs(client, here)
    except httpx.HTTPError as error:
        logger.warning("Stale runs could not be looked up: %s", error)


def end_stale_runs(client: "SyncPrefectClient", here: Process) -> list[FlowRun]:
    """Set the runs of Pegboard's flows whose process is gone to Crashed, and return them."""
    stale = [
        run
        for run in _active_runs(client, flow_filter=FlowFilter(name=FlowFilterName(any_=FLOWS)))
        if (process := process_of(run)) is not None and process.is_gone(here)
    ]
    for run in stale:
        _end(client, run)
        logger.warning(
            "The run %s was still %s, but its process is gone: it is Crashed now",
            run.name,
            run.state_name,
        )
    return stale


def process_of(run: FlowRun) -> Process | None:
    """Return the process that a running flow recorded in its labels; None if this try did not."""
    labels: Mapping[str, object] = run.labels
    recorded = {name: labels.get(LABEL + name) for name in (*Process.__dataclass_fields__, "try")}
    match recorded:
        case {
            "machine": str(machine),
            "boot": str(boot),
            "namespace": str(namespace),
            "pid": int(pid),
            "started": int(started),
            "try": int(number),
        } if number == run.run_count and run.state_type != StateType.PENDING:
            return Process(machine, boot, namespace, pid, started)
        case _:
            return None


def this_process() -> Process | None:
    """Return this process; None without /proc."""
    stat = _stat(os.getpid())
    if stat is None:
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    try:
        machine = Path("/etc/machine-id").read_text("ascii").strip()
    except OSError:
        machine = ""
    # Containers without an id may share a name: then another boot counts as another machine.
    machine = f"{socket.gethostname()}/{machine or boot}"
    return Process(machine, boot, str(Path("/proc/self/ns/pid").readlink()), os.getpid(), stat[1])


def main() -> int:
    """End stale runs once, before a worker is started on this machine."""
    if not os.environ.get("PREFECT_API_URL"):
        print("PREFECT_API_URL is not set; set it to the Prefect server.", file=sys.stderr)
        return 2
    here = this_process()
    if here is None:
        print("Stale runs are found only on systems with /proc.", file=sys.stderr)
        return 2
    try:
        with get_client(sync_client=True) as client:
            ended = end_stale_runs(client, here)
    except httpx.HTTPError as error:
        print(f"The Prefect server does not answer: {error}", file=sys.stderr)
        return 1
    print(f"{len(ended)} stale runs ended" + "".join(f"\n  {run.name} ({run.id})" for run in ended))
    return 0


def _active_runs(
    client: "SyncPrefectClient",
    flow_filter: FlowFilter | None = None,
    deployment: UUID | None = None,
) -> list[FlowRun]:
    return client.read_flow_runs(
        flow_filter=flow_filter,
        flow_run_filter=FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=ACTIVE))
        ),
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
        if deployment
        else None,
    )


def _end(client: "SyncPrefectClient", run: FlowRun) -> None:
    expired = not _holds_lease(client, run)
    client.set_flow_run_state(run.id, Crashed(message="Its process is gone."), force=True)
    if expired and run.deployment_id:
        _count_slots_again(client, run.deployment_id)


def _count_slots_again(client: "SyncPrefectClient", deployment: UUID) -> None:
    """Correct the number of taken slots after ending a run whose lease had expired.

    The server released that run's slot when the lease expired, and releases one again when the run
    ends: that of another run, beside which a third would start.
    """
    name = f"deployment:{deployment}"
    taken = sum(_holds_lease(client, run) for run in _active_runs(client, deployment=deployment))
    if taken > client.read_global_concurrency_limit_by_name(name).active_slots:
        client.update_global_concurrency_limit(
            name, GlobalConcurrencyLimitUpdate(active_slots=taken)
        )


def _holds_lease(client: "SyncPrefectClient", run: FlowRun) -> bool:
    """Return whether a run has a lease on a slot; renewing it is the only way to ask."""
    lease = run.state.state_details.deployment_concurrency_lease_id if run.state else None
    if lease is None:
        return False
    try:
        client.renew_concurrency_lease(lease, LEASE_SECONDS)
    except httpx.HTTPStatusError as error:
        if error.response.status_code in (404, 410):
            return False
        raise
    return True


def _runs(pid: int, started: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    stat = _stat(pid)
    # Z has ended, but was not collected by its parent. What cannot be read counts as running.
    return stat is None or (stat[0] not in "ZX" and stat[1] == started)


def _stat(pid: int) -> tuple[str, int] | None:
    """Return a process's state and start, in clock ticks since the boot; None if unreadable."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[19])


if __name__ == "__main__":
    sys.exit(main())
