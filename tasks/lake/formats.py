"""The formats of the lake's files. Each file states its own, so that other versions of Pegboard
know whether they can read it.

A JSON file has the number as `format`, a Parquet file as `pegboard.format` in its metadata, and
each line of a journal as `format`. A file that states none has format 0: it was written before
formats were stated.

- A file of an older format is read. Where its value differs from what the current code expects, an
  entry of `upgrades` changes it.
- A file that can be made again may instead have an `oldest` format. A file of a still older one
  counts as damaged, so that the next build makes it again.
- A file of a newer format is `NewerFormat`: an error that says what to do, never a damaged file.

A table's columns need no format: row sets name theirs, see `row_sets.py`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pegboard.errors import ContractMismatch

FORMAT = "format"
"""The key of a file's format in its JSON."""
PARQUET_FORMAT = b"pegboard.format"
"""The key of a file's format in the metadata of a Parquet file."""
_DIGEST = "[0-9a-f]{64}"


class NewerFormat(ContractMismatch):
    """A newer version of Pegboard wrote the lake, or a file of it."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file of the lake.

    Attributes:
        name: in the plural, for messages.
        path: a regular expression for the whole path, relative to the lake.
        format: the format that this version writes. Raise it if older versions of Pegboard would
            misread the file.
        oldest: the oldest format that this version reads. It stays 0 for files that cannot be made
            again: snapshots, vectors and LLM replies.
        upgrades: from the number of an older format to a function that turns a value of that format
            into one of the next. The value is a JSON object, or the table of a Parquet file.
    """

    name: str
    path: str
    format: int = 1
    oldest: int = 0
    upgrades: Mapping[int, Callable[[Any], Any]] = field(
        default_factory=lambda: MappingProxyType(dict[int, Callable[[Any], Any]]())
    )

    @property
    def is_immutable(self) -> bool:
        """Whether a file's path has a digest of what it holds, so that it never holds anything
        else.
        """
        return _DIGEST in self.path


PUBLIC = 1
"""The version of the schemas of the public tables (`tasks/public_lake/schema.py`)."""
KINDS = (
    FileKind("LLM replies", rf"ledger/{_DIGEST}\.parquet"),
    FileKind("journals of LLM replies", r"ledger/open/[^/]+\.jsonl"),
    FileKind("vectors", rf"vectors/[^/]+/{_DIGEST}\.parquet"),
    FileKind("listings", r"snapshots/[^/]+/latest\.json"),
    FileKind("failures of sources", r"snapshots/[^/]+/failure\.json"),
    FileKind("snapshots", rf"snapshots/[^/]+/{_DIGEST}/(agents|tools)\.json"),
    FileKind("rows of snapshots", rf"snapshots/[^/]+/layers/{_DIGEST}\.parquet"),
    FileKind("pointers", r"[a-z]+/(?:[^/]+/)?latest-?[^/]*\.json"),
    FileKind("row sets", rf"documents/(?:[a-z]+-)?{_DIGEST}\.json"),
    FileKind("row sets", rf"edges/(?:inferred-)?{_DIGEST}\.json"),
    FileKind("row sets", rf"(?:records|generated)/{_DIGEST}/(?:agents|tools)\.json"),
    FileKind("rows of row sets", rf"[a-z]+/layers/{_DIGEST}\.parquet"),
    FileKind("digests of agents", rf"edges/agents-{_DIGEST}\.json"),
    FileKind("unresolved dependencies", rf"edges/{_DIGEST}-unresolved\.json"),
    FileKind("details of gates", rf"gates/[0-9a-f]+-{_DIGEST}\.json"),
    FileKind("answers to golden queries", rf"gates/answers/{_DIGEST}\.parquet"),
    FileKind("journals of prunes", r"(?:last-)?prune\.json"),
    FileKind("notes of formats", r"formats\.json"),
    FileKind("public tables", r"public/[a-z_]+/[^/]+/[^/]+\.parquet", PUBLIC),
    FileKind("schemas of public tables", r"public/schema\.json", PUBLIC),
)
"""Every kind of file in the lake. The first whose `path` matches is a file's kind."""
OTHER = FileKind("other files", ".*")
"""The kind of a file that `KINDS` does not list."""


def kind_of(path: str) -> FileKind:
    """Return the kind of the file at a path."""
    return next((kind for kind in KINDS if re.fullmatch(kind.path, path)), OTHER)


def current_formats() -> dict[str, int]:
    """Return the format that this version writes, by the name of each kind."""
    return {kind.name: kind.format for kind in KINDS}


def newer_format(place: str, what: str, stated: int, known: int) -> NewerFormat:
    """Return the error for what a newer version of Pegboard wrote.

    Args:
        place: the address of the file or the lake.
        what: the name of the kind of file.
    """
    return NewerFormat(
        f"{place} was written by a newer version of Pegboard: it has format {stated} of {what}, "
        f"and this version reads up to {known}. Nothing was changed. Upgrade Pegboard, or build a "
        f"board at another address."
    )
