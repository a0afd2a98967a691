"""LanceDB's compiled core without LanceDB's Python package, for readers that start often.

`import lancedb` takes seconds, nearly all of it in Python modules that a reader never uses; the
shared library within the package has everything and loads in a hundredth of a second. It is not a
published interface, so only versions that were tried are used (KNOWN), after a look whether all
that is called is there; else `tables.py` takes the package.

The library is registered under its own name, since it can be loaded once in a process only: a later
`import lancedb` finds it there, and where `lancedb` was imported before, its library is used.
"""

import os
import sys
from collections.abc import Coroutine
from contextlib import nullcontext
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pegboard.errors import StoreError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

KNOWN = ("0.40.",)
"""The beginnings of the versions of LanceDB whose core this module was tried with."""
MODULE = "lancedb._lancedb"
ROWS = ("execute", "limit", "select_columns", "where")
CALLED = {
    "Connection": ("open_table", "table_names"),
    "Table": ("checkout", "count_rows", "execute_merge_insert", "list_indices", "query", "schema"),
    "Query": ("nearest_to", "nearest_to_text", *ROWS),
    "VectorQuery": ("column", "distance_type", "ef", "nprobes", "refine_factor", *ROWS),
    "FTSQuery": ("postfilter", *ROWS),
}
"""What is called here of the core's classes."""

Answer = TypeVar("Answer")
_loading = Lock()
_core: list[Any] = []


def core() -> Any:
    """The module of LanceDB's compiled core, or None if it is missing or of a version that is not
    known here.
    """
    with _loading:
        if not _core:
            _core.append(_load())
        return _core[0]


def _load() -> Any:
    from importlib import util

    found = util.find_spec("lancedb")
    folders = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    if not any(
        next(folder.parent.glob(f"lancedb-{known}*.dist-info"), None)
        for folder in folders
        for known in KNOWN
    ):
        return None
    library = next(
        (file for folder in folders for file in sorted(folder.glob("_lancedb*.so"))), None
    )
    with _import_lock():
        module = sys.modules.get(MODULE)
        if module is None:
            spec = util.spec_from_file_location(MODULE, library) if library else None
            if spec is None or spec.loader is None:
                return None
            try:
                module = util.module_from_spec(spec)
                spec.loader.exec_module(module)
            except ImportError:
                return None
            sys.modules[MODULE] = module
    called = (
        (getattr(module, kind, None), name) for kind, names in CALLED.items() for name in names
    )
    return (
        module
        if hasattr(module, "connect") and all(hasattr(kind, name) for kind, name in called)
        else None
    )


def _import_lock() -> Any:
    """The lock that the import system itself takes for the module: loaded twice, by two threads, it
    would abort one of them.
    """
    from importlib import _bootstrap  # pyright: ignore[reportAttributeAccessIssue]

    manager = getattr(_bootstrap, "_ModuleLockManager", None)
    return manager(MODULE) if manager else nullcontext()


class _Loop:
    """An event loop in a thread of its own, which runs the core's coroutines for threads that
    wait.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: AbstractEventLoop | None = None
        self._process = os.getpid()

    def run(self, work: Coroutine[Any, Any, Answer], seconds: float | None) -> Answer:
        import asyncio

        if self._loop is not None and self._process != os.getpid():
            work.close()
            raise StoreError(
                "This process was forked from one that had read a board, and LanceDB does not "
                "survive that: tried, it hung or "
                "crashed in two of five children. Open the board in each process, and none in the "
                "one that forks, or "
                "start processes by 'spawn' or 'forkserver'."
            )
        with self._lock:
            if self._loop is None:
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                Thread(target=self._loop.run_forever, name="pegboard-lance", daemon=True).start()
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result(seconds)
        except TimeoutError:
            if running.cancel() and seconds is not None:
                raise TimeoutError(f"no answer within {seconds:g} s") from None
            raise  # the store's own
        except BaseException:
            running.cancel()
            raise


_loop = _Loop()


def run(work: Coroutine[Any, Any, Answer], seconds: float | None = None) -> Answer:
    """What a coroutine of the core returns. Any thread may call this, those with an event loop of
    their own included.

    Raises TimeoutError after so many seconds, if they are given, and StoreError in a process that
    was forked from one in which the core had been used.
    """
    return _loop.run(work, seconds)
