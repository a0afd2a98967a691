"""Workers of a Dask cluster: one at an address, or one that is started on this machine.

Dask gives the call of a worker that ended to another one, up to three times."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import Event, Lock
from typing import Any, TypeVar

from flows.engines.work import Setup, packed, thread_limits, work, workers_here
from pegboard.errors import PegboardError

T = TypeVar("T")
CONNECT_SECONDS = 10
WORKER_SECONDS = 60.0
"""How long a cluster may have no worker: it may be starting some."""
LOOK_SECONDS = 5.0
"""How often a call that waits looks whether the cluster still has workers."""


class DaskCluster:
    """Makes calls on a Dask cluster; see `flows.engines.Engine`.

    Args:
        address: the scheduler's; None: a cluster of this machine.
        workers: how many calls at once; None: one for each thread of the cluster's workers, or for
            each core that this process may use.
    """

    def __init__(self, setup: Setup, address: str | None, workers: int | None) -> None:
        self._limit, self.threads = (workers, None) if address else workers_here(workers)
        self._setup, self._address = setup, address
        self._lock = Lock()
        self._client: Any = None
        self._cluster: Any = None

    @property
    def workers(self) -> int:
        return self._limit or sum(self._connected().nthreads().values())

    def run(self, call: partial[T]) -> T:
        client, done = self._connected(), Event()
        future = client.submit(work, self._setup, packed(call), pure=False)
        future.add_done_callback(lambda _: done.set())
        without_worker = 0.0
        while not done.wait(LOOK_SECONDS):
            without_worker = 0 if client.nthreads() else without_worker + LOOK_SECONDS
            if without_worker > WORKER_SECONDS:
                future.cancel()
                raise PegboardError(_no_worker(self._place()))
        return self._result(future.result, call)

    def close(self) -> None:
        # It logs the traceback of an attempt to reconnect that this cancels.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        with self._lock:
            for part in (self._client, self._cluster):
                if part is not None:
                    with suppress(Exception):  # what it was asked for is done or will not be
                        part.close()

    def _connected(self) -> Any:
        """The client, with at least one worker."""
        with self._lock:
            if self._client is None:
                self._client = self._connect()
        return self._client

    def _connect(self) -> Any:
        distributed: Any = import_module("distributed")
        if self._address is None:
            self._cluster = distributed.LocalCluster(
                n_workers=self._limit,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # None takes a fixed port, which two builds share
                silence_logs=logging.ERROR,
                env=thread_limits(self.threads or 1),
            )
        try:
            client = distributed.Client(
                self._cluster or self._address, timeout=CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise PegboardError(
                f"No Dask scheduler answers at {self._place()} within {CONNECT_SECONDS} s: "
                f"{error}. Start it (`dask scheduler`), correct [run] address, or set engine to "
                f'"processes". Finished work is kept.'
            ) from None
        deadline = time.monotonic() + WORKER_SECONDS
        while not client.nthreads():
            if time.monotonic() > deadline:
                client.close()
                raise PegboardError(_no_worker(self._place()))
            time.sleep(0.2)
        return client

    def _place(self) -> str:
        return self._address or "this machine"

    def _result(self, result: Callable[[], T], call: partial[T]) -> T:
        distributed: Any = import_module("distributed")
        try:
            return result()
        except distributed.KilledWorker as error:
            raise PegboardError(
                f"{call.func.__name__} ended every Dask worker that took it, the last at "
                f"{error.last_worker.address}. Finished work is kept. If their memory was short, "
                f"give them more, or run fewer on a machine; then run again."
            ) from None
        except distributed.CancelledError:
            raise PegboardError(
                f"The Dask scheduler at {self._place()} was lost. Finished work is kept; start it "
                f"and run again."
            ) from None


def _no_worker(place: str) -> str:
    return (
        f"The Dask cluster at {place} has had no worker for {WORKER_SECONDS:.0f} s. Start some "
        f"(`dask worker ADDRESS`) in an environment with this Pegboard, and run again."
    )
