"""The lake: what the pipeline remembers, as Parquet files below `<board>/lake` whose names are
digests of their content.

    lake/snapshots/<catalog>/<digest>/{agents,tools}.parquet   what a source said
    lake/snapshots/<catalog>/rejected-<digest>.parquet         what was left out, and why
    lake/snapshots/<catalog>/latest.json                       the last good snapshot; written last
    lake/documents/<digest>.parquet                            the documents of one index
    configuration
    lake/edges/<digest>.json                                   which tool needs which other
    lake/vectors/<fingerprint>/<digest>.parquet                what an encoder said
    lake/ledger/<digest>.parquet, ledger/open/*.jsonl          every reply of an LLM (see
    enrichment/ledger.py)
    lake/generated/<digest>/, enriched/<digest>/               what was written about tools and
    agents; what the filter kept
    lake/filtered/<digest>.parquet                             generated questions with their rank,
    kept or dropped, and why
    lake/gates/<release>-<digest>.json                         what a release found for golden
    queries, and what was decided
    lake/gates/answers/<digest>.{json,parquet}                 the answers themselves, so that none
    is asked for twice

Files are written whole or not at all, and never changed: a killed run leaves nothing half-written,
and the next run finds what this one finished. Where the bytes lie, in a folder or in an object
store, is the matter of `tasks/lake/places.py`."""

import io
import json
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError, PegboardError, StoreError
from pegboard.store.database import public_uri
from pegboard.store.failures import cleaned, explain
from tasks.lake.places import Place, place_at

if TYPE_CHECKING:
    import polars as pl


class Lake:
    """The lake of the board at one address, with the storage options known of it
    (`pegboard.store.storage`).

    Paths are relative to the lake. Raises StoreError for whatever the store refuses.
    """

    def __init__(self, uri: str) -> None:
        self.uri = f"{uri.rstrip('/')}/lake"

    @cached_property
    def _place(self) -> Place:
        try:
            return place_at(self.uri)
        except PegboardError:
            raise
        except Exception as error:
            trouble = error
        what, step = explain(trouble)
        kind = ConfigurationError if "is not valid for store" in what else StoreError
        raise kind(f"{public_uri(self.uri)} cannot be opened: {what}. {step}.") from cleaned(
            trouble
        )

    def exists(self, path: str) -> bool:
        """Whether there is a file of that path."""
        with self._asked(path, "read"):
            return self._place.exists(path)

    def files(self, folder: str, kind: str = "parquet") -> list[str]:
        """The files of a kind in a folder, as paths, sorted."""
        return sorted(self.ages(folder, kind))

    def ages(self, folder: str, kind: str) -> dict[str, float]:
        """The files of a kind in a folder, and the seconds since each was written to."""
        with self._asked(folder, "listed"):
            files, _ = self._place.listing(folder)
        return {f"{folder}/{name}": age for name, age in files.items() if name.endswith(f".{kind}")}

    def folders(self, folder: str = "") -> list[str]:
        """The folders in a folder, as paths, sorted."""
        with self._asked(folder, "listed"):
            _, folders = self._place.listing(folder)
        return [f"{folder}/{name}".lstrip("/") for name in folders]

    def walk(self, prefix: str = "") -> dict[str, tuple[int, float]]:
        """All files below a folder, however deep, by path: their bytes, and the seconds since each
        was written to.

        What a process is writing, or was killed while it wrote, is among them, under a name that
        ends in `.tmp`."""
        with self._asked(prefix, "listed"):
            return self._place.walk(prefix)

    def read(self, path: str, columns: list[str] | None = None) -> "pl.DataFrame":
        """The table in a Parquet file; with `columns`, only their bytes are fetched."""
        with self._asked(path, "read"):
            return self._place.table(path, columns)

    def write(self, path: str, frame: "pl.DataFrame") -> None:
        """Write a table as a Parquet file; nothing happens if a file of that name, so of that
        content, is there.
        """
        if self.exists(path):
            return
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd", statistics=True)
        self._put(path, buffer.getvalue())

    def read_json(self, path: str) -> Any:
        """The value of a JSON file, or None if there is none."""
        with self._asked(path, "read"):
            try:
                content = self._place.get(path)
            except FileNotFoundError:
                return None
        return json.loads(content)

    def write_json(self, path: str, value: Any) -> None:
        """Write a value as a JSON file, replacing one that is there as a whole."""
        self._put(path, json.dumps(value, ensure_ascii=False, indent=1).encode())

    def read_text(self, path: str) -> str:
        """The text of a file. What a killed process left unfinished at its end may be cut within a
        character.
        """
        with self._asked(path, "read"):
            return self._place.get(path).decode("utf-8", errors="replace")

    def write_text(self, path: str, text: str) -> None:
        """Write a text file as a whole."""
        self._put(path, text.encode())

    def append(self, path: str, text: str) -> None:
        """Add text to the end of a file, on the disk when this returns. Only where files can grow:
        see `grows`.
        """
        with self._asked(path, "written"):
            self._place.append(path, text.encode())

    @property
    def grows(self) -> bool:
        """Whether files can grow here: in a folder they can; in an object store every write is a
        whole object.
        """
        return self._place.grows

    def delete(self, path: str) -> None:
        """Delete a file whose content is somewhere else by now; one that is gone is no error."""
        with self._asked(path, "deleted"):
            self._place.delete(path)

    def vector_folder(self, fingerprint: str) -> str:
        """The folder with the vectors of one encoder."""
        return f"vectors/{digest(fingerprint)[:16]}"

    def _put(self, path: str, content: bytes) -> None:
        with self._asked(path, "written"):
            self._place.put(path, content)

    @contextmanager
    def _asked(self, path: str, done: str) -> Generator[None]:
        """Turn what the file system, the store or a damaged file raises into StoreError, without
        any secret.
        """
        try:
            yield
            return
        except (PegboardError, TypeError, LookupError, AttributeError, AssertionError):
            raise
        except (
            Exception
        ) as error:  # the stores' errors and those of polars have no class of their own in common
            trouble = error
        # Raised out here, so that the error hangs on no other one that may show what was cleaned
        # away.
        what, step = explain(trouble)
        calm = (
            "; what is published is untouched, and the next run goes on from here"
            if done == "written"
            else ""
        )
        place = f"{public_uri(self.uri)}/{path}".rstrip("/")
        raise StoreError(f"{place} cannot be {done}: {what}. {step}{calm}.") from cleaned(trouble)
