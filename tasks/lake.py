"""The lake: what the pipeline remembers, as Parquet files below `<board>/lake` whose names are digests of their content.

    lake/snapshots/<catalog>/<digest>/{agents,tools}.parquet   what a source said
    lake/snapshots/<catalog>/rejected-<digest>.parquet         what was left out, and why
    lake/snapshots/<catalog>/latest.json                       the last good snapshot; written last
    lake/documents/<digest>.parquet                            the documents of one index configuration
    lake/vectors/<fingerprint>/<digest>.parquet                what an encoder said
    lake/ledger/<digest>.parquet, ledger/open/*.jsonl          every reply of an LLM (see enrichment/ledger.py)
    lake/bought/<digest>/, enriched/<digest>/                  what was written about tools and agents; what the filter kept
    lake/filtered/<digest>.parquet                             generated questions with their rank, kept or dropped, and why

Files are written whole or not at all, and never changed: a killed run leaves nothing half-written, and the next run finds
what this one finished.
"""

import io
import json
import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import StoreError

if TYPE_CHECKING:
    import polars as pl
    from pyarrow.fs import FileSystem

__all__ = ["Lake"]


class Lake:
    """The lake of the board at one address. Raises StoreError for whatever the store refuses."""

    def __init__(self, uri: str) -> None:
        self.uri = f"{uri.rstrip('/')}/lake"

    @cached_property
    def _place(self) -> "tuple[FileSystem, str]":
        from pyarrow.fs import FileSystem

        try:
            return FileSystem.from_uri(self.uri)
        except (OSError, ValueError) as error:
            raise StoreError(f"The lake at {self.uri} cannot be opened: {error}. Check the address.") from error

    def exists(self, path: str) -> bool:
        """Whether there is a file at a path relative to the lake."""
        from pyarrow.fs import FileType

        filesystem, root = self._place
        return filesystem.get_file_info(f"{root}/{path}").type == FileType.File

    def files(self, folder: str, kind: str = "parquet") -> list[str]:
        """The files of a kind in a folder, as paths relative to the lake, sorted."""
        return sorted(self.ages(folder, kind))

    def ages(self, folder: str, kind: str) -> dict[str, float]:
        """The files of a kind in a folder, and the seconds since each was written to."""
        from pyarrow.fs import FileSelector

        filesystem, root = self._place
        found = filesystem.get_file_info(FileSelector(f"{root}/{folder}", allow_not_found=True))
        return {
            f"{folder}/{info.base_name}": time.time() - (info.mtime.timestamp() if info.mtime else 0)
            for info in found
            if info.extension == kind
        }

    def read(self, path: str, columns: list[str] | None = None) -> "pl.DataFrame":
        """The table in a Parquet file."""
        import polars as pl

        return pl.read_parquet(io.BytesIO(self._read_bytes(path)), columns=columns)

    def write(self, path: str, frame: "pl.DataFrame") -> None:
        """Write a table as a Parquet file; nothing happens if a file of that name, so of that content, is there."""
        if self.exists(path):
            return
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd", statistics=True)
        self._write_bytes(path, buffer.getvalue())

    def read_json(self, path: str) -> Any:
        """The value of a JSON file, or None if there is none."""
        return json.loads(self._read_bytes(path)) if self.exists(path) else None

    def write_json(self, path: str, value: Any) -> None:
        """Write a value as a JSON file, replacing one that is there as a whole."""
        self._write_bytes(path, json.dumps(value, ensure_ascii=False, indent=1).encode())

    def read_text(self, path: str) -> str:
        """The text of a file. What a killed process left unfinished at its end may be cut within a character."""
        return self._read_bytes(path).decode("utf-8", errors="replace")

    def append(self, path: str, text: str) -> None:
        """Add text to the end of a file, on the disk when this returns. Only where files can grow: see `grows`."""
        _, root = self._place
        try:
            target = Path(f"{root}/{path}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("ab") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._refused(path, error) from error

    @cached_property
    def grows(self) -> bool:
        """Whether files can grow here: in a folder they can; in an object store every write is a whole object."""
        from pyarrow.fs import LocalFileSystem

        return isinstance(self._place[0], LocalFileSystem)

    def write_text(self, path: str, text: str) -> None:
        """Write a text file as a whole."""
        self._write_bytes(path, text.encode())

    def delete(self, path: str) -> None:
        """Delete a file whose content is somewhere else by now; one that is gone is no error."""
        filesystem, root = self._place
        try:
            filesystem.delete_file(f"{root}/{path}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.uri}/{path} cannot be deleted: {error}. Check permissions.") from error

    def vector_folder(self, fingerprint: str) -> str:
        """The folder with the vectors of one encoder."""
        return f"vectors/{digest(fingerprint)[:16]}"

    def known_texts(self, fingerprint: str) -> set[str]:
        """The digests of all texts whose vectors of that encoder are in the lake."""
        known: set[str] = set()
        for path in self.files(self.vector_folder(fingerprint)):
            known.update(self.read(path, ["text_digest"]).get_column("text_digest").to_list())
        return known

    def vectors(self, fingerprint: str, wanted: Iterable[str]) -> "pl.DataFrame":
        """The rows (text_digest, vector) of the wanted texts, one each; texts that are not in the lake are absent."""
        import polars as pl

        chosen = sorted(set(wanted))
        frames = [self._chosen_vectors(path, chosen) for path in self.files(self.vector_folder(fingerprint))]
        if not frames:
            return pl.DataFrame(schema={"text_digest": pl.String, "vector": pl.List(pl.Float32)})
        return pl.concat(frames).unique("text_digest", keep="first", maintain_order=True)

    def _chosen_vectors(self, path: str, chosen: list[str]) -> "pl.DataFrame":
        import polars as pl

        frame = self.read(path)
        digests = frame.get_column("text_digest").to_list()
        # A shard holds a narrow span of all digests, so few of the chosen ones have to be looked for in it.
        span = chosen[bisect_left(chosen, min(digests, default="")) : bisect_right(chosen, max(digests, default=""))]
        return frame.filter(pl.col("text_digest").is_in(pl.Series(span, dtype=pl.String).implode()))

    def _read_bytes(self, path: str) -> bytes:
        filesystem, root = self._place
        try:
            with filesystem.open_input_file(f"{root}/{path}") as file:
                return file.read()
        except OSError as error:
            raise StoreError(f"{self.uri}/{path} cannot be read: {error}.") from error

    def _write_bytes(self, path: str, content: bytes) -> None:
        from pyarrow.fs import LocalFileSystem

        filesystem, root = self._place
        target = f"{root}/{path}"
        try:
            if not isinstance(filesystem, LocalFileSystem):
                # An object store shows an object only when its upload is complete.
                with filesystem.open_output_stream(target) as file:
                    file.write(content)
                return
            filesystem.create_dir(target.rpartition("/")[0], recursive=True)
            half = f"{target}.{os.getpid()}.tmp"
            with filesystem.open_output_stream(half) as file:
                file.write(content)
            filesystem.move(half, target)
        except OSError as error:
            raise self._refused(path, error) from error

    def _refused(self, path: str, error: OSError) -> StoreError:
        return StoreError(
            f"{self.uri}/{path} cannot be written: {error}. Check free space and permissions; "
            "what is published is untouched, and the next run goes on from here."
        )
