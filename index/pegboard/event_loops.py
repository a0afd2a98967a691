"""Event loops in dedicated threads, for objects that threads and other event loops share: LanceDB's
core and the clients of LLMs.

The threads are daemons, which do not keep a process alive. A forked child starts its own loops; the
parent's loop objects are never freed, since libraries identify loops by their ids.
"""

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

_lock = Lock()
_loops: dict[tuple[str, int], asyncio.AbstractEventLoop] = {}


def run_in_loop(name: str, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
    """Start a coroutine in this process's loop of that name; cancelling the future cancels it."""
    key = name, os.getpid()
    with _lock:
        if key not in _loops:
            loop = _loops[key] = asyncio.new_event_loop()
            Thread(target=loop.run_forever, name=name, daemon=True).start()
    return asyncio.run_coroutine_threadsafe(work, _loops[key])


def was_forked(name: str) -> bool:
    """Whether only the process from which this one was forked has a loop of that name."""
    processes = [process for loop_name, process in _loops if loop_name == name]
    return bool(processes) and os.getpid() not in processes
