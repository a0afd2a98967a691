"""Where a build makes its heavy calls (`[run]` in pegboard.toml): in its own process, or on an
executor of processes of its machine (loky) or of a Dask cluster.

The arguments of a call are names, digests and settings, its data are in the lake, and it returns a
few counts: what is published does not depend on where it is made. Workers need the same Pegboard,
the board under the same address, and their own secrets in their environment: none is sent.
"""

import logging
import os
import pickle
import signal
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any, TypeVar

from pegboard import __version__
from pegboard.encoders.batching import processors
from pegboard.errors import ConfigurationError, PegboardError
from pegboard.store.storage import remember_options
from tasks.settings.configuration import Configuration

T = TypeVar("T")
ATTEMPTS = 3
"""A worker that is lost breaks the executor, and with it the calls of the other workers."""
CONNECT_SECONDS = 10
WORKER_SECONDS = 60.0
"""How long a cluster may have no worker at first: it may be starting some."""
PARENT_SECONDS = 1.0
"""How often a worker checks that its build still runs."""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "LANCE_CPU_THREADS",
)
"""What the libraries of a worker read when they load."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker needs before it makes a call. Secrets in the options of the board's store are
    `${NAME}`, which the worker resolves from its own environment.
    """

    uri: str
    storage: Mapping[str, str] = field(default_factory=dict[str, str])
    version: str = __version__


@contextmanager
def open_engine(configuration: Configuration) -> Generator["Engine | None"]:
    """Open the engine of a configuration, and close it at the end; None for `local`.

    Raises:
        ConfigurationError: Dask is not installed.
    """
    settings = configuration.run
    if settings.engine == "local":
        yield None
        return
    if settings.engine == "dask" and find_spec("distributed") is None:
        raise ConfigurationError(
            '[run] engine = "dask" needs the package distributed, which is not installed. Install '
            "the extra in Pegboard's folder: pip install -e '.[dask]'; or set engine to "
            '"processes".'
        )
    setup = Setup(configuration.uri, configuration.board.storage)
    if settings.address:
        engine = DaskEngine(setup, settings.workers, settings.address)
    else:
        engine = Engine(setup, settings.workers)
    with closing(engine):
        yield engine


