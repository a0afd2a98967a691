"""Parquet files that notice damage: pyarrow's checksum of every page, and a CRC-32 of the footer,
for which Parquet has none.

The footer's checksum stands before it, after the last page, where readers of Parquet never look, so
any of them opens the file. Only the columns that are read are fetched and compared. A flipped bit
or a truncated file is noticed; a checksum is no signature."""

import io
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

MARK = struct.Struct("<I8s")
"""Before the footer: its CRC-32, and `PEGBFOOT`."""
END = struct.Struct("<I4s")
"""The end of a Parquet file: the length of its footer without these bytes, and `PAR1`."""
SMALL = 64 * 1024
"""Bytes up to which a file is read whole, in one request and without further threads."""


class Damage(Exception):
    """A damaged file; the message names the damage."""


def encode(frame: "pl.DataFrame") -> bytes:
    """Return a table as a Parquet file with checksums."""
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(frame.to_arrow(), buffer, compression="zstd", write_page_checksum=True)
    content = buffer.getvalue()
    start = len(content) - END.size - END.unpack(content[-END.size :])[0]
    footer = content[start:]
    return content[:start] + MARK.pack(zlib.crc32(footer), b"PEGBFOOT") + footer


def read(file: Any, size: int, columns: Sequence[str] | None = None) -> "pl.DataFrame":
    """Return columns of a binary file that was just opened, in that order; all of them if None.
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
        names = content.schema_arrow.names
        missing = [name for name in columns or () if name not in names]
        if missing:
            raise Damage(f"it has no column '{missing[0]}'")
        table = content.read(None if columns is None else list(columns), use_threads=large)
    except ArrowException as error:
        raise Damage(str(error)) from None
    except OSError as error:
        if type(error) is not OSError or error.errno is not None:
            raise  # the store's, not pyarrow's
        raise Damage(str(error)) from None
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame if columns is None else frame.select(columns)


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
