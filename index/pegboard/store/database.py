"""The LanceDB database below a board's root: opening it, and turning the store's errors into
ours.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from pegboard.errors import BoardNotFound, ConfigurationError, PegboardError
from pegboard.redaction import public_url
from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.failures import cleaned, store_error
from pegboard.store.storage import OPEN_TIMEOUT, storage_options

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

Answer = TypeVar("Answer")


def public_uri(uri: str) -> str:
    """A board's address as it may be shown: a folder as it is, an address as `public_url` gives
    it.
    """
    return public_url(uri) if "://" in uri else uri


def sql_literals(values: Iterable[str]) -> str:
    """The values as quoted literals of a DataFusion condition, separated by commas: none can become
    part of the condition.
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def connect(uri: str, given: Mapping[str, str] | None = None) -> "DBConnection":
    """The database of the board at `uri`; handles opened through it always see the newest version.

    The `given` storage options go before what was configured and before the environment: see
    `pegboard.store.storage`.

    Raises StoreError if the store refuses, or does not answer within the option `open_timeout` (12
    s)."""
    import lancedb

    options, seconds = opening_options(uri, given)
    address = f"{uri.rstrip('/')}/{TABLES_FOLDER}"
    with store_errors(uri):

        def database() -> "DBConnection":
            return lancedb.connect(
                address, read_consistency_interval=timedelta(0), storage_options=options or None
            )

        return database() if seconds is None else within(seconds, database)


def opening_options(
    uri: str, given: Mapping[str, str] | None = None
) -> tuple[dict[str, str], float | None]:
    """The options as LanceDB takes them, and the seconds within which the store has to answer; None
    for a folder.
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


def within(seconds: float, call: Callable[[], Answer]) -> Answer:
    """What the call returns or raises. Raises TimeoutError after so many seconds; the call is then
    left to itself.

    Lance asks a silent store again and again, for minutes, and cannot be told to stop.
    """
    answers: list[Answer] = []
    troubles: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            troubles.append(error)

    thread = threading.Thread(target=ask, name="pegboard-store", daemon=True)
    thread.start()
    thread.join(seconds)
    if troubles:
        raise troubles[0]
    if not answers:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answers[0]


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


def open_table(
    database: "DBConnection", name: str, uri: str, version: int | None = None
) -> "Table":
    """A table, pinned to a version if one is given. Raises BoardNotFound if there is no such table
    or version.
    """
    with store_errors(uri):
        try:
            table = database.open_table(name)
            if version is not None:
                table.checkout(version)
        except (ValueError, FileNotFoundError) as error:
            if not _says_missing(error):
                raise
            what = (
                f"version {version} of table '{name}'" if version is not None else f"table '{name}'"
            )
            raise BoardNotFound(
                f"The board at {public_uri(uri)} has no {what}. "
                "Check the address; `pegboard build` makes a board, `pegboard releases list` "
                "shows what it has."
            ) from cleaned(error)
        return table


@contextmanager
def store_errors(uri: str) -> Generator[None]:
    """Turn what LanceDB and the file system raise into StoreError, without any secret; Pegboard's
    own errors pass.
    """
    try:
        yield
        return
    except PegboardError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        trouble = error
    # Raised out here, so that the error hangs on no other one that may show what was cleaned away.
    what = f"The store of the board at {public_uri(uri)} did not do what was asked"
    raise store_error(what, trouble) from cleaned(trouble)


def _says_missing(error: Exception) -> bool:
    text = str(error).lower()
    return (
        "not found" in text
        or "no longer exists" in text
        or "does not exist" in text
        or "not exist" in text
    )
