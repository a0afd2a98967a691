"""The LanceDB database of a board for writers; readers use `reading.py`."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from pegboard.store.database import (
    database_address,
    missing_tables,
    opening_options,
    store_errors,
)
from pegboard.store.reading import ReaderDatabase

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

NO_TAG = "does not exist"
EMPTY_TAG = "EOF while parsing"
"""Part of Lance's messages for a missing tag, and for a tag whose file is empty."""
MAX_TABLES = 1_000_000
"""Maximum number of tables that LanceDB lists."""


def connect(uri: str, explicit_options: Mapping[str, str] | None = None) -> "DBConnection":
    """Return the database of the board at `uri` for writers; its handles see the newest version.

    Args:
        explicit_options: storage options that take precedence over configuration and environment
            (see `storage.py`).

    Raises StoreError if the store refuses, or does not answer within the option `open_timeout`.
    """
    import lancedb

    options, timeout = opening_options(uri, explicit_options)
    if timeout is not None:  # LanceDB alone waits for minutes if a store does not answer
        ReaderDatabase(uri, explicit_options)
    with store_errors(uri):
        return lancedb.connect(
            database_address(uri),
            read_consistency_interval=timedelta(0),
            storage_options=options or None,
        )


def open_table(
    database: "DBConnection", name: str, uri: str, version: int | None = None
) -> "Table":
    """Return a table for writers, pinned to a version if one is given. Raises BoardNotFound."""
    with missing_tables(uri, name, version):
        table = database.open_table(name)
        if version is not None:
            table.checkout(version)
        return table


def set_tag(table: "Table", name: str, version: int, *, renew: bool = False) -> None:
    """Move a tag of a table to a version, or create it.

    A tag may be empty if the disk was full while it was moved; it is created again.

    Args:
        renew: write the tag, and so its date, even if it has that version.
    """
    tags = table.tags
    try:
        if renew or tags.get_version(name) != version:
            tags.update(name, version)
        return
    except (RuntimeError, ValueError) as error:
        if EMPTY_TAG in str(error):
            tags.delete(name)
        elif NO_TAG not in str(error):
            raise
    try:
        tags.create(name, version)
    except (OSError, RuntimeError, ValueError):
        # Lance retries a request whose response was lost, and then finds its own tag.
        with suppress(OSError, RuntimeError, ValueError):
            if tags.get_version(name) == version:
                return
        raise


def table_names(database: "DBConnection") -> list[str]:
    """Return the names of all tables of the database."""
    return database.list_tables(limit=MAX_TABLES).tables
