"""The LanceDB database below a board's root: opening it, and turning the store's errors into ours."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from pegboard.contract import TABLES_FOLDER
from pegboard.errors import BoardNotFound, PegboardError, StoreError

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

__all__ = ["connect", "open_table", "public_uri", "public_url", "sql_literals", "store_errors", "table_names"]


def public_uri(uri: str) -> str:
    """A board's address as it may be shown: a folder as it is, an address as `public_url` gives it."""
    return public_url(uri) if "://" in uri else uri


def public_url(url: str) -> str:
    """A URL without user, password, query and fragment, which may hold secrets."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def sql_literals(values: Iterable[str]) -> str:
    """The values as quoted literals of a DataFusion condition, separated by commas: none can become part of the condition."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def connect(uri: str, storage_options: Mapping[str, str] | None = None) -> "DBConnection":
    """The database of the board at `uri`; handles opened through it always see the newest version.

    Raises StoreError if the store refuses.
    """
    import lancedb

    with store_errors(uri):
        return lancedb.connect(
            f"{uri.rstrip('/')}/{TABLES_FOLDER}",
            read_consistency_interval=timedelta(0),
            storage_options=dict(storage_options) if storage_options else None,
        )


def table_names(database: "DBConnection") -> list[str]:
    """The names of all tables of the database."""
    names: list[str] = []
    token: str | None = None
    while True:
        page = database.list_tables(page_token=token)
        names += page.tables
        token = page.page_token
        if not token:
            return names


def open_table(database: "DBConnection", name: str, uri: str, version: int | None = None) -> "Table":
    """A table, pinned to a version if one is given. Raises BoardNotFound if there is no such table or version."""
    with store_errors(uri):
        try:
            table = database.open_table(name)
            if version is not None:
                table.checkout(version)
        except (ValueError, FileNotFoundError) as error:
            if not _says_missing(error):
                raise
            what = f"version {version} of table '{name}'" if version is not None else f"table '{name}'"
            raise BoardNotFound(
                f"The board at {public_uri(uri)} has no {what}. "
                "Check the address; `pegboard build` makes a board, `pegboard releases list` shows what it has."
            ) from error
        return table


@contextmanager
def store_errors(uri: str) -> Generator[None]:
    """Turn what LanceDB and the file system raise into StoreError; Pegboard's own errors pass."""
    try:
        yield
    except PegboardError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        message = str(error).strip().splitlines()
        raise StoreError(
            f"The store of the board at {public_uri(uri)} did not do what was asked: "
            f"{message[0][:500] if message else type(error).__name__}. "
            "Check the address, the credentials in the environment, free space and permissions."
        ) from error


def _says_missing(error: Exception) -> bool:
    text = str(error).lower()
    return "not found" in text or "no longer exists" in text or "does not exist" in text or "not exist" in text
