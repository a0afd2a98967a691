"""The golden queries of a configuration: `[golden] queries`, whose right tools are known, and
`unanswerable`, which no tool answers.
"""

from dataclasses import dataclass

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, ToolNames, golden_problems, read_problems
from pegboard.retrieval.calibration import MIN_REQUESTS
from tasks.settings.configuration import Configuration


@dataclass(frozen=True, slots=True)
class Golden:
    """What the files hold."""

    queries: tuple[GoldenQuery, ...]
    unanswerable: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Equal for equal requests in the same order."""
        return digest([one.to_dict() for one in self.queries], self.unanswerable)

    def meant(self, names: ToolNames) -> tuple[list[tuple[str, frozenset[str]]], list[str]]:
        """The requests, each with the ids of its right tools, and what names no tool of the
        release.

        A name that several tools have means each of them; a request none of whose tools is known is
        left out."""
        found: list[tuple[str, frozenset[str]]] = []
        unknown: set[str] = set()
        for golden in self.queries:
            needed = names.resolve(golden.tools)
            unknown |= set(needed.unknown)
            if right := frozenset[str]().union(*needed.tools.values()):
                found.append((golden.query, right))
        return found, sorted(unknown)


def read_golden(configuration: Configuration) -> Golden | None:
    """The golden requests of a configuration; None if it names none.

    Raises ConfigurationError with every line that is not as expected.
    """
    settings = configuration.golden
    if settings is None:
        return None
    queries, problems = read_problems(configuration.base / settings.queries)
    asked: list[GoldenQuery] = []
    if settings.unanswerable is not None:
        asked, more = read_problems(configuration.base / settings.unanswerable, answerable=False)
        problems += more
    if not problems:
        problems += [
            f"{configuration.base / name} has {count} requests; expected {MIN_REQUESTS} or more: the "
            f"meaning of a score by fewer is chance"
            for name, count in (
                (settings.queries, len(queries)),
                (settings.unanswerable, len(asked)),
            )
            if name is not None and count < MIN_REQUESTS
        ]
    if problems:
        raise ConfigurationError(golden_problems(f"[golden] of {configuration.file}", problems))
    return Golden(tuple(queries), tuple(one.query for one in asked))
