"""Where a build makes its heavy calls (`[run]` in pegboard.toml): in its own process, or on an
executor of processes of its machine (loky) or of a Dask cluster.

A call is given names, digests, settings and some rows, and returns rows or counts: what is
published does not depend on where it is made. Workers of a cluster need the same Pegboard, the
board under the same address, and their own secrets in their environment: none is sent.
"""

import logging
import os
import pickle
import signal
import time
from collections.abc import Generator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any, TypeVar

from pegboard.encoders.batching import processors
from pegboard.errors import ConfigurationError, PegboardError
from pegboard.store.storage import remember_options
from tasks.settings.configuration import Configuration

T = TypeVar("T")
ATTEMPTS = 3
"""Attempts of a call. A lost worker breaks the executor, also for the calls of the others."""
CONNECT_SECONDS = 10
"""Seconds to wait for a cluster's scheduler, and then for its first worker."""
PARENT_SECONDS = 1.0
"""Seconds between two checks of a worker that its build still runs."""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "LANCE_CPU_THREADS",
)
"""Variables that limit the threads of a worker's libraries, which read them when they load."""


@contextmanager
def open_engine(configuration: Configuration) -> Generator["Engine | DaskEngine | None"]:
    """Open the engine of a configuration, and close it at the end; None for `local`.

    Raises:
        ConfigurationError: Dask is not installed.
        PegboardError: the Dask cluster does not answer, or has no worker.
    """
    settings = configuration.run
    if settings.engine == "local":
        yield None
        return
    board = configuration.uri, configuration.board.storage
    engine = (
        DaskEngine(*board, settings.workers, settings.address)
        if settings.address
        else Engine(*board, settings.workers)
    )
    with closing(engine):
        yield engine


class Engine:
    """Makes calls in processes of this machine, which it starts for the first one.

    Args:
        uri, storage: the board, and the options of its store.
        workers: how many calls at once; None: one for each core that this process may use.

    Attributes:
        threads: how many threads one call may use.
    """

    def __init__(self, uri: str, storage: Mapping[str, str], workers: int | None) -> None:
        self.workers = workers or processors()
        self.threads = max(1, processors() // self.workers)
        self._board = uri, dict(storage)
        self._lock = Lock()
        self._executor: Executor | None = None
        self._closed = False

    def run(self, call: partial[T]) -> T:
        """Make a call and wait for it; several threads may do so at once. An exception of the step
        is raised as it is.

        Raises:
            PegboardError: the call lost its worker three times.
        """
        lost: BaseException | None = None
        for _ in range(ATTEMPTS):
            executor = self._started()
            try:
                return executor.submit(_work, call).result()
            except BrokenExecutor as error:
                self._discard(executor)
                lost = error
        reason = str(lost).strip().splitlines()[-1:]
        raise PegboardError(
            f"The worker process of {call.func.__name__} ended without an answer, {ATTEMPTS} times "
            f"({''.join(reason)}). Finished work is kept. If memory was short, set [run] workers "
            f'lower than {self.workers}, or engine = "local"; then run again.'
        ) from lost

    def close(self) -> None:
        """End the workers; calls that are waiting raise."""
        with self._lock:
            self._closed, executor, self._executor = True, self._executor, None
        if executor is not None:
            _end(executor)

    def _started(self) -> Executor:
        from loky import ProcessPoolExecutor

        with self._lock:
            if self._closed:
                raise PegboardError("The build has ended.")
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    self.workers,
                    env=thread_limits(self.threads),
                    initializer=_prepare,
                    initargs=(os.getpid(), *self._board),
                )
            return self._executor

    def _discard(self, executor: Executor) -> None:
        """End an executor; the next call starts another."""
        with self._lock:
            if self._executor is executor:
                self._executor = None
        _end(executor)


class DaskEngine:
    """Makes calls on a Dask cluster, which gives that of a lost worker to another.

    Args:
        uri, storage: as for `Engine`.
        workers: how many calls at once; None: one for each thread of the cluster's workers.
        address: the scheduler's.

    Attributes:
        threads: how many threads one call may use.
    """

    def __init__(
        self, uri: str, storage: Mapping[str, str], workers: int | None, address: str
    ) -> None:
        if find_spec("distributed") is None:
            raise ConfigurationError(
                '[run] engine = "dask" needs the package distributed, which is not installed. '
                "Install the extra in Pegboard's checkout: pip install ./index '.[dask]'; or set "
                'engine to "processes".'
            )
        self._distributed: Any = import_module("distributed")
        self._board, self._address, self.threads = (uri, dict(storage)), address, 1
        client = None
        try:
            client = self._distributed.Client(
                address, timeout=CONNECT_SECONDS, set_as_default=False
            )
            client.wait_for_workers(1, CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            what = "has no worker" if client else f"does not answer: {error}"
            raise PegboardError(
                f"The Dask cluster at {address} {what}. Start a scheduler and workers with this "
                "Pegboard (`dask scheduler`, `dask worker ADDRESS`), correct [run] address, or set "
                'engine to "processes". Finished work is kept.'
            ) from None
        self._client = client
        self._executor: Executor = client.get_executor(pure=False)
        self.workers: int = workers or sum(client.nthreads().values())

    def run(self, call: partial[T]) -> T:
        """Make a call and wait for it; several threads may do so at once. An exception of the step
        is raised as it is.

        Raises:
            PegboardError: the cluster lost the call, after other attempts.
        """
        future: Future[T] = self._executor.submit(_work_for, *self._board, call)
        try:
            return future.result()
        except (self._distributed.KilledWorker, CancelledError) as error:
            raise PegboardError(
                f"The Dask cluster at {self._address} lost {call.func.__name__}: "
                f"{error or 'its scheduler ended'}. Finished work is kept. If the memory of its "
                "workers was short, give them more, or run fewer on a machine; then run again."
            ) from None

    def close(self) -> None:
        """Leave the cluster; calls that are waiting raise."""
        # It logs the traceback of an attempt to reconnect that this cancels.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        with suppress(Exception):  # what it was given is done or will not be
            self._client.close()


def thread_limits(threads: int) -> dict[str, str]:
    """Return the environment that limits the threads of each library in a worker; settings in the
    environment of this process take precedence.
    """
    return {name: os.environ.get(name, str(threads)) for name in THREAD_VARIABLES}


def _end(executor: Any) -> None:
    executor.shutdown(wait=True, kill_workers=True)


def _prepare(build: int, uri: str, storage: Mapping[str, str]) -> None:
    """Prepare a worker process: it opens the board's store as the build does, prints nothing,
    leaves Ctrl-C to the build, and ends with it.
    """
    remember_options(uri, storage)
    logging.getLogger("pegboard.encoders").setLevel(logging.ERROR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    Thread(target=_end_with, args=(build,), daemon=True).start()


def _end_with(build: int) -> None:
    while os.getppid() == build:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def _work_for(uri: str, storage: Mapping[str, str], call: partial[T]) -> T:
    """Make a call in a worker of a cluster, which resolves `${NAME}` in the options of the board's
    store from its own environment.
    """
    remember_options(uri, storage)
    return _work(call)


def _work(call: partial[T]) -> T:
    """Make a call in a worker; exceptions that do not survive pickling become PegboardError."""
    try:
        return call()
    except Exception as error:
        try:
            portable = isinstance(pickle.loads(pickle.dumps(error)), type(error))  # noqa: S301  our own bytes
        except Exception:
            portable = False
        if portable:
            raise
        raise PegboardError(f"{type(error).__name__}: {error}") from None
