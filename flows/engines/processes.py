"""Workers that are processes of this machine, one call at a time each.

Each is a Python of its own, started without the caller's main module, so that scripts need no
guard; its libraries are told how many threads to use before they load. Calls and answers pass
through a socket. Where its other end closes, a worker ends, so none outlives a killed build by more
than a call."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Lock
from typing import Any, TypeVar

from flows.engines.work import Setup, packed, thread_limits, work, workers_here
from pegboard.errors import PegboardError

T = TypeVar("T")
START = "import sys; sys.path[:] = sys.argv[2:]; from flows.engines.processes import serve; serve()"
ATTEMPTS = 2
EXIT_SECONDS = 5
"""How long a process that closed its socket may take to end."""


class Processes:
    """Makes calls in processes, which are started when they are needed; see `Engine`."""

    def __init__(self, setup: Setup, workers: int | None) -> None:
        self.workers, self.threads = workers_here(workers)
        self._setup, self._closed, self._lock = setup, False, Lock()
        self._started: set[_Process] = set()
        self._idle = SimpleQueue[_Process | None]()
        for _ in range(self.workers):
            self._idle.put(None)

    def run(self, call: partial[T]) -> T:
        message = pickle.dumps((self._setup, packed(call)))
        process, status = self._idle.get(), 0
        try:
            for _ in range(ATTEMPTS):
                process = process or self._start()
                try:
                    answer = process.ask(message)
                except (EOFError, OSError):
                    status, process = self._after_loss(process), None
                    continue
                return _result(answer)
        finally:
            self._idle.put(process)
        raise PegboardError(_lost(call, status, self.workers))

    def close(self) -> None:
        with self._lock:
            self._closed, processes = True, list(self._started)
        for process in processes:
            process.end()

    def _start(self) -> "_Process":
        with self._lock:
            if self._closed:
                raise PegboardError("The build has ended.")
            process = _Process(self.threads)
            self._started.add(process)
        return process

    def _after_loss(self, process: "_Process") -> int:
        with self._lock:
            self._started.discard(process)
        return process.end(EXIT_SECONDS)


class _Process:
    def __init__(self, threads: int) -> None:
        self._pipe, theirs = Pipe()
        # A session of its own: Ctrl-C is for the build, which ends its workers.
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", START, str(theirs.fileno()), *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **thread_limits(threads)},
            start_new_session=True,
        )
        theirs.close()

    def ask(self, message: bytes) -> Any:
        """Return the answer to a message. Raises EOFError or OSError where the process ended."""
        self._pipe.send_bytes(message)
        return pickle.loads(self._pipe.recv_bytes())  # noqa: S301  from our own process

    def end(self, patience: float = 0) -> int:
        """Kill the process, unless it ends by itself within so many seconds; returns its status."""
        if patience:
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(patience)
        self._process.kill()
        return self._process.wait()


def serve() -> None:
    """Make calls until the build closes the socket whose number is the first argument."""
    import logging

    # The build reports how many texts were truncated, as it does where it encodes them itself.
    logging.getLogger("pegboard.encoders").setLevel(logging.ERROR)
    pipe = Connection(int(sys.argv[1]))
    with suppress(EOFError, OSError):
        while True:
            message = pipe.recv_bytes()
            pipe.send_bytes(pickle.dumps(_answer(partial(_work, message))))


def _work(message: bytes) -> Any:
    return work(*pickle.loads(message))  # noqa: S301  from the process that started this one


def _answer(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


def _result(answer: tuple[Any, Exception | None]) -> Any:
    result, error = answer
    if error is not None:
        raise error
    return result


def _lost(call: partial[Any], status: int, workers: int) -> str:
    how = f"exit status {status}"
    if status < 0:
        with suppress(ValueError):
            how = signal.Signals(-status).name
    return (
        f"The worker process of {call.func.__name__} ended without an answer, twice ({how}). "
        f"Finished work is kept. If memory was short, set [run] workers lower than {workers}, or "
        f'engine = "local"; then run again.'
    )
