"""The tables of a board for readers: a few kinds of queries of tables pinned to a version.

Readers call LanceDB's compiled core without LanceDB's Python package, which they do not need and
whose import takes 1.1 s of processor time on two idle cores; pyarrow, NumPy and the core take .2 s.
The core's interface is private to LanceDB, so its version must be a tested one (`TESTED`), which
this library's dependencies pin.

The core can be loaded only once in a process, so it is registered under LanceDB's name for it: a
later `import lancedb` finds it, and a core that `lancedb` has loaded before is used here.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pegboard.errors import StoreError
from pegboard.event_loops import run_in_loop, was_forked
from pegboard.store.database import (
    database_address,
    missing_tables,
    opening_options,
    store_errors,
)
from pegboard.store.failures import refuses_credentials

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

Value = TypeVar("Value")

TESTED = "lancedb-0.40.*.dist-info"
"""Pattern of the metadata folder of a tested LanceDB."""
MODULE = "lancedb._lancedb"
"""LanceDB's name of its compiled core."""
LOOP = "pegboard-lance"
"""The name of the thread whose event loop runs all calls of the core."""


class ReaderDatabase:
    """The LanceDB database of the board at `uri` for readers; its handles see the newest version.

    A connection keeps the credentials that it was opened with. When the store refuses them, the
    database drops the connection, connects with those that the options and the environment now
    have, and repeats the call once.

    Raises StoreError if the store refuses, or does not answer within the option `open_timeout`.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._uri = uri
        self._explicit_options = storage_options
        with store_errors(uri):
            self._connection: _Connection | None = self._connect()

    def open_table(self, name: str, version: int | None = None) -> "BoardTable":
        """Return a table, pinned to a version if one is given. Raises BoardNotFound."""
        with missing_tables(self._uri, name, version):
            return BoardTable(self, name, version)

    def call(self, function: "Callable[[_Connection], Value]") -> Value:
        """Return the function's result for the connection; for a new connection if the store
        refuses the credentials of this one.
        """
        connection = self._connection
        if connection is not None:
            try:
                return function(connection)
            except (OSError, RuntimeError, ValueError) as error:
                if not refuses_credentials(error):
                    raise
        return function(self._successor(connection))

    def _successor(self, refused: "_Connection | None") -> "_Connection":
        """Return the connection if another thread has replaced the refused one, else a new one.

        Threads do not wait for one another: a refusal takes LanceDB seconds of retries.
        """
        connection = self._connection
        if connection is None or connection is refused:
            self._connection = None
            connection = self._connect()
            self._connection = connection
        return connection

    def _connect(self) -> "_Connection":
        options, timeout = opening_options(self._uri, self._explicit_options)
        address = database_address(self._uri)
        return _Connection(_run(lambda: _connect(address, options or None), timeout), timeout)


@dataclass(frozen=True, slots=True, eq=False)
class _Connection:
    """A connection to a database.

    Attributes:
        core: the core's connection.
        timeout: the timeout in seconds for opening a table; None for a folder.
    """

    core: Any
    timeout: float | None

    def open_table(self, name: str, version: int | None) -> Any:
        """Return the core's table. Raises ValueError if it or the version does not exist."""
        table = _run(lambda: self.core.open_table(name), self.timeout)
        if version is not None:
            try:
                _run(lambda: table.checkout(version))
            except RuntimeError as error:
                if "not found" not in str(error).lower():
                    raise
                raise ValueError(f"Version {version} no longer exists.") from error
        return table


