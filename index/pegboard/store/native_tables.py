"""The tables of a board through LanceDB's compiled core: what `tables.py` asks for, in the core's
own calls.

How LanceDB's Python package calls the core is in its `query.py`, `table.py` and `_lancedb.pyi`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.database import opening_options
from pegboard.store.native import core, run

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class NativeDatabase:
    """A BoardDatabase through the compiled core. What opens something gives up after the seconds
    that `opening_options` says.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        options, self._seconds = opening_options(uri, storage_options)

        async def connect() -> Any:
            # Positions as in the core's signature; 0.0 is the interval after which a handle looks
            # for newer versions.
            return await core().connect(
                _address(uri), None, None, None, None, 0.0, None, options or None
            )

        self._connection = run(connect(), self._seconds)

    def table_names(self) -> list[str]:
        """The names of all tables."""

        async def ask() -> list[str]:
            names: list[str] = []
            while page := await self._connection.table_names(
                [], names[-1] if names else None, 1000
            ):
                names += page
            return names

        return run(ask())

    def open_table(self, name: str) -> "NativeTable":
        """A table at its newest version."""

        async def ask() -> Any:
            return await self._connection.open_table(name)

        return NativeTable(run(ask(), self._seconds), self._seconds)


class NativeTable:
    """A BoardTable through the compiled core."""

    def __init__(self, table: Any, seconds: float | None = None) -> None:
        self._table, self._seconds = table, seconds

    def checkout(self, version: int) -> None:
        """Stay at that version."""
        try:
            self._ask(lambda table: table.checkout(version), self._seconds)
        except RuntimeError as error:
            if "not found" not in str(error).lower():
                raise
            raise ValueError(f"Version {version} no longer exists.") from error

    def schema(self) -> "pa.Schema":
        """The columns."""
        return self._ask(lambda table: table.schema())

    def count_rows(self) -> int:
        """The number of rows."""
        return self._ask(lambda table: table.count_rows(None))

    def indexed_columns(self) -> set[str]:
        """The columns that have an index of any kind."""
        return {
            column
            for index in self._ask(lambda table: table.list_indices())
            for column in index.columns
        }

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> "pa.Table":
        """The rows that a condition lets pass."""

        return self._rows(lambda query: query, limit, columns, where)

    def nearest(
        self,
        vector: "NDArray[np.float32]",
        limit: int,
        columns: Sequence[str],
        *,
        where: str | None = None,
        nprobes: int | None = None,
        ef: int | None = None,
        refine: int | None = None,
    ) -> "pa.Table":
        """The rows with the smallest cosine distance to a vector."""
        import pyarrow as pa

        def build(query: Any) -> Any:
            query = query.nearest_to(pa.array(vector))
            query.column("vector")
            query.distance_type("cosine")
            for setting, value in (
                (query.nprobes, nprobes),
                (query.ef, ef),
                (query.refine_factor, refine),
            ):
                if value:
                    setting(value)
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
        """The rows whose `tokens` have any of the words."""

        def build(query: Any) -> Any:
            query = query.nearest_to_text({"query": words, "columns": ["tokens"]})
            if not prefilter:
                query.postfilter()
            return query

        return self._rows(build, limit, [*columns, "_score"], where)

    def insert(self, rows: "pa.Table", key: str) -> int:
        """Add the rows whose key is not there yet."""
        return self._merge(rows, key, when_not_matched_insert_all=True).num_inserted_rows

    def replace(self, rows: "pa.Table", key: str, where: str) -> int:
        """Replace the rows of the same key that meet a condition."""
        merged = self._merge(
            rows, key, when_matched_update_all=True, when_matched_update_all_condition=where
        )
        return merged.num_updated_rows

    def _rows(
        self,
        build: Callable[[Any], Any],
        limit: int | None,
        columns: Sequence[str] | None,
        where: str | None,
    ) -> "pa.Table":
        import pyarrow as pa

        async def ask() -> "pa.Table":
            query = build(self._table.query())
            if columns:
                query.select_columns(list(columns))
            if where:
                query.where(where)
            if limit:
                query.limit(limit)
            stream = await query.execute()
            return pa.Table.from_batches([batch async for batch in stream], stream.schema)

        return run(ask())

    def _merge(self, rows: "pa.Table", key: str, **how: Any) -> Any:
        import pyarrow as pa

        asked = {
            "on": [key],
            "when_matched_update_all": False,
            "when_matched_update_all_condition": None,
            "when_not_matched_insert_all": False,
            "when_not_matched_by_source_delete": False,
            "when_not_matched_by_source_condition": None,
            "when_not_matched_by_source_condition_expr": None,
            "timeout": None,
            "use_index": True,
            "use_lsm": None,
            "validate_single_shard": None,
        }
        reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
        return self._ask(lambda table: table.execute_merge_insert(reader, asked | how))

    def _ask(self, call: Callable[[Any], Any], seconds: float | None = None) -> Any:
        async def ask() -> Any:
            return await call(self._table)

        return run(ask(), seconds)


def _address(uri: str) -> str:
    """The database's address as the core takes it: a folder by its absolute path."""
    place = f"{uri.rstrip('/')}/{TABLES_FOLDER}"
    if place.startswith("file:"):
        place = "/" + place.removeprefix("file:").lstrip("/")
    return place if "://" in place else str(Path(place).expanduser().absolute())
