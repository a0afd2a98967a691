"""The tables of a board as a reader needs them: opened at a version, read, searched, and, for
channels, moved by compare-and-set.

Two ways lead to the same tables. LanceDB's compiled core is there in a few hundredths of a second
(`native.py`, `native_tables.py`); LanceDB's Python package does the same and takes seconds to
import. `open_database` takes the core where it is of a version that is known here, else the
package; the environment variable PEGBOARD_LANCEDB=public asks for the package."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from pegboard.store.database import connect, opening_options, store_errors, table_names, within
from pegboard.store.database import open_table as open_at

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table
    from numpy.typing import NDArray

PUBLIC = "PEGBOARD_LANCEDB"
"""The environment variable that makes a reader use LanceDB's Python package, if it says `public`.
"""


class BoardTable(Protocol):
    """A table of a board, at its newest version or, after `checkout`, at one version for good.
    Threads may share it.

    Methods raise what the store raises (OSError, RuntimeError, ValueError); callers turn it into
    StoreError by `store_errors`."""

    def checkout(self, version: int) -> None:
        """Stay at that version."""
        ...

    def schema(self) -> "pa.Schema":
        """The columns."""
        ...

    def count_rows(self) -> int:
        """The number of rows."""
        ...

    def indexed_columns(self) -> set[str]:
        """The columns that have an index of any kind."""
        ...

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> "pa.Table":
        """The rows that a DataFusion condition lets pass, in no order; all columns if None."""
        ...

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
        """The rows with the smallest cosine distance to a vector of shape (dimensions,), nearest
        first, with `_distance`.

        `where` is applied before. `nprobes` (partitions visited), `ef` (candidates kept in a graph)
        and `refine` (how many times `limit` are scored again exactly) are those of the table's
        vector index."""
        ...

    def matching(
        self,
        words: str,
        limit: int,
        columns: Sequence[str],
        *,
        where: str | None = None,
        prefilter: bool = True,
    ) -> "pa.Table":
        """The rows whose `tokens` have any of the words, which blanks separate, best BM25 first,
        with `_score`.
        """
        ...

    def insert(self, rows: "pa.Table", key: str) -> int:
        """Add the rows whose key is not there yet; returns how many were."""
        ...

    def replace(self, rows: "pa.Table", key: str, where: str) -> int:
        """Replace the rows of the same key that meet a condition on `target`; returns how many
        did.
        """
        ...


class BoardDatabase(Protocol):
    """The LanceDB database of a board."""

    def table_names(self) -> list[str]:
        """The names of all tables."""
        ...

    def open_table(self, name: str) -> BoardTable:
        """A table at its newest version. Raises ValueError or FileNotFoundError if there is
        none.
        """
        ...


def open_database(uri: str, storage_options: Mapping[str, str] | None = None) -> BoardDatabase:
    """The database of the board at `uri`, by the fastest way there is. Raises StoreError if the
    store refuses.
    """
    if os.environ.get(PUBLIC) != "public":
        from pegboard.store.native import core

        if core() is not None:
            from pegboard.store.native_tables import NativeDatabase

            with store_errors(uri):
                return NativeDatabase(uri, storage_options)
    return PublicDatabase(connect(uri, storage_options), opening_options(uri, storage_options)[1])


def open_table(
    database: BoardDatabase, name: str, uri: str, version: int | None = None
) -> BoardTable:
    """A table, pinned to a version if one is given. Raises BoardNotFound if there is no such table
    or version.
    """
    return cast("BoardTable", open_at(cast("Any", database), name, uri, version))


class PublicDatabase:
    """A BoardDatabase through LanceDB's Python package."""

    def __init__(self, database: "DBConnection", seconds: float | None = None) -> None:
        self._database, self._seconds = database, seconds

    def table_names(self) -> list[str]:
        """The names of all tables."""
        return table_names(self._database)

    def open_table(self, name: str) -> "PublicTable":
        """A table at its newest version."""
        if self._seconds is None:
            return PublicTable(self._database.open_table(name))
        return PublicTable(within(self._seconds, lambda: self._database.open_table(name)))


class PublicTable:
    """A BoardTable through LanceDB's Python package."""

    def __init__(self, table: "Table") -> None:
        self._table: Any = table  # its query builders carry no usable types

    def checkout(self, version: int) -> None:
        """Stay at that version."""
        self._table.checkout(version)

    def schema(self) -> "pa.Schema":
        """The columns."""
        return self._table.schema

    def count_rows(self) -> int:
        """The number of rows."""
        return self._table.count_rows()

    def indexed_columns(self) -> set[str]:
        """The columns that have an index of any kind."""
        return {column for index in self._table.list_indices() for column in index.columns}

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> "pa.Table":
        """The rows that a condition lets pass."""
        query = self._table.search()
        query = query.select(list(columns)) if columns else query
        query = query.where(where) if where else query
        return (query.limit(limit) if limit else query).to_arrow()

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
        query = self._table.search(
            vector, vector_column_name="vector", query_type="vector"
        ).distance_type("cosine")
        query = query.nprobes(nprobes) if nprobes else query
        query = query.ef(ef) if ef else query
        query = query.refine_factor(refine) if refine else query
        query = query.where(where, prefilter=True) if where else query
        return query.limit(limit).select([*columns, "_distance"]).to_arrow()

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
        query = self._table.search(words, query_type="fts", fts_columns="tokens")
        query = query.where(where, prefilter=prefilter) if where else query
        return query.limit(limit).select([*columns, "_score"]).to_arrow()

    def insert(self, rows: "pa.Table", key: str) -> int:
        """Add the rows whose key is not there yet."""
        return (
            self._table.merge_insert(key)
            .when_not_matched_insert_all()
            .execute(rows)
            .num_inserted_rows
        )

    def replace(self, rows: "pa.Table", key: str, where: str) -> int:
        """Replace the rows of the same key that meet a condition."""
        return (
            self._table.merge_insert(key)
            .when_matched_update_all(where=where)
            .execute(rows)
            .num_updated_rows
        )