class BoardTable:
    """A table of a board for readers, at its newest version or pinned to one.

    Thread-safe. Methods raise the store's errors (OSError, RuntimeError, ValueError), which callers
    convert to StoreError by `store_errors`.
    """

    def __init__(self, database: ReaderDatabase, name: str, version: int | None) -> None:
        self._database = database
        self._name = name
        self._version = version
        self._opened = database.call(self._open)

    def _open(self, connection: _Connection) -> tuple[_Connection, Any]:
        return connection, connection.open_table(self._name, self._version)

    def _run(self, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """Await a call of the core's table, which is opened again after its database connected
        again.
        """

        def run(connection: _Connection) -> Any:
            opened_by, table = self._opened
            if opened_by is not connection:
                self._opened = self._open(connection)
                _, table = self._opened
            return _run(lambda: call(table))

        return self._database.call(run)

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> "pa.Table":
        """Return the rows that pass a DataFusion condition, in no order.

        Args:
            columns: the columns to read; None for all.
        """
        return self._rows(lambda query: query, limit, columns, where)

    def nearest(
        self,
        vector: "NDArray[np.float32]",
        limit: int,
        columns: Sequence[str],
        *,
        where: str | None = None,
        nprobes: int | None = None,
    ) -> "pa.Table":
        """Return the rows with the smallest cosine distance, nearest first, with `_distance`.

        Args:
            vector: shape (dimensions,).
            where: a condition applied before the search.
            nprobes: the number of partitions to visit.
        """
        import pyarrow as pa

        def build(query: Any) -> Any:
            query = query.nearest_to(pa.array(vector))
            query.column("vector")
            query.distance_type("cosine")
            if nprobes:
                query.nprobes(nprobes)
            return query

        return self._rows(build, limit, [*columns, "_distance"], where)

    def matching(
        self,
        words: str,
        limit: int,
        columns: Sequence[str],
        *,
        where: str | None = None,
        prefilter: bool = True,
    ) -> "pa.Table":
        """Return the rows whose `tokens` have any of the words, best BM25 first, with `_score`.

        Args:
            words: words separated by blanks.
            prefilter: whether the condition is applied before the search, instead of afterwards.
        """

        def build(query: Any) -> Any:
            query = query.nearest_to_text({"query": words, "columns": ["tokens"]})
            if not prefilter:
                query.postfilter()
            return query

        return self._rows(build, limit, [*columns, "_score"], where)

    def _rows(
        self,
        build: Callable[[Any], Any],
        limit: int | None,
        columns: Sequence[str] | None,
        where: str | None,
    ) -> "pa.Table":
        import pyarrow as pa

        async def rows(table: Any) -> "pa.Table":
            query = build(table.query())
            if columns:
                query.select_columns(list(columns))
            if where:
                query.where(where)
            if limit:
                query.limit(limit)
            stream = await query.execute()
            return pa.Table.from_batches([batch async for batch in stream], stream.schema)

        return self._run(rows)


@cache
def core() -> Any:
    """Return the module of LanceDB's compiled core.

    Raises StoreError if LanceDB is not installed, or its version was not tested.
    """
    from importlib import _bootstrap, util  # pyright: ignore[reportAttributeAccessIssue]

    package = util.find_spec("lancedb")
    folder = Path(package.origin).parent if package and package.origin else Path()
    library = next(folder.glob("_lancedb*.so"), None)
    if library is None or not any(folder.parent.glob(TESTED)):
        raise StoreError(
            f"Boards are read with LanceDB 0.40, which is not in {folder.absolute().parent}. "
            "Install it: pip install 'lancedb>=0.40,<0.41'"
        )
    # The import system's lock: if two threads load the library, it aborts one of them.
    with vars(_bootstrap)["_ModuleLockManager"](MODULE):
        if MODULE not in sys.modules:
            spec: Any = util.spec_from_file_location(MODULE, library)
            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[MODULE] = module
        return sys.modules[MODULE]


async def _connect(address: str, options: dict[str, str] | None) -> Any:
    # 0.0 is the interval after which a handle looks for newer versions.
    return await core().connect(address, None, None, None, None, 0.0, None, options)


def _run(call: Callable[[], Awaitable[Any]], timeout: float | None = None) -> Any:
    """Await a call of the core in the thread `LOOP`, and return its result.

    Raises TimeoutError after `timeout` seconds.
    """

    async def work() -> Any:
        return await call()

    if was_forked(LOOP):
        raise StoreError(
            "This process was forked from one that had read a board, and LanceDB does not survive "
            "that: in tests, two of five children hung or crashed. Open the board in each process, "
            "and none in the one that forks, or start processes by 'spawn' or 'forkserver'."
        )
    future = run_in_loop(LOOP, work())
    try:
        return future.result(timeout)
    except BaseException as error:
        if future.cancel() and isinstance(error, TimeoutError):
            raise TimeoutError(f"no answer within {timeout:g} s") from None
        raise
