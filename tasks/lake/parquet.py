"""Parquet files in which damage is noticed: pyarrow's checksum of every page, and a CRC-32 of the
footer, for which Parquet has none.

The footer's checksum stands before it, after the last page, where readers of Parquet never look, so
any of them opens the file. Only the columns that are read are fetched and compared. A truncated
file is noticed, and so is a flipped bit, but for a few in the header of a page, which no checksum
covers. A checksum is not a signature."""

import io
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tasks.lake.formats import PARQUET_FORMAT

if TYPE_CHECKING:
    import polars as pl

MARK = struct.Struct("<I8s")
"""Before the footer: its CRC-32, and `PEGBFOOT`."""
END = struct.Struct("<I4s")
"""The end of a Parquet file: the length of its footer without these bytes, and `PAR1`."""
SMALL = 64 * 1024
"""Largest size in bytes of a file that is read whole, in one request and by one thread."""


class Damage(Exception):
    """A damaged file; the message names the damage."""


def encode(frame: "pl.DataFrame", stated: int) -> bytes:
    """Return a table as a Parquet file with checksums, which states its format."""
    from pyarrow import parquet

    buffer = io.BytesIO()
    table = frame.to_arrow()
    table = table.replace_schema_metadata(
        {**(table.schema.metadata or {}), PARQUET_FORMAT: str(stated).encode()}
    )
    parquet.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    content = buffer.getvalue()
    start = len(content) - END.size - END.unpack(content[-END.size :])[0]
    footer = content[start:]
    return content[:start] + MARK.pack(zlib.crc32(footer), b"PEGBFOOT") + footer


def read(
    file: Any, size: int, columns: Sequence[str] | None = None, *, rows: bool = True
) -> "tuple[pl.DataFrame, int]":
    """Return the table of a binary file that was just opened, and the format that it states.

    Args:
        columns: only those of these that it has; None for all.
        rows: False returns all columns without any row.

    Raises Damage.
    """
    import polars as pl
    from pyarrow import ArrowException, BufferReader, parquet

    large = size > SMALL
    if not large:
        file = BufferReader(file.read())
    _check_footer(file, size)
    try:
        content = parquet.ParquetFile(file, page_checksum_verification=True, pre_buffer=large)
        schema = content.schema_arrow
        stated = int((schema.metadata or {}).get(PARQUET_FORMAT, 0))
        names = columns and [name for name in columns if name in schema.names]
        table = content.read(names, use_threads=large) if rows else schema.empty_table()
        # No checksum covers a page's header, and pyarrow skips a page of an unknown type.
        if rows and names != [] and table.num_rows != content.metadata.num_rows:
            raise Damage(f"it has {table.num_rows} of {content.metadata.num_rows} rows")
    except ArrowException as error:
        raise Damage(str(error)) from None
    except OSError as error:
        if type(error) is not OSError or error.errno is not None:
            raise  # the store's, not pyarrow's
        raise Damage(str(error)) from None
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame, stated


def _check_footer(file: Any, size: int) -> None:
    length, magic = END.unpack(_last(file, size, END.size))
    if magic != b"PAR1":
        raise Damage("it is truncated, or no Parquet file")
    tail = _last(file, size, MARK.size + length + END.size)
    checksum, mark = MARK.unpack_from(tail)
    if mark != b"PEGBFOOT":
        raise Damage("it has no checksums")
    if zlib.crc32(tail[MARK.size :]) != checksum:
        raise Damage("its footer differs from its checksum")


def _last(file: Any, size: int, count: int) -> bytes:
    if count > size:
        raise Damage("it is truncated")
    file.seek(size - count)
    return file.read(count)
