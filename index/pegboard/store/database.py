"""The LanceDB database below a board's root for writers, and the errors of writers and readers.

Readers use `reading.py`.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.errors import BoardNotFound, ConfigurationError, PegboardError
from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.failures import cleaned, damage_error, store_error
from pegboard.store.storage import OPEN_TIMEOUT, storage_options
from pegboard.text.redaction import public_url

if TYPE_CHECKING:
    pass

RUST_PANICS = ("PanicException", "RustPanic")
"""The names of what a panic of the compiled core raises, in a call and in a future. The first is no
`Exception`, and neither can be imported.
"""


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
