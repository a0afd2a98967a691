"""What a worker does for a call, whatever the engine."""

import os
import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard import __version__
from pegboard.encoders.batching import processors
from pegboard.errors import PegboardError
from pegboard.store.storage import remember_options

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
    """What a worker has to know before it makes a call.

    Attributes:
        storage: the options of the board's store; secrets only as `${NAME}`, which the worker
            resolves from its own environment.
        version: Pegboard's, which has to be the worker's.
    """

    uri: str
    storage: Mapping[str, str] = field(default_factory=dict[str, str])
    version: str = __version__


def workers_here(wanted: int | None) -> tuple[int, int]:
    """Return how many workers this machine gets, by default one for each core that this process may
    use, and how many threads each may use.
    """
    workers = wanted or processors()
    return workers, max(1, processors() // workers)


def packed(call: Callable[[], Any]) -> bytes:
    """Return a call for `work`: a worker imports nothing of it before it is set up."""
    return pickle.dumps(call)


def work(setup: Setup, call: bytes) -> Any:
    """Make a call in a worker, and return its result.

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
        step = pickle.loads(call)  # noqa: S301  from the build that this worker belongs to
    except Exception as error:
        raise PegboardError(
            f"This worker cannot load the step: {type(error).__name__}: {error}. Install the same "
            f"Pegboard, extras and plug-ins on every machine."
        ) from None
    try:
        return step()
    except Exception as error:
        raise _portable(error) from None


def _portable(error: Exception) -> Exception:
    """Return an error that another process can read: itself, or its words where it cannot travel.
    One that nobody expected brings its traceback.
    """
    if not isinstance(error, PegboardError):
        error.add_note("In a worker:\n" + "".join(traceback.format_exception(error)).rstrip())
    try:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301  our own bytes
    except Exception:
        copy = None
    return error if type(copy) is type(error) else PegboardError(f"{type(error).__name__}: {error}")


def thread_limits(threads: int) -> dict[str, str]:
    """Return the environment in which the libraries of a worker use so many threads each; what the
    environment of this process says stays.
    """
    return {name: os.environ.get(name, str(threads)) for name in THREAD_VARIABLES}
