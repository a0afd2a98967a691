"""The LanceDB database below a board's root for writers, and the errors of writers and readers.

Readers use `reading.py`.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.errors import BoardNotFound, ConfigurationError, PegboardError
from pegboard.redaction import public_url
from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.failures import cleaned, damage_error, store_error
from pegboard.store.storage import OPEN_TIMEOUT, storage_options

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

NO_TAG = "does not exist"
EMPTY_TAG = "EOF while parsing"
"""What Lance says of a tag that is missing, and of one whose file is empty."""
MAX_TABLES = 1_000_000
RUST_PANICS = ("PanicException", "RustPanic")
"""The names of what a panic of the compiled core raises, in a call and in a future. The first is no
`Exception`, and neither can be imported.
"""


def connect(uri: str, given: Mapping[str, str] | None = None) -> "DBConnection":
    """Return the database of the board at `uri` for writers; its handles see the newest version.

    Args:
        given: storage options, which go before those configured and those of the environment (see
            `storage.py`).

    Raises StoreError if the store refuses, or does not answer within the option `open_timeout`.
    """
    import lancedb

    from pegboard.store.reading import ReaderDatabase

    options, seconds = opening_options(uri, given)
    if seconds is not None:  # LanceDB by itself waits for a silent store for minutes
        ReaderDatabase(uri, given)
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
    """Make a tag name a version of a table.

    A tag that was being moved when the disk was full may be left empty: it is set anew.

    Args:
        renew: write it again, with today's date, also if it names that version.
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
        # Lance repeats a request whose answer was lost, and then finds its own tag.
        with suppress(OSError, RuntimeError, ValueError):
            if tags.get_version(name) == version:
                return
        raise


def table_names(database: "DBConnection") -> list[str]:
    """Return the names of all tables of the database."""
    return database.list_tables(limit=MAX_TABLES).tables


def opening_options(
    uri: str, given: Mapping[str, str] | None = None
) -> tuple[dict[str, str], float | None]:
    """Return the options as LanceDB takes them, and the seconds within which the store has to
    answer; None for a folder.
    """
    options = storage_options(uri, given)
    text = options.pop(OPEN_TIMEOUT, None)
    try:
        return options, None if text is None else float(text.removesuffix("s"))
    except ValueError:
        raise ConfigurationError(
            f"The storage option {OPEN_TIMEOUT} is '{text}': expected a number of seconds, such "
            f"as 12."
        ) from None


def public_uri(uri: str) -> str:
    """Return a board's address for messages: a folder as it is, else as `public_url` does."""
    return public_url(uri) if "://" in uri else uri


def sql_literals(values: Iterable[str]) -> str:
    """Return the values as quoted literals of a DataFusion condition, separated by commas.

    None of them can become part of the condition.
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


@contextmanager
def store_errors(uri: str, subject: str = "") -> Generator[None]:
    """Turn errors of LanceDB and the file system into StoreError, without any secret; Pegboard's
    own errors pass.

    Args:
        subject: the table that is read, for errors about damaged files.
    """
    try:
        yield
        return
    except PegboardError:
        raise
    except (OSError, RuntimeError, ValueError, OverflowError) as error:
        cause: Exception = error
    except BaseException as error:
        if type(error).__name__ not in RUST_PANICS:
            raise
        cause = RuntimeError(f"panicked: {error}")
    # Raised here, so that its context is not an error with unredacted text.
    board = f"the board at {public_uri(uri)}"
    damaged = damage_error(f"{subject} of {board}", cause) if subject else None
    error = damaged or store_error(f"The store of {board} failed", cause)
    raise error from cleaned(cause)


@contextmanager
def missing_tables(uri: str, name: str, version: int | None) -> Generator[None]:
    """Turn what says that a table or version is missing into BoardNotFound, the rest as usual."""
    with store_errors(uri, f"Table '{name}'"):
        try:
            yield
        except (ValueError, FileNotFoundError) as error:
            text = str(error).lower()
            if not any(sign in text for sign in ("not found", "no longer exists", "not exist")):
                raise
            what = "" if version is None else f"version {version} of "
            raise BoardNotFound(
                f"The board at {public_uri(uri)} has no {what}table '{name}'. "
                "Check the address; `pegboard build` makes a board, `pegboard releases list` "
                "shows what it has."
            ) from cleaned(error)


def database_address(uri: str) -> str:
    """The database below a board's root, a folder by its absolute path."""
    address = f"{uri.rstrip('/')}/{TABLES_FOLDER}"
    if address.startswith("file:"):
        address = "/" + address.removeprefix("file:").lstrip("/")
    return address if "://" in address else str(Path(address).expanduser().absolute())
