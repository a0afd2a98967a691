"""The lake: what the pipeline stores between runs, as files below `<board>/lake`.

    lake/snapshots/<catalog>/<digest>/{agents,tools}.json      what a source listed, as row sets
    lake/snapshots/<catalog>/latest.json                       the last good snapshot, with what was
                                                               rejected and why; written last
    lake/snapshots/<catalog>/failure.json                      why the source failed, until flows
                                                               have told that it recovered
    lake/documents/<digest>.json                               the documents of an index
    lake/edges/<digest>.json                                   dependencies between tools
    lake/vectors/<encoder>/<digest>.parquet                    vectors by text
    lake/ledger/<digest>.parquet, ledger/open/*.jsonl          every reply of an LLM
    lake/generated/<digest>/                                   texts about tools and agents
    lake/gates/<release>-<digest>.json                         what a gate measured and decided
    lake/gates/answers/<digest>.parquet                        the answers to golden queries
    lake/watch/looks.json                                      what a watch has built
    lake/formats.json                                          the formats of the last build
    lake/public/<table>/                                       tables for SQL (`tasks/public_lake`)

Files are written whole or not at all, and only pointers and marks ever change: a killed run leaves
nothing half-written, and the next run finds what this one finished. Parquet and JSON files carry
checksums and state their format (`formats.py`), which are compared whenever they are read: a
damaged file is DamagedFile, never other content. `tasks/lake/places.py` stores the bytes in a
folder or an object store."""

import json
import logging
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from posixpath import commonpath
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError, PegboardError, StoreError
from pegboard.store.database import public_uri
from pegboard.store.failures import cleaned, explain
from tasks.lake import parquet
from tasks.lake.formats import FORMAT, FileKind, kind_of, newer_format
from tasks.lake.places import HALF_WRITTEN, Place, objects_cached, place_at

if TYPE_CHECKING:
    import polars as pl

logger = logging.getLogger(__name__)

CHECKSUM = "checksum"
_BEFORE_CHECKSUM = f'\n "{CHECKSUM}": '.encode()
"""The last key of a JSON file: the CRC-32 of its other values as they are written."""
PAID = "ledger"
"""The folder of LLM replies: its damaged files are set aside, not deleted."""


class DamagedFile(StoreError):
    """A damaged file of the lake; the next build makes it again."""


class MissingColumns(DamagedFile):
    """A table of the lake lacks columns, because an older version of Pegboard wrote it."""


