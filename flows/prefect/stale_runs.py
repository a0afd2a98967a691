"""Runs that Prefect believes are running though their process was killed, ended as Crashed so that
others get their turn.

Nothing tells Prefect that a machine lost power. The run stays Running, and holds the one slot of
`reindex/nightly` until its
lease expires: 225 to 315 s after the kill in Prefect 3.8, which renews a lease of 300 s every 225
s. Longer, if the server
restarts meanwhile: leases live in its memory, slots in its database. Nothing ever ends the run
itself.

So every run notes its process in its labels, and every run, and whoever starts a worker, looks for
the dead:

    python -m flows.prefect.stale_runs && prefect worker start --pool pegboard

A waiting `reindex` cannot do it, as it is not started while the slot is held; `watch` has no slot
and can.

A run is ended only if its process is known to be gone: same machine, and another boot, or no such
process, or one that started at another time. Runs of other machines and containers are not touched,
nor those that never got as far as noting
their process: a Pending run's lease expires, too.
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
    """A process, so that no other is ever taken for it. `started` is in clock ticks since the
    boot.
    """

    machine: str
    boot: str
    namespace: str
    pid: int
    started: int

    def is_gone(self, here: "Process") -> bool:
        """Whether the process is known to have ended, seen from a process that runs here."""
        if self.machine != here.machine:
            return False
        if self.boot != here.boot:
            return True
        if (
            self.namespace != here.namespace
        ):  # a container on this machine: its process ids mean nothing here
            return False
        return not _runs(self.pid, self.started)


def clean_up() -> None:
    """At the start of a flow: note which process runs it, and end the runs whose process is gone.

    It is no reason to fail a run if that does not work: the next one tries again.
    """
    here, context = this_process(), FlowRunContext.get()
    if here is None or context is None or context.flow_run is None:
        return
    try:
        with get_client(sync_client=True) as client:
            run = client.read_flow_run(context.flow_run.id)
            # A run that is tried again may run in another process: the count tells whose labels
            # these are.
            labels = {**asdict(here), "try": run.run_count}
            client.update_flow_run_labels(
                run.id, {LABEL + name: value for name, value in labels.items()}
            )
            end_stale_runs(client, here)
    except httpx.HTTPError as error:
        logger.warning("Stale runs were not looked for: %s", error)


def end_stale_runs(client: "SyncPrefectClient", here: Process) -> list[FlowRun]:
    """Force the runs of Pegboard's flows whose process is gone to Crashed, and return them."""
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
    """The process that a running flow noted in its labels; None if it did not, or in an earlier
    try.
    """
    labels: Mapping[str, object] = run.labels
    noted = {name: labels.get(LABEL + name) for name in (*Process.__dataclass_fields__, "try")}
    match noted:
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
    """This process; None where there is no /proc to tell processes apart."""
    stat = _stat(os.getpid())
    if stat is None:
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    try:
        machine = Path("/etc/machine-id").read_text("ascii").strip()
    except OSError:
        machine = ""
    # Containers have no id of their own and may share a name: then another boot has to count as
    # another machine.
    machine = f"{socket.gethostname()}/{machine or boot}"
    return Process(machine, boot, str(Path("/proc/self/ns/pid").readlink()), os.getpid(), stat[1])


def main() -> int:
    """End stale runs once, before a worker is started on this machine."""
    if not os.environ.get("PREFECT_API_URL"):
        print(
            "Set PREFECT_API_URL to the Prefect server whose runs are to be looked at.",
            file=sys.stderr,
        )
        return 2
    here = this_process()
    if here is None:
        print("Stale runs can be told only where there is a /proc.", file=sys.stderr)
        return 2
    try:
        with get_client(sync_client=True) as client:
            ended = end_stale_runs(client, here)
    except httpx.HTTPError as error:
        print(
            f"The Prefect server at {os.environ['PREFECT_API_URL']} did not answer: {error}",
            file=sys.stderr,
        )
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
    """Put right the number of taken slots after a run whose lease had expired was ended.

    The server took that run's slot back when the lease expired, and takes one back again when the
    run ends: the slot of whichever run has it now, and a third run would start beside that one.
    """
    name = f"deployment:{deployment}"
    taken = sum(_holds_lease(client, run) for run in _active_runs(client, deployment=deployment))
    if taken > client.read_global_concurrency_limit_by_name(name).active_slots:
        client.update_global_concurrency_limit(
            name, GlobalConcurrencyLimitUpdate(active_slots=taken)
        )


def _holds_lease(client: "SyncPrefectClient", run: FlowRun) -> bool:
    """Whether a run has a lease on a slot; renewing it is the one way to ask."""
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
    # Ended, but not collected by its parent: Z. Not readable: nothing is known, so it counts as
    # running.
    return stat is None or (stat[0] not in "ZX" and stat[1] == started)


def _stat(pid: int) -> tuple[str, int] | None:
    """The state of a process and when it started, in clock ticks since the boot; None if that
    cannot be read.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[19])


if __name__ == "__main__":
    sys.exit(main())
