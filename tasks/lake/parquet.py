"""Parquet files that notice damage: a file carries a CRC-32 of its footer and of every column.

The checksums stand between the last page and the footer, where readers of Parquet never look, so
any of them opens the file. Only the columns that are read are fetched and compared. A flipped bit
or a truncated file is noticed; a checksum is no signature."""

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

MARK = b"PEGBSUMS"
TAIL = struct.Struct("<I8s")
"""After the checksums, JSON text: its length and the mark. The footer follows."""
END = struct.Struct("<I4s")
"""The end of a Parquet file: the length of its footer and `PAR1`."""
FIRST_READ = 64 << 10
"""Bytes that are read from the end of a file at first: nearly always footer and checksums."""

Span = tuple[int, int]
"""Where bytes begin and end."""
Fetch = Callable[[Sequence[Span]], list[bytes]]
"""Return the bytes of several spans of a file."""


class Damage(Exception):
    """What is wrong with a file."""


def encode(frame: "pl.DataFrame") -> bytes:
    """Return a table as a Parquet file with checksums."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    content = buffer.getvalue()
    start = len(content) - END.size - END.unpack(content[-END.size :])[0]
    pages, footer = content[:start], content[start:]
    columns = {
        name: _checksum(pages[begin:end] for begin, end in spans)
        for name, spans in _column_spans(footer).items()
    }
    sums = json.dumps({"columns": columns, "footer": zlib.crc32(footer)}).encode()
    return b"".join((pages, sums, TAIL.pack(len(sums), MARK), footer))


def check(size: int, fetch: Fetch, columns: Sequence[str] | None = None) -> dict[Span, bytes]:
    """Read columns of a file and compare them with their checksums; returns the bytes read.

    Args:
        columns: all of them if None.

    Raises Damage.
    """
    tail, sums, footer_size = _read_end(size, fetch)
    footer = tail[-footer_size:]
    if zlib.crc32(footer) != sums.get("footer"):
        raise Damage("its footer differs from its checksum")
    spans = _column_spans(footer)
    for name in columns or spans:
        if name not in spans:
            raise Damage(f"it has no column '{name}'")
    chosen = {name: spans[name] for name in columns or spans}
    pieces = iter(fetch([span for several in chosen.values() for span in several]))
    content: dict[Span, bytes] = {(size - len(tail), size): tail}
    for name, several in chosen.items():
        read = {span: next(pieces) for span in several}
        if _checksum(read.values()) != sums["columns"].get(name):
            raise Damage(f"its column '{name}' differs from its checksum")
        content |= read
    return content


def _read_end(size: int, fetch: Fetch) -> tuple[bytes, dict[str, Any], int]:
    """Return the end of a file from its checksums on, the checksums, and the footer's size."""
    tail = _last(size, FIRST_READ, fetch)
    footer_size = END.size + _footer_length(tail)
    end = footer_size + TAIL.size
    if len(tail) < end:
        tail = _last(size, end, fetch)
    length, mark = TAIL.unpack_from(tail[-end:] if len(tail) >= end else bytes(TAIL.size))
    if mark != MARK:
        raise Damage("it has no checksums")
    if len(tail) < end + length:
        tail = _last(size, end + length, fetch)
    try:
        sums: Any = json.loads(tail[len(tail) - end - length : len(tail) - end])
        if not isinstance(sums["columns"], dict):
            raise TypeError
    except (ValueError, TypeError, KeyError):
        raise Damage("its checksums cannot be read") from None
    return tail[len(tail) - end - length :], sums, footer_size


def _last(size: int, count: int, fetch: Fetch) -> bytes:
    return fetch([(max(size - count, 0), size)])[0]


def _footer_length(tail: bytes) -> int:
    if len(tail) < END.size:
        raise Damage("it is truncated")
    length, magic = END.unpack_from(tail, len(tail) - END.size)
    if magic != b"PAR1":
        raise Damage("it is truncated, or no Parquet file")
    return length


def _column_spans(footer: bytes) -> dict[str, list[Span]]:
    """Return where the pages of each column are, by row group."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(io.BytesIO(b"PAR1" + footer))
    names = [metadata.schema.column(at).path.split(".")[0] for at in range(metadata.num_columns)]
    spans: dict[str, list[Span]] = {name: [] for name in names}
    for group in range(metadata.num_row_groups):
        for at, name in enumerate(names):
            chunk = metadata.row_group(group).column(at)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                start = min(start, chunk.dictionary_page_offset)
            spans[name].append((start, start + chunk.total_compressed_size))
    return spans


def _checksum(pieces: Iterable[bytes]) -> int:
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return value


class Fetched(io.RawIOBase):
    """A file of which some spans were fetched, for readers that need no others."""

    def __init__(self, size: int, content: dict[Span, bytes]) -> None:
        self._size, self._content, self._at = size, content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        content = b"".join(self._pieces(self._at, end))
        self._at = max(self._at, end)
        return content

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from start to end; zeros where nothing was fetched."""
        while start < end:
            span = next((span for span in self._content if span[0] <= start < span[1]), None)
            if span is None:
                later = [first for first, _ in self._content if first > start]
                stop = min([end, *later])
                yield bytes(stop - start)
            else:
                stop = min(end, span[1])
                yield self._content[span][start - span[0] : stop - span[0]]
            start = stop