class Lake:
    """The lake of the board at one address, with the storage options remembered for it
    (`pegboard.store.storage`).

    Paths are relative to the lake. Raises StoreError for whatever the store refuses, and
    DamagedFile for a file that is not as it was written.
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
            cause = error
        what, step = explain(cause)
        kind = ConfigurationError if "is not valid for store" in what else StoreError
        raise kind(f"{public_uri(self.uri)} cannot be opened: {what}. {step}.") from cleaned(cause)

    def cached(self) -> AbstractContextManager[None]:
        """Request immutable files from an object store once, until the block ends.

        It applies to every `Lake` of this address that is used for the first time in the block.
        """
        return objects_cached(self.uri)

    def exists(self, path: str) -> bool:
        """Return whether there is a file of that path."""
        with self._errors(path, "read"):
            return self._place.exists(path)

    def files(self, folder: str, kind: str = "parquet") -> list[str]:
        """Return the files of a kind in a folder, as paths, sorted."""
        return sorted(self.ages(folder, kind))

    def ages(self, folder: str, kind: str) -> dict[str, float]:
        """Return the files of a kind in a folder, and the seconds since each was written."""
        return {
            path: age
            for path, (_, age) in self.walk(folder).items()
            if path.rpartition("/")[0] == folder and path.endswith(f".{kind}")
        }

    def walk(self, prefix: str = "") -> dict[str, tuple[int, float]]:
        """Return all files below a folder, by path: bytes, and seconds since each was written.

        Half-written files, whose names end in `.tmp`, are among them.
        """
        with self._errors(prefix, "listed"):
            return self._place.walk(prefix)

    def read(self, path: str, columns: list[str] | None = None) -> "pl.DataFrame":
        """Return the table in a Parquet file; with `columns`, only their bytes are fetched.

        Raises MissingColumns if it lacks some of them.
        """
        with self._errors(path, "read"):
            table, stated = self._place.table(path, columns)
            if columns is not None and self._pending_upgrades(path, stated):
                table, stated = self._place.table(path, None)
            table = self.upgraded(path, table, stated)
            if columns is None:
                return table
            if missing := [name for name in columns if name not in table.columns]:
                raise self._missing_columns(path, missing)
            return table.select(columns)

    def column_types(self, path: str) -> dict[str, str]:
        """Return the names and types of the columns in a Parquet file, in their order."""
        with self._errors(path, "read"):
            table, stated = self._place.table(path, None, rows=False)
            table = self.upgraded(path, table, stated)
            return {name: str(kind) for name, kind in table.schema.items()}

    def write(self, path: str, frame: "pl.DataFrame", *, new: bool = False) -> None:
        """Write a table as a Parquet file, unless a file of that name, so of that content, is
        there.

        Args:
            new: no file has that name, so none is looked for.
        """
        if new or not self.exists(path):
            self._put(path, parquet.encode(frame, self.kind_of(path).format))

    def read_json(self, path: str) -> Any:
        """Return the value of a JSON file; None if there is none."""
        with self._errors(path, "read"):
            try:
                content = self._place.get(path)
            except FileNotFoundError:
                return None
            value, stated = _json_value(content)
            return self.upgraded(path, value, stated)

    def write_json(self, path: str, value: Mapping[str, Any]) -> None:
        """Write a JSON object as a file, replacing one that is there as a whole."""
        members = {name: value[name] for name in value if name not in (FORMAT, CHECKSUM)}
        self._put(path, _json_file({FORMAT: self.kind_of(path).format, **members}))

    def kind_of(self, path: str) -> FileKind:
        """Return the kind of the file at a path, which decides its format."""
        return kind_of(path)

    def upgraded(self, path: str, value: Any, stated: int) -> Any:
        """Return the value of a file of the format `stated` as one of the current format.

        Raises NewerFormat for a newer format, DamagedFile for one that is no longer read.
        """
        kind = self.kind_of(path)
        place = f"{public_uri(self.uri)}/{path}"
        if stated > kind.format:
            raise newer_format(place, kind.name, stated, kind.format)
        if stated < kind.oldest:
            raise DamagedFile(
                f"{place} has format {stated} of {kind.name}, and this version of Pegboard reads "
                f"{kind.oldest} to {kind.format}. What is published is untouched. Run `pegboard "
                f"build`: it makes the file again."
            )
        for upgrade in self._pending_upgrades(path, stated):
            value = upgrade(value)
        return value

    def _pending_upgrades(self, path: str, stated: int) -> list[Callable[[Any], Any]]:
        kind = self.kind_of(path)
        numbers = range(stated, kind.format)
        return [kind.upgrades[number] for number in numbers if number in kind.upgrades]

    def _missing_columns(self, path: str, names: list[str]) -> MissingColumns:
        return MissingColumns(
            f"{public_uri(self.uri)}/{path} has no column {', '.join(names)}: an older version of "
            f"Pegboard wrote it. What is published is untouched. Run `pegboard build`: it makes "
            f"the file again."
        )

    def remove_damaged(self) -> list[str]:
        """Check every file, and remove those that are damaged; returns their paths.

        Those with LLM replies stay beside the others, under a name that ends in `.damaged`.
        """
        paths = [path for path in self.walk() if not path.endswith(HALF_WRITTEN)]
        damaged = [path for path in paths if self._is_damaged(path)]
        for path in damaged:
            if path.startswith(f"{PAID}/"):
                with self._errors(path, "read"):
                    content = self._place.get(path)
                self._put(f"{path}.damaged", content)
            self.delete(path)
        return damaged

    def _is_damaged(self, path: str) -> bool:
        try:
            if path.endswith(".parquet"):
                self.read(path)
            elif path.endswith(".json"):
                self.read_json(path)
        except DamagedFile:
            return True
        return False

    def read_text(self, path: str) -> str:
        """Return the text of a file, which a killed process may have cut within a character."""
        with self._errors(path, "read"):
            return self._place.get(path).decode("utf-8", errors="replace")

    def write_text(self, path: str, text: str) -> None:
        """Write a text file as a whole."""
        self._put(path, text.encode())

    def append(self, path: str, text: str) -> None:
        """Append text to a file, durably; an object store, whose objects do not grow, gets a new
        file beside it.
        """
        with self._errors(path, "written"):
            self._place.append(path, text.encode())

    def delete(self, *paths: str) -> None:
        """Delete files, if they are there."""
        if paths:
            with self._errors(commonpath(paths), "deleted"):
                self._place.delete(paths)

    def vector_folder(self, fingerprint: str) -> str:
        """Return the folder with the vectors of an encoder."""
        return f"vectors/{digest(fingerprint)[:16]}"

    def _put(self, path: str, content: bytes) -> None:
        with self._errors(path, "written"):
            self._place.put(path, content)

    @contextmanager
    def _errors(self, path: str, action: str) -> Generator[None]:
        """Turn errors of the file system, the store and damaged files into StoreError, without
        secrets; `action` is a participle.
        """
        place = f"{public_uri(self.uri)}/{path}".rstrip("/")
        try:
            yield
            return
        except (PegboardError, TypeError, LookupError, AttributeError, AssertionError):
            raise
        except parquet.Damage as damage:
            raise DamagedFile(
                f"{place} is damaged: {damage}. What is published is untouched. Run `pegboard "
                f"build`: it makes the file again."
            ) from None
        except Exception as error:  # the stores' errors and polars' have no base class in common
            cause = error
        # Raised here, so that its context is not an error with unredacted text.
        what, step = explain(cause)
        state = "; what is published is untouched, and the next run goes on from here"
        after = state if action == "written" else ""
        raise StoreError(f"{place} cannot be {action}: {what}. {step}{after}.") from cleaned(cause)


def _json_file(value: Mapping[str, Any]) -> bytes:
    """Return the text of a JSON object with a checksum over the text without it."""
    text = json.dumps(value, ensure_ascii=False, indent=1).encode()
    members = text.removesuffix(b"}").rstrip(b"\n")
    comma = b"," if value else b""
    return members + comma + _BEFORE_CHECKSUM + b"%d\n}" % zlib.crc32(text)


def _json_value(content: bytes) -> tuple[dict[str, Any], int]:
    """Return the value of a JSON file without its checksum and format, and the format, which is 0
    where none is stated. Raises Damage.
    """
    try:
        value: Any = json.loads(content)
        checksum = value.pop(CHECKSUM)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise parquet.Damage("it is no JSON object with a checksum") from None
    members = content.rpartition(_BEFORE_CHECKSUM)[0].removesuffix(b",")
    if zlib.crc32(members + (b"\n}" if value else b"}")) != checksum:
        raise parquet.Damage("its values differ from its checksum")
    stated = value.pop(FORMAT, 0)
    if not isinstance(stated, int):
        raise parquet.Damage(f"its format is {stated!r:.80}, expected a number")
    return value, stated
