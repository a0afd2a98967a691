"""Workers of a Ray cluster: one at an address, or one that is started on this machine.

Ray makes a call again whose worker ended, up to `RETRIES` times."""

import logging
import os
import socket
import warnings
from functools import partial
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

from flows.engines.work import Setup, packed, thread_limits, work, workers_here
from pegboard.errors import PegboardError

T = TypeVar("T")
CONNECT_SECONDS = 10
RETRIES = 2


class RayCluster:
    """Makes calls on a Ray cluster; see `flows.engines.Engine`.

    Args:
        address: the head's; None: a cluster of this machine.
        workers: how many calls at once; None: one for each CPU of the cluster, or for each core
            that this process may use.
    """

    def __init__(self, setup: Setup, address: str | None, workers: int | None) -> None:
        self._limit, self.threads = (workers, None) if address else workers_here(workers)
        self._setup, self._address = setup, address
        self._lock = Lock()
        self._work: Any = None

    @property
    def workers(self) -> int:
        self._connected()
        return self._limit or max(1, int(_ray().cluster_resources().get("CPU", 1)))

    def run(self, call: partial[T]) -> T:
        remote, errors = self._connected(), _ray().exceptions
        try:
            return remote.remote(self._setup, packed(call)).future().result()
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
            reason = str(error).strip().partition("\n")[0]
            raise PegboardError(
                f"The Ray worker of {call.func.__name__} was lost {RETRIES + 1} times: {reason} "
                f"Finished work is kept. If memory was short, set [run] workers lower; then run "
                f"again."
            ) from None

    def close(self) -> None:
        with self._lock:
            if self._work is not None:
                self._work = None
                _ray().shutdown()

    def _connected(self) -> Any:
        """The function `work`, on the cluster."""
        with self._lock:
            if self._work is None:
                self._connect()
                self._work = _ray().remote(num_cpus=1, max_retries=RETRIES)(work)
        return self._work

    def _connect(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when it is imported
        ray = _ray()
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if self._address is None:
            limits = {"env_vars": thread_limits(self.threads or 1)}
            with warnings.catch_warnings():
                # Ray starts its own programs; no code of this process runs in a fork.
                warnings.filterwarnings("ignore", "lance is not fork-safe")
                ray.init(num_cpus=self._limit, include_dashboard=False, runtime_env=limits, **quiet)
            return
        try:
            _check_port(self._address)
            ray.init(address=self._address, **quiet)
        except (OSError, RuntimeError) as error:
            raise PegboardError(
                f"No Ray cluster answers at {self._address}: {error}. Start it (`ray start "
                f'--head`), correct [run] address, or set engine to "processes". Finished work is '
                f"kept."
            ) from None


def _ray() -> Any:
    return import_module("ray")


def _check_port(address: str) -> None:
    """Raise OSError within seconds if nothing listens there; Ray itself tries for minutes."""
    if address == "auto":
        return
    parts = urlsplit(address if "://" in address else f"//{address}")
    with socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_SECONDS):
        pass
