"""The files of a sweep's folder, written whole or not at all: a killed sweep leaves nothing
half-written.

cells/<key>.parquet            one cell: a row for each measure and k; written last, so where it is,
the cell is done
cells/<key>.values.parquet     its values query by query
samples/<digest>.json          the ids of the tools of a sample
queries/<encoder>/*.parquet    vectors of queries
sweep.parquet, values.parquet, sweep.json, sweep.html, over-tools.svg, over-k.svg     the results
"""

import io
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from tasks.lake.places import Folder

if TYPE_CHECKING:
    import polars as pl


def write_frame(path: Path, frame: "pl.DataFrame") -> None:
    """Write a table as a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    write_bytes(path, buffer.getvalue())


def read_frame(path: Path) -> "pl.DataFrame":
    """The table in a Parquet file."""
    import polars as pl

    with _told(path, "read"):
        return pl.read_parquet(path, glob=False)


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON file."""
    write_bytes(path, json.dumps(value, ensure_ascii=False, indent=1).encode())


def read_json(path: Path) -> Any:
    """The value of a JSON file."""
    with _told(path, "read"):
        return json.loads(path.read_bytes())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, replacing one that is there as a whole. Raises ConfigurationError where that
    cannot be done.
    """
    with _told(path, "written"):
        Folder(path.parent).put(path.name, content)


@contextmanager
def _told(path: Path, done: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be {done}: {error.strerror or error}. Choose another folder with "
            f"--out; what was measured is kept."
        ) from error