class Engine:
    """Makes calls in processes of this machine, which it starts for the first one.

    Args:
        workers: how many calls at once; None: one for each core that this process may use.

    Attributes:
        threads: how many threads one call may use; None on machines that are not this one.
    """

    def __init__(self, setup: Setup, workers: int | None) -> None:
        self._limit: int | None = workers or processors()
        self.threads: int | None = max(1, processors() // self._limit)
        self._setup, self._lock = setup, Lock()
        self._executor: Executor | None = None
        self._closed = False

    @property
    def workers(self) -> int:
        """How many calls can run at once."""
        return self._limit or 1

    def run(self, call: partial[T]) -> T:
        """Make a call and wait for it; several threads may do so at once. An exception of the step
        is raised as it is.

        Raises:
            PegboardError: there is no worker, or the call lost its worker three times.
        """
        lost: BaseException | None = None
        for _ in range(ATTEMPTS):
            executor = self._started()
            try:
                return self._result(executor.submit(work, self._setup, pickle.dumps(call)), call)
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
        """End the workers that this engine started; calls that are waiting raise."""
        with self._lock:
            self._closed, executor, self._executor = True, self._executor, None
        if executor is not None:
            self._end(executor)

    def _started(self) -> Executor:
        with self._lock:
            if self._closed:
                raise PegboardError("The build has ended.")
            if self._executor is None:
                self._executor = self._start()
            return self._executor

    def _discard(self, executor: Executor) -> None:
        """End an executor; the next call starts another."""
        with self._lock:
            if self._executor is executor:
                self._executor = None
        self._end(executor)

    def _start(self) -> Executor:
        from loky import ProcessPoolExecutor

        return ProcessPoolExecutor(
            self._limit,
            env=thread_limits(self.threads or 1),
            initializer=_be_quiet,
            initargs=(os.getpid(),),
        )

    def _end(self, executor: Any) -> None:
        executor.shutdown(wait=True, kill_workers=True)

    def _result(self, future: Future[T], call: partial[T]) -> T:
        return future.result()


class DaskEngine(Engine):
    """Makes calls on a Dask cluster, which gives that of a lost worker to another, up to three
    times.

    Args:
        workers: how many calls at once; None: one for each thread of the cluster's workers.
        address: the scheduler's.
    """

    def __init__(self, setup: Setup, workers: int | None, address: str) -> None:
        super().__init__(setup, workers)
        self._limit, self.threads, self._address = workers, None, address
        self._client: Any = None

    @property
    def workers(self) -> int:
        self._started()
        return self._limit or sum(self._client.nthreads().values())

    def _start(self) -> Executor:
        distributed: Any = import_module("distributed")
        try:
            self._client = distributed.Client(
                self._address, timeout=CONNECT_SECONDS, set_as_default=False
            )
            self._client.wait_for_workers(1, WORKER_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            what = "has no worker" if self._client else f"does not answer: {error}"
            raise PegboardError(
                f"The Dask cluster at {self._address} {what}. Start a scheduler and workers with "
                f"this Pegboard (`dask scheduler`, `dask worker ADDRESS`), correct [run] address, "
                f'or set engine to "processes". Finished work is kept.'
            ) from None
        return self._client.get_executor(pure=False)

    def _end(self, executor: Any) -> None:
        # It logs the traceback of an attempt to reconnect that this cancels.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        with suppress(Exception):  # what it was given is done or will not be
            self._client.close()

    def _result(self, future: Future[T], call: partial[T]) -> T:
        distributed: Any = import_module("distributed")
        try:
            return future.result()
        except (distributed.KilledWorker, CancelledError) as error:
            raise PegboardError(
                f"The Dask cluster at {self._address} lost {call.func.__name__}: "
                f"{error or 'its scheduler ended'}. Finished work is kept. If the memory of its "
                f"workers was short, give them more, or run fewer on a machine; then run again."
            ) from None


def thread_limits(threads: int) -> dict[str, str]:
    """Return the environment that limits the threads of each library in a worker; settings in the
    environment of this process take precedence.
    """
    return {name: os.environ.get(name, str(threads)) for name in THREAD_VARIABLES}


def _be_quiet(build: int) -> None:
    """Prepare a worker process: it prints nothing, leaves Ctrl-C to the build, and ends with it."""
    logging.getLogger("pegboard.encoders").setLevel(logging.ERROR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    Thread(target=_end_with, args=(build,), daemon=True).start()


def _end_with(build: int) -> None:
    while os.getppid() == build:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def work(setup: Setup, call: bytes) -> Any:
    """Make a call in a worker, and return its result.

    Args:
        call: pickled: a worker imports nothing of it before it is set up.

    Raises:
        PegboardError: the worker has another version of Pegboard, or cannot load the call.
    """
    if setup.version != __version__:
        raise PegboardError(
            f"This worker has Pegboard {__version__}, the build {setup.version}. Install the same "
            f"on every machine."
        )
    remember_options(setup.uri, setup.storage)
    try:
        step: Callable[[], Any] = pickle.loads(call)  # noqa: S301  from the build of this worker
    except Exception as error:
        raise PegboardError(
            f"This worker cannot load the step: {type(error).__name__}: {error}. Install the same "
            f"Pegboard, extras and plug-ins on every machine."
        ) from None
    try:
        return step()
    except Exception as error:
        try:
            portable = isinstance(pickle.loads(pickle.dumps(error)), type(error))  # noqa: S301  our own bytes
        except Exception:
            portable = False
        if portable:
            raise
        raise PegboardError(f"{type(error).__name__}: {error}") from None
