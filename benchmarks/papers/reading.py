"""A benchmark's folder while it is read: which files are there, their rows, and everything that is
wrong with them.
"""

import ast
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.papers import NAMES
from catalogs.records.files import read_rows
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.errors import ConfigurationError

SHOWN = 3
"""Rows that a problem names as examples; it counts them all."""
LISTED = 12
"""Names that a message lists of a folder."""


class LeftOut(Exception):
    """A row cannot be used, and why."""


class Folder:
    """The files of one benchmark. A row that cannot be used is counted with its reason and left
    out, never raised.

    Args:
        path: the folder, or the one that holds it under the benchmark's name.
        benchmark: its name.

    Raises ConfigurationError if there is no such folder.
    """

    def __init__(self, path: Path, benchmark: str) -> None:
        path = path.expanduser().resolve()
        if not path.is_dir():
            there = (
                _listed(path.parent)
                if path.parent.is_dir()
                else "nothing: its parent is missing, too"
            )
            raise ConfigurationError(
                f"There is no folder {path}. Expected --data to name the folder of {benchmark}, "
                f"with {NAMES[benchmark]}. "
                f"Beside it there is: {there}."
            )
        self.path, self.benchmark = path, benchmark
        self._said: list[str] = []
        self._left: dict[str, list[str]] = {}
        self._rows: dict[str, int] = {}

    def files(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, list[Path]]:
        """For each of several needs the files that one of its patterns matches, sorted; of a folder
        below with the benchmark's name if this one has none of them.

        Raises ConfigurationError that names everything that is missing, and what there is.
        """
        found = {what: self._matching(patterns) for what, patterns in wanted.items()}
        below = next(
            (one for one in _folders(self.path) if _plain(one.name) == self.benchmark), None
        )
        if not any(found.values()) and below is not None:
            self.path = below
            found = {what: self._matching(patterns) for what, patterns in wanted.items()}
        if missing := [
            f"{what} ({' or '.join(wanted[what])})" for what, files in found.items() if not files
        ]:
            raise ConfigurationError(
                f"{self.path} is no folder of {self.benchmark}: it lacks {' and '.join(missing)}. "
                f"Expected {NAMES[self.benchmark]}. It holds: {_listed(self.path)}."
            )
        return found

    def optional(self, name: str) -> Path | None:
        """The file of that name, if it is there."""
        path = self.path / name
        return path if path.is_file() else None

    def rows(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of a file that are JSON objects, each with its place. Raises SourceError if the
        file cannot be read at all.
        """
        for row in read_rows(path):
            self._rows[path.name] = self._rows.get(path.name, 0) + 1
            if row.problem:
                self.leave_out(row.where, row.problem, path)
            else:
                yield row.where, row.value

    def listed(self, catalog: str, base: Path = Path()) -> Listing:
        """What the source of a catalog's table lists, as the pipeline will. Raises SourceError if
        it cannot be read.
        """
        ((name, table),) = tomllib.loads(catalog)["catalogs"].items()
        kind = source_kind(table["type"])
        builder = ListingBuilder(name, base)
        kind.read(builder, kind.options.model_validate(table))
        return builder.build()

    def leave_out(self, where: str, why: object, path: Path) -> None:
        """Count a row that cannot be used."""
        self._left.setdefault(path.name, []).append(
            f"{where.removeprefix(path.name).strip()}: {why}"
        )

    def say(self, problem: str) -> None:
        """Tell something about the benchmark that its reader has to know."""
        self._said.append(problem)

    def problems(self) -> list[str]:
        """What was left out, and what was said."""
        left = [
            f"{name}: {len(reasons)} of {self._rows.get(name, len(reasons))} rows left out: "
            f"{some(reasons)}"
            for name, reasons in self._left.items()
        ]
        return [*left, *self._said]

    def _matching(self, patterns: Sequence[str]) -> list[Path]:
        found = {path for pattern in patterns for path in self.path.glob(pattern) if path.is_file()}
        return sorted(path for path in found if not path.name.startswith("."))


def folders_of(path: Path) -> dict[str, Path]:
    """The folder of every benchmark that has one in a folder. Raises ConfigurationError if none
    has.
    """
    path = path.expanduser().resolve()
    there = {_plain(one.name): one for one in _folders(path)} if path.is_dir() else {}
    found = {name: there[name] for name in NAMES if name in there}
    if not found:
        held = _listed(path) if path.is_dir() else "no folder of that name"
        raise ConfigurationError(
            f"{path} holds no folder of a benchmark. Expected --data to hold one or more of: "
            f"{', '.join(NAMES)}. There is: {held}."
        )
    return found


def texts_of(value: Any, what: str, *, least: int = 1) -> list[str]:
    """The texts of a list, each once, in their order; of a list in JSON text, or one text, too.
    Raises LeftOut for anything else.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(value)  # as Python prints a list
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in listed):
        raise LeftOut(f"{what} is {value!r:.80}, expected texts")
    texts = list(dict.fromkeys(_valid(one.strip(), what) for one in listed if one.strip()))
    if len(texts) < least:
        raise LeftOut(f"it names no {what}")
    return texts


def text_of(value: Any, what: str) -> str:
    """A text that is not blank. Raises LeftOut for anything else."""
    if not isinstance(value, str) or not value.strip():
        raise LeftOut(f"it has no {what} (got {value!r:.80})")
    return _valid(value, what)


def _valid(text: str, what: str) -> str:
    """The text, if it can be written as UTF-8: `read_rows` keeps bytes that are none as lone
    surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LeftOut(f"its {what} is not valid UTF-8 text") from None
    return text


def counted(number: int, noun: str) -> str:
    """A number of things: `1 tool`, `2 tools`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some(reasons: Sequence[str]) -> str:
    """The first reasons, and how many more there are."""
    more = f"; and {len(reasons) - SHOWN} more" if len(reasons) > SHOWN else ""
    return "; ".join(f"{reason:.200}" for reason in reasons[:SHOWN]) + more


def _folders(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir())


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def _listed(path: Path) -> str:
    names = sorted(f"{one.name}/" if one.is_dir() else one.name for one in path.iterdir())
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more if names else "nothing"
