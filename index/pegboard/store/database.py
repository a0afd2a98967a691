"""The LanceDB database of a board: its address, options and errors.

Readers open it by `reading.py`, writers by `writing.py`.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.errors import BoardNotFound, ConfigurationError, PegboardError
from pegboard.store.contract import TABLES_FOLDER
from pegboard.store.failures import cleaned, damage_error, refuses_credentials, store_error
from pegboard.store.storage import OPEN_TIMEOUT, storage_options
from pegboard.text.redaction import public_url

if TYPE_CHECKING:
    pass

RUST_PANICS = ("PanicException", "RustPanic")
"""Names of the exceptions that a panic of the compiled core raises, in a call and in a future. The
first is not an `Exception`, and neither can be imported.
"""


def opening_options(
    uri: str, explicit_options: Mapping[str, str] | None = None
) -> tuple[dict[str, str], float | None]:
    """Return the options for LanceDB, and the timeout in seconds for opening the store; None for a
    folder.
    """
    options = storage_options(uri, explicit_options)
    text = options.pop(OPEN_TIMEOUT, None)
    try:
        return options, None if text is None else float(text.removesuffix("s"))
    except ValueError:
        raise ConfigurationError(
            f"The storage option {OPEN_TIMEOUT} is '{text}': expected a number of seconds, such "
            f"as 12."
        ) from None


def public_uri(uri: str) -> str:
    """Return a board's address for messages: a folder unchanged, a URL without secrets."""
    return public_url(uri) if "://" in uri else uri


def sql_literals(values: Iterable[str]) -> str:
    """Return the values as quoted literals of a DataFusion condition, separated by commas and safe
    from injection.
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


@contextmanager
def store_errors(uri: str, subject: str = "") -> Generator[None]:
    """Convert errors of LanceDB and the file system to StoreError without secrets; Pegboard's own
    errors pass unchanged.

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
    # Raised outside the except block, so that its context is not an error with unredacted text.
    board = f"the board at {public_uri(uri)}"
    damaged = damage_error(f"{subject} of {board}", cause) if subject else None
    error = damaged or store_error(f"The store of {board} failed", cause)
    raise error from cleaned(cause)


@contextmanager
def missing_tables(uri: str, name: str, version: int | None) -> Generator[None]:
    """Convert errors about a missing table or version to BoardNotFound, others to StoreError."""
    with store_errors(uri, f"Table '{name}'"):
        try:
            yield
        except (ValueError, FileNotFoundError) as error:
            text = str(error).lower()
            missing = any(part in text for part in ("not found", "no longer exists", "not exist"))
            # S3 says of an unknown access key that it "does not exist in our records".
            if not missing or refuses_credentials(error):
                raise
            version_text = "" if version is None else f"version {version} of "
            raise BoardNotFound(
                f"The board at {public_uri(uri)} has no {version_text}table '{name}'. "
                "Check the address; `pegboard build` makes a board, `pegboard releases list` "
                "shows what it has."
            ) from cleaned(error)


def database_address(uri: str) -> str:
    """Return the address of a board's database; of a folder, its absolute path."""
    address = f"{uri.rstrip('/')}/{TABLES_FOLDER}"
    if address.startswith("file:"):
        address = "/" + address.removeprefix("file:").lstrip("/")
    return address if "://" in address else str(Path(address).expanduser().absolute())
