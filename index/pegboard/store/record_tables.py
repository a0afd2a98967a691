"""The tables `releases` and `channels` of a board: a few rows, each with a checksum that is
compared whenever it is read."""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.errors import BoardNotFound, ConfigurationError, StoreError
from pegboard.store.contract import (
    CHECKSUM,
    TABLES_FOLDER,
    row_checksum,
    table_metadata,
    table_schema,
)
from pegboard.store.database import (
    connect,
    open_table,
    public_uri,
    sql_literals,
    store_errors,
    table_names,
)
from pegboard.store.reading import BoardTable, ReaderDatabase

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection

VERSION_HINT = "latest_version_hint.json"
"""The file in which Lance notes the newest version of a table."""
KEYS = {"releases": "release", "channels": "channel"}
DIFFERS = "its values differ from its checksum"
logger = logging.getLogger("pegboard")


class RecordTables:
    """The database of the board at one address, and the rows of `releases` and `channels`."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        if "\0" in uri:
            raise ConfigurationError(f"The board's address {uri!r} has a NUL character.")
        self.uri = uri
        self._options = storage_options
        self._database: DBConnection | None = None
        self._reader: ReaderDatabase | None = None

    @property
    def database(self) -> "DBConnection":
        """The writers' database, opened at first use. Raises BoardNotFound for a missing folder."""
        if self._database is None:
            self._expect_folder()
            self._database = connect(self.uri, self._options)
        return self._database

    def read_table(self, name: str, version: int | None = None) -> BoardTable:
        """Return a table for reading, pinned to a version if one is given.

        Raises BoardNotFound for a missing folder, table or version.
        """
        if self._reader is None:
            self._expect_folder()
            self._reader = ReaderDatabase(self.uri, self._options)
        return self._reader.open_table(name, version)

    def create(self) -> None:
        """Make the tables `releases` and `channels`, empty, if they are missing."""
        if self._database is None:
            self._database = connect(self.uri, self._options)
        with store_errors(self.uri):
            existing = table_names(self._database)
            for name in KEYS:
                if name not in existing:
                    schema = table_schema(name).with_metadata(table_metadata(name))
                    self._database.create_table(name, schema=schema, exist_ok=True)

    def _check_newest(self) -> None:
        """Raise StoreError if the newest version of the channels is missing, in a folder."""
        if "://" in self.uri:
            return
        versions = Path(self.uri).expanduser() / TABLES_FOLDER / "channels.lance" / "_versions"
        try:
            hint = int(json.loads((versions / VERSION_HINT).read_text("utf-8"))["version"])
        except (OSError, ValueError, TypeError, KeyError):
            return  # it only helps Lance to find the newest version sooner
        newest = 2**64 - 1 - hint
        if hint > 0 and not any((versions / f"{v}.manifest").exists() for v in (newest, hint)):
            raise StoreError(
                f"Version {hint} of table 'channels' of the board at {public_uri(self.uri)} is "
                f"missing, the newest one: a channel would go back to an earlier release. Restore "
                f"{TABLES_FOLDER}/channels.lance/_versions/{newest}.manifest, or move the channel "
                f"again: `pegboard promote RELEASE`."
            )

    def remove_damaged(self, name: str) -> list[str]:
        """Delete the damaged rows of `releases` or `channels`; returns their keys.

        What they held is recorded again by the next build, or by `promote`.
        """
        rows = [row for row in self._read_rows(name) if is_damaged(row)]
        for row in rows:
            logger.warning("%s", self._damaged(name, str(row[KEYS[name]]), DIFFERS))
            with store_errors(self.uri):
                condition = f"{CHECKSUM} = {sql_literals([row[CHECKSUM]])}"
                open_table(self.database, name, self.uri).delete(condition)
        return [str(row[KEYS[name]]) for row in rows]

    def _insert(self, name: str, key: str, row: "pa.Table") -> bool:
        """Add a row unless its key is there; whether it was added."""
        table = open_table(self.database, name, self.uri)
        with store_errors(self.uri):
            merge = table.merge_insert(key).when_not_matched_insert_all()
            return merge.execute(row).num_inserted_rows == 1

    def _replace(self, name: str, key: str, row: "pa.Table", where: str) -> bool:
        """Replace the row of the same key if it meets a condition on `target`; whether it did."""
        table = open_table(self.database, name, self.uri)
        with store_errors(self.uri):
            merge = table.merge_insert(key).when_matched_update_all(where=where)
            return merge.execute(row).num_updated_rows == 1

    def _rows(
        self, name: str, where: str | None = None, columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return rows of `releases` or `channels`. Raises StoreError if one is damaged."""
        rows = self._read_rows(name, where, columns)
        damaged = [row for row in rows if columns is None and is_damaged(row)]
        if damaged:
            raise self._damaged(name, str(damaged[0][KEYS[name]]), DIFFERS)
        return rows

    def _damaged(self, name: str, key: str, problem: str) -> StoreError:
        step = {
            "releases": "Run `pegboard build`: it records the release again. Until then `pegboard "
            "promote RELEASE` moves a channel to another one",
            "channels": "Move the channel again: `pegboard promote RELEASE --channel NAME`",
        }
        return StoreError(
            f"The row '{key}' of table '{name}' of the board at {public_uri(self.uri)} is damaged: "
            f"{problem}. {step[name]}."
        )

    def _read_rows(
        self, name: str, where: str | None = None, columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        try:
            table = self.read_table(name)
        except BoardNotFound:
            raise self._no_board() from None
        with store_errors(self.uri, f"Table '{name}'"):
            return table.read(columns, where).to_pylist()

    def _expect_folder(self) -> None:
        if "://" not in self.uri and not os.path.isdir(os.path.join(self.uri, TABLES_FOLDER)):  # noqa: PTH112, PTH118
            raise self._no_board()

    def _no_board(self) -> BoardNotFound:
        return BoardNotFound(
            f"There is no board at {public_uri(self.uri)}. Expected a folder or an address that "
            f"`pegboard build` made. "
            "Check the address, or make one: `pegboard init`, then `pegboard build`."
        )


def record_row(name: str, **values: Any) -> "pa.Table":
    """Return a row of `releases` or `channels`, with its checksum."""
    import pyarrow as pa

    row = {**values, CHECKSUM: row_checksum(values)}
    return pa.Table.from_pylist([row], schema=table_schema(name))


def is_damaged(row: Mapping[str, Any]) -> bool:
    """Return whether a row differs from its checksum."""
    return row_checksum(row) != row[CHECKSUM]
