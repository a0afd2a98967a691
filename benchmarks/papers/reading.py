"""Reading a benchmark's folder: its files, their rows, and everything that cannot be used."""

import ast
import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.papers import NAMES
from catalogs.records.source import read_rows
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.errors import ConfigurationError
from pegboard.formatting import count_text, list_text

PROBLEMS_SHOWN = 3
"""Rows that a problem names as examples; it counts them all."""
UNKNOWN_SHOWN = 5
"""Unknown tools that a problem names; it counts them all."""
FILES_SHOWN = 12
"""Names of a folder that a message lists."""

Converted = TypeVar("Converted")


class LeftOut(Exception):
    """A row cannot be used, and why."""


class Folder:
    """The files of one benchmark. A row that cannot be used is counted with its reason, not raised.

    Args:
        path: the folder, or the one that holds it under the benchmark's name.
        benchmark: its name.

    Raises ConfigurationError if there is no such folder.
    """

    def __init__(self, path: Path, benchmark: str) -> None:
        path = path.expanduser().resolve()
        if not path.is_dir():
            siblings = (
                _listed(path.parent) if path.parent.is_dir() else "nothing, not even its parent"
            )
            raise ConfigurationError(
                f"There is no folder {path}. Expected --data to name the folder of {benchmark}, "
                f"with {NAMES[benchmark]}. Beside it there is: {siblings}."
            )
        self.path, self.benchmark = path, benchmark
        self._notes: list[str] = []
        self._left_out: dict[str, list[str]] = {}
        self._rows: dict[str, int] = {}

    def files(self, needs: Mapping[str, Sequence[str]]) -> dict[str, list[Path]]:
        """For each need the files that one of its patterns matches, sorted.

        They may be in a folder below with the benchmark's name. Raises ConfigurationError that
        names everything that is missing, and the files of the folder.
        """
        matches = self._matching(needs)
        below = (one for one in _folders(self.path) if _folder_name(one.name) == self.benchmark)
        if not any(matches.values()) and (folder := next(below, None)) is not None:
            self.path = folder
            matches = self._matching(needs)
        if missing := [
            f"{need} ({' or '.join(needs[need])})" for need, files in matches.items() if not files
        ]:
            raise ConfigurationError(
                f"{self.path} is no folder of {self.benchmark}: it lacks {' and '.join(missing)}. "
                f"Expected {NAMES[self.benchmark]}. It holds: {_listed(self.path)}."
            )
        return matches

    def optional(self, name: str) -> Path | None:
        """The file of that name, if it exists."""
        path = self.path / name
        return path if path.is_file() else None

    def rows(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of a file that are JSON objects, each with its place.

        Raises SourceError if the file cannot be read at all.
        """
        for row in read_rows(path):
            self._rows[path.name] = self._rows.get(path.name, 0) + 1
            if row.problem:
                self._leave_out(row.where, row.problem, path)
            else:
                yield row.where, row.value

    def converted(
        self, path: Path, convert: Callable[[dict[str, Any]], Converted]
    ) -> list[Converted]:
        """Convert each row of a file; rows for which `convert` raises LeftOut are left out."""
        values: list[Converted] = []
        for where, row in self.rows(path):
            try:
                values.append(convert(row))
            except LeftOut as reason:
                self._leave_out(where, reason, path)
        return values

    def listed(self, catalog: str) -> Listing:
        """What the source of a catalog's table lists. Raises SourceError if it cannot be read."""
        ((name, table),) = tomllib.loads(catalog)["catalogs"].items()
        kind = source_kind(table["type"])
        builder = ListingBuilder(name, Path())
        kind.read(builder, kind.options.model_validate(table))
        return builder.build()

    def note(self, problem: str) -> None:
        """Record something that a reader of the results has to know."""
        self._notes.append(problem)

    def problems(self) -> list[str]:
        """What was left out, and the notes."""
        left_out = [
            f"{name}: {len(reasons)} of {self._rows.get(name, len(reasons))} rows left out: "
            f"{list_text((f'{reason:.200}' for reason in reasons), PROBLEMS_SHOWN, '; ')}"
            for name, reasons in self._left_out.items()
        ]
        return [*left_out, *self._notes]

    def _leave_out(self, where: str, reason: object, path: Path) -> None:
        place = where.removeprefix(path.name).strip()
        self._left_out.setdefault(path.name, []).append(f"{place}: {reason}")

    def _matching(self, needs: Mapping[str, Sequence[str]]) -> dict[str, list[Path]]:
        return {
            need: sorted(
                {
                    path
                    for pattern in patterns
                    for path in self.path.glob(pattern)
                    if path.is_file() and not path.name.startswith(".")
                }
            )
            for need, patterns in needs.items()
        }


def folders_of(path: Path) -> dict[str, Path]:
    """The folder of each benchmark that has one in a folder.

    Raises ConfigurationError if none has.
    """
    path = path.expanduser().resolve()
    folders = {_folder_name(one.name): one for one in _folders(path)} if path.is_dir() else {}
    by_name = {name: folders[name] for name in NAMES if name in folders}
    if not by_name:
        content = _listed(path) if path.is_dir() else "no folder of that name"
        raise ConfigurationError(
            f"{path} holds no folder of a benchmark. Expected --data to hold one or more of: "
            f"{', '.join(NAMES)}. There is: {content}."
        )
    return by_name


def unknown_text(names: Collection[str], noun: str, what: str) -> str:
    """How many unknown tools there are, and some of them: `2 steps whose tool is unknown: a, b`."""
    shown = list_text(dict.fromkeys(names), UNKNOWN_SHOWN)
    return f"{count_text(len(names), noun)} {what}: {shown}"


def texts_of(value: Any, what: str) -> list[str]:
    """The distinct texts of a list, of a list in JSON or Python text, or of one text.

    Raises LeftOut for anything else, and for no text.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(value)  # as Python prints a list
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        raise LeftOut(f"{what} is {value!r:.80}, expected texts")
    texts = list(dict.fromkeys(_valid(item.strip(), what) for item in items if item.strip()))
    if not texts:
        raise LeftOut(f"it names no {what}")
    return texts


def text_of(value: Any, what: str) -> str:
    """A text that is not blank. Raises LeftOut for anything else."""
    if not isinstance(value, str) or not value.strip():
        raise LeftOut(f"it has no {what} (got {value!r:.80})")
    return _valid(value, what)


def _valid(text: str, what: str) -> str:
    """The text, if it is valid UTF-8: `read_rows` keeps invalid bytes as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LeftOut(f"its {what} is not valid UTF-8 text") from None
    return text


def _folders(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir())


def _folder_name(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def _listed(path: Path) -> str:
    names = sorted(f"{one.name}/" if one.is_dir() else one.name for one in path.iterdir())
    return list_text(names, FILES_SHOWN) or "nothing"
