"""The file to which the page's golden queries are added: whole lines, one writer at a time."""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries

MAX_FILE = 20_000_000
"""Bytes of the file from which on nothing is added: a client must not fill the disk."""


class OtherTools(ConfigurationError):
    """The file has the request with other tools.

    Attributes:
        tools: the ids that the file has.
    """

    def __init__(self, message: str, tools: tuple[str, ...]) -> None:
        super().__init__(message)
        self.tools = tools


def add_golden_query(file: Path, query: GoldenQuery) -> bool:
    """Add a golden query to a file of JSON lines, as a whole or not at all; the file is made if
    there is none.

    Processes that add at the same time wait for each other.

    Returns:
        False if the file has the request with the same tools: nothing is added.

    Raises:
        OtherTools: the file has the request with other tools.
        ConfigurationError: the file cannot be written, has invalid lines, or is full.
    """
    try:
        with _locked(file) as descriptor:
            _check_size(file, descriptor)
            for stored in read_queries(file):
                if stored.query.split() != query.query.split() or stored.history:
                    continue
                if set(stored.tools) == set(query.tools):
                    return False
                raise OtherTools(
                    f"{file} has this request with other tools: "
                    f"{', '.join(stored.tools) or 'none'}. Correct the line in the file.",
                    stored.tools,
                )
            _append(descriptor, json.dumps(query.to_dict(), ensure_ascii=False) + "\n")
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {error.strerror}. Name another file under [serve] golden."
        ) from error
    return True


@contextmanager
def _locked(file: Path) -> Generator[int]:
    """Open the file, and hold its lock; a file that was replaced meanwhile is opened again."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _check_size(file: Path, descriptor: int) -> None:
    if os.fstat(descriptor).st_size > MAX_FILE:
        raise ConfigurationError(
            f"{file} has more than {MAX_FILE:,} bytes. Move its queries to another file."
        )


def _append(descriptor: int, line: str) -> None:
    size = os.fstat(descriptor).st_size
    ends_open = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    data = (("\n" if ends_open else "") + line).encode("utf-8")
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(28, "No space left on device")
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise
