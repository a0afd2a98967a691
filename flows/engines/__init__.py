"""Where a build makes its heavy calls: in threads of its own process, in other processes of its
machine, or on a Dask or Ray cluster (`[run]` in pegboard.toml).

A call is a step with names, digests and settings as arguments; it finds its data in the lake, and
returns a few counts. So an engine only has to make a call somewhere else, and what is published
does not depend on where. Workers need the same Pegboard, the board under the same address, and
their own secrets in their environment: none is sent.
"""

from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Protocol, TypeVar

from flows.engines.work import Setup
from pegboard.errors import ConfigurationError
from tasks.settings.configuration import Configuration

T = TypeVar("T")
PACKAGES = {"dask": "distributed", "ray": "ray"}
"""What the extra of each engine installs."""


class Engine(Protocol):
    """Makes calls in other processes, which it starts for the first one."""

    @property
    def workers(self) -> int:
        """How many calls can run at once."""
        ...

    @property
    def threads(self) -> int | None:
        """How many threads one call may use; None on machines that are not this one."""
        ...

    def run(self, call: partial[T]) -> T:
        """Make a call and wait for it; several threads may do so at once. An exception of the step
        is raised as it is. If its worker is lost, the call is made once more.

        Raises:
            PegboardError: there is no worker, or it was lost twice.
        """
        ...

    def close(self) -> None:
        """End the workers that this engine started; calls that are waiting raise."""
        ...


@contextmanager
def open_engine(configuration: Configuration) -> Generator[Engine | None]:
    """Open the engine of a configuration, and close it at the end; None for `local`.

    Raises:
        ConfigurationError: the engine's extra is not installed.
    """
    if configuration.run.engine == "local":
        yield None
        return
    with closing(_engine(configuration)) as engine:
        yield engine


def _engine(configuration: Configuration) -> Engine:
    settings = configuration.run
    setup = Setup(configuration.uri, configuration.board.storage)
    if settings.engine == "processes":
        from flows.engines.processes import Processes

        return Processes(setup, settings.workers)
    _check_extra(settings.engine)
    if settings.engine == "dask":
        from flows.engines.dask_cluster import DaskCluster

        return DaskCluster(setup, settings.address, settings.workers)
    from flows.engines.ray_cluster import RayCluster

    return RayCluster(setup, settings.address, settings.workers)


def _check_extra(engine: str) -> None:
    package = PACKAGES[engine]
    if find_spec(package) is None:
        raise ConfigurationError(
            f'[run] engine = "{engine}" needs the package {package}, which is not installed. '
            f"Install the extra in Pegboard's folder: pip install -e '.[{engine}]'; or set engine "
            f'to "processes".'
        )
