"""The file to which the page's golden queries are added: whole lines, one writer at a time."""

import fcntl
import json
import os
from pathlib import Path

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries


def add_golden_query(file: Path, query: GoldenQuery) -> GoldenQuery | None:
    """Add a golden query to a file of JSON lines, as a whole or not at all; the file is made if
    there is none. Processes that add at the same time wait for each other.

    Returns:
        The golden query that the file has for the request: nothing is added.

    Raises:
        ConfigurationError: the file cannot be written, or has invalid lines.
    """
    try:
        with file.open("ab+", buffering=0) as lines:
            fcntl.flock(lines, fcntl.LOCK_EX)
            for stored in read_queries(file):
                if stored.query.split() == query.query.split() and not stored.history:
                    return stored
            size = lines.seek(0, os.SEEK_END)
            ends_open = size > 0 and os.pread(lines.fileno(), 1, size - 1) != b"\n"
            line = json.dumps(query.to_dict(), ensure_ascii=False) + "\n"
            data = (("\n" if ends_open else "") + line).encode("utf-8")
            try:
                if lines.write(data) != len(data):
                    raise OSError(28, "No space left on device")
                os.fsync(lines)
            except OSError:
                lines.truncate(size)
                raise
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {error.strerror}. Name another file under [serve] golden."
        ) from error
    return None
