"""LanceDB's compiled core without LanceDB's Python package, for readers that start often.

In ten pairs of processes that open a board and answer one search, the median was 1.1 s with the
core and 3.7 s with `import lancedb` (processor time 0.6 s and 1.8 s): nearly all of the difference
is Python modules that a reader never uses. The core is not a public interface, so only tested
versions of it are used (TESTED); with others, `database.py` uses the package.

The library is registered under its own name, since it can be loaded only once in a process: a later
`import lancedb` finds it there, and where `lancedb` was imported before, its library is used.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from pegboard.errors import StoreError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    import pyarrow as pa

TESTED = "lancedb-0.40.*.dist-info"
MODULE = "lancedb._lancedb"
_lock = Lock()
_loops: "dict[int, AbstractEventLoop]" = {}  # of this process, by its id


@cache
def core() -> Any:
    """Return the module of LanceDB's compiled core, or None for a version that was not tested."""
    from importlib import _bootstrap, util  # pyright: ignore[reportAttributeAccessIssue]

    package = util.find_spec("lancedb")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent
    library = next(folder.glob("_lancedb*.so"), None)
    if library is None or not any(folder.parent.glob(TESTED)):
        return None
    # The import system's own lock: loaded by two threads at once, the library aborts one of them.
    with vars(_bootstrap)["_ModuleLockManager"](MODULE):
        if MODULE not in sys.modules:
            spec: Any = util.spec_from_file_location(MODULE, library)
            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[MODULE] = module
        return sys.modules[MODULE]


def connect_core(folder: str, options: Mapping[str, str]) -> Any:
    """Return a connection of the core to a database whose handles see the newest version."""
    # 0.0 is the interval after which a handle looks for newer versions.
    positional = (None, None, None, None, 0.0, None, dict(options) or None)
    return _run(lambda: core().connect(folder, *positional))


class NativeTable:
    """A `database.BoardTable` through the compiled core; methods as described there."""

    def __init__(self, connection: Any, name: str) -> None:
        self._table = _run(lambda: connection.open_table(name))

    def checkout(self, version: int) -> None:
        try:
            _run(lambda: self._table.checkout(version))
        except RuntimeError as error:
            if "not found" not in str(error).lower():
                raise
            raise ValueError(f"Version {version} no longer exists.") from error

    def indexed_columns(self) -> set[str]:
        indices = _run(lambda: self._table.list_indices())
        return {column for index in indices for column in index.columns}

    def read(self, columns: Any = None, where: Any = None, limit: Any = None) -> "pa.Table":
        return self._rows(lambda query: query, limit, columns, where)

    def nearest(
        self, vector: Any, limit: int, columns: Any, *, where: Any = None, **index: Any
    ) -> "pa.Table":
        import pyarrow as pa

        def build(query: Any) -> Any:
            query = query.nearest_to(pa.array(vector))
            query.column("vector")
            query.distance_type("cosine")
            for name, value in index.items():
                if value:
                    getattr(query, "refine_factor" if name == "refine" else name)(value)
            return query

        return self._rows(build, limit, [*columns, "_distance"], where)

    def matching(
        self, words: str, limit: int, columns: Any, *, where: Any = None, prefilter: Any = True
    ) -> "pa.Table":
        def build(query: Any) -> Any:
            query = query.nearest_to_text({"query": words, "columns": ["tokens"]})
            if not prefilter:
                query.postfilter()
            return query

        return self._rows(build, limit, [*columns, "_score"], where)

    def _rows(self, build: Callable[[Any], Any], limit: Any, columns: Any, where: Any) -> Any:
        import pyarrow as pa

        async def rows() -> "pa.Table":
            query = build(self._table.query())
            if columns:
                query.select_columns(list(columns))
            if where:
                query.where(where)
            if limit:
                query.limit(limit)
            stream = await query.execute()
            return pa.Table.from_batches([batch async for batch in stream], stream.schema)

        return _run(rows)


def _run(call: Callable[[], Awaitable[Any]]) -> Any:
    """Return what a call of the core answers, awaited in a thread that the core has to itself."""
    import asyncio

    async def work() -> Any:
        return await call()

    if _loops and os.getpid() not in _loops:
        raise StoreError(
            "This process was forked from one that had read a board, and LanceDB does not survive "
            "that: in tests, two of five children hung or crashed. Open the board in each process, "
            "and none in the one that forks, or start processes by 'spawn' or 'forkserver'."
        )
    with _lock:
        if not _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            Thread(target=loop.run_forever, name="pegboard-lance", daemon=True).start()
    future = asyncio.run_coroutine_threadsafe(work(), _loops[os.getpid()])
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
