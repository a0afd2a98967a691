"""Golden requests: files of requests whose right tools are known, and of requests that no tool answers.

{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}     [golden] queries
{"query": "how tall is the Eiffel tower?"}                                  [golden] unanswerable
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from tasks.calibrate import LEAST
from tasks.configuration import Configuration

__all__ = ["Golden", "GoldenQuery", "read_golden"]

SHOWN = 10
"""Problems that a message lists; it counts them all."""


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A request and the true names or ids of the tools that are right for it."""

    query: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Golden:
    """What the files hold."""

    queries: tuple[GoldenQuery, ...]
    unanswerable: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Equal for equal requests in the same order."""
        return digest([asdict(one) for one in self.queries], self.unanswerable)

    def meant(self, names: Mapping[str, str]) -> tuple[list[tuple[str, frozenset[str]]], list[str]]:
        """The requests, each with the ids of its right tools, and what names no tool of the release.

        Args:
            names: the true name of every tool by its id. A name that several tools have means each of them.
        """
        ids: dict[str, set[str]] = {one: {one} for one in names}
        for one, name in names.items():
            ids.setdefault(name, set()).add(one)
        found: list[tuple[str, frozenset[str]]] = []
        unknown: set[str] = set()
        for golden in self.queries:
            unknown |= set(golden.tools) - ids.keys()
            if right := frozenset[str]().union(*(ids.get(tool, ()) for tool in golden.tools)):
                found.append((golden.query, right))
        return found, sorted(unknown)


def read_golden(configuration: Configuration) -> Golden | None:
    """The golden requests of a configuration; None if it names none.

    Raises ConfigurationError with every line that is not as expected.
    """
    settings = configuration.golden
    if settings is None:
        return None
    problems: list[str] = []
    lines = _lines(configuration.base / settings.queries, ("query", "tools"), problems)
    queries = tuple(GoldenQuery(line["query"], tuple(line["tools"])) for line in lines)
    asked: tuple[str, ...] = ()
    if settings.unanswerable is not None:
        lines = _lines(configuration.base / settings.unanswerable, ("query",), problems)
        asked = tuple(line["query"] for line in lines)
    if not problems:
        problems += [
            f"{configuration.base / name} has {count} requests; expected {LEAST} or more: the meaning of a score by fewer is chance"
            for name, count in ((settings.queries, len(queries)), (settings.unanswerable, len(asked)))
            if name is not None and count < LEAST
        ]
    if problems:
        more = f"\n  ... and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise ConfigurationError(
            f"[golden] of {configuration.file} has {len(problems)} problem{'s' if len(problems) > 1 else ''}:\n"
            + "\n".join(f"  - {problem}" for problem in problems[:SHOWN])
            + f'{more}\nExpected lines such as {{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"]}}; '
            "those of `unanswerable` have a query only."
        )
    return Golden(queries, asked)


def _lines(path: Path, fields: tuple[str, ...], problems: list[str]) -> list[dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
        return []
    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        wrong = list(_wrong(line, fields))
        problems += [f"{path}:{number}: {one}" for one in wrong]
        if not wrong:
            found.append(json.loads(line))
    return found


def _wrong(line: str, fields: tuple[str, ...]) -> Iterable[str]:
    try:
        value: Any = json.loads(line)
    except ValueError as error:
        yield f"not JSON: {error}"
        return
    if not isinstance(value, dict):
        yield f"expected a JSON object, got {line[:60]}"
        return
    known = cast("dict[str, Any]", value)
    query = known.get("query")
    if not isinstance(query, str) or not query.strip():
        yield f"query: expected a text (got {query!r:.60})"
    tools = known.get("tools")
    if "tools" in fields and not (
        isinstance(tools, list) and tools and all(_is_name(one) for one in cast("list[Any]", tools))
    ):
        yield f"tools: expected a list of names or ids (got {tools!r:.60})"
    for other in sorted(known.keys() - set(fields)):
        yield f"{other}: there is no such field"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
