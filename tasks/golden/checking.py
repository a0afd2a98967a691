"""Checks of golden queries: whether they can be used, by themselves and on a board.

| finding       | level   | meaning |
|---------------|---------|---|
| format        | error   | a line that is not a golden query |
| few           | error   | too few queries are usable: known tools, not in the index themselves |
| contradiction | error   | the same request with other tools |
| same-id       | error   | two different queries of one id |
| unknown-tool  | error   | a name or id that no tool of the release has |
| unknown-agent | error   | a name or id that no agent of the release has |
| agents-only   | error   | it names no tool, in a file that [golden] or [gate] names |
| duplicate     | warning | the same request twice, or nearly, with the same tools |
| ambiguous     | warning | a name that several tools have; any of them is relevant |
| leak          | warning | it is in the index, with one of its tools: not usable |
| elsewhere     | warning | it is in the index, with a tool that is not among its own |
| not-held-out  | warning | an example of its tools in a file that no configured build holds out |

A query that is in an index finds itself, whatever the index is worth. It is there if nine in ten of
its words are those of a stored request, or of a sentence of six or more words of a description.
Shorter sentences are what everyday requests say, too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pegboard.evaluation.golden import (
    ALTERNATIVE,
    AgentNames,
    GoldenQuery,
    Needed,
    ToolNames,
    read_problems,
)
from pegboard.evaluation.searcher import Searcher
from pegboard.formatting import list_text
from pegboard.records import Tool
from pegboard.text.plain_text import sentences
from tasks.enrichment.near_duplicates import NearDuplicates, word_set
from tasks.golden.reading import as_words
from tasks.settings.release import MIN_QUERIES

SHOWN_CHARACTERS = 80
"""Characters of a query that a message shows."""
COPIED_WORDS = 6
"""Consecutive words shared with a description from which a query counts as a copy."""
TOOLS_PER_READ = 5_000
MAX_SUGGESTED = 20
"""Maximum unknown names with suggestions, which take seconds in a large catalog."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of golden queries, of these if it is about any."""

    level: Literal["error", "warning"]
    kind: str
    message: str
    queries: Sequence[GoldenQuery] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; queries by their ids."""
        ids = [query.id for query in self.queries]
        return {"level": self.level, "kind": self.kind, "message": self.message, "queries": ids}


@dataclass(frozen=True, slots=True)
class OnBoard:
    """A release to check queries on.

    Attributes:
        texts: (tool, text) of every stored request and longer sentence of a description.
    """

    release: str
    names: ToolNames
    texts: Sequence[tuple[str, str]]
    agents: AgentNames

    @classmethod
    def of(cls, searcher: Searcher) -> "OnBoard":
        """Return a release with the texts of its tools."""
        indexes = searcher.release.manifest["indexes"].values()
        max_questions = max(int(index["questions"]) for index in indexes)
        ids = sorted(searcher.names.catalogs)
        texts = [
            (tool.id, text)
            for start in range(0, len(ids), TOOLS_PER_READ)
            for tool in searcher.loaded.tools(ids[start : start + TOOLS_PER_READ]).values()
            for text in _indexed_texts(tool, max_questions)
        ]
        return cls(searcher.release.id, searcher.names, texts, searcher.agent_names)


def _indexed_texts(tool: Tool, most_questions: int) -> list[str]:
    written = tool.enrichment
    questions = dict.fromkeys((*tool.examples, *(written.questions if written else ())))
    described = sentences((written and written.description) or tool.description)
    return [text for text in questions if text.strip()][:most_questions] + [
        text for text in described if len(word_set(text)) >= COPIED_WORDS
    ]


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check; `usable` queries have no error and are not in the index. `coverage`
    says of tools, agents and catalogs how many a query needs (`covered`) of how many, and which
    tools none needs.
    """

    queries: tuple[GoldenQuery, ...]
    findings: tuple[Finding, ...]
    usable: int
    coverage: Mapping[str, Any] | None = None
    release: str | None = None

    def failed(self, *, strict: bool = False) -> bool:
        """Return whether there is an error; with `strict`, any finding."""
        return any(strict or finding.level == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "release": self.release,
            "queries": len(self.queries),
            "usable": self.usable,
            "origins": dict(Counter(query.origin for query in self.queries)),
            "findings": [finding.to_dict() for finding in self.findings],
            "coverage": self.coverage,
        }


def check_golden(
    file: Path,
    board: OnBoard | None = None,
    *,
    held_out: bool | None = None,
    min_queries: int = MIN_QUERIES,
) -> Checked:
    """Check a file of golden queries.

    Args:
        board: without it, the file is checked by itself.
        held_out: whether a configured build holds the file's examples out; None without a
            configuration.
        min_queries: usable queries below which it is an error.
    """
    queries, problems = read_problems(file, agents=True)
    findings = [Finding("error", "format", problem) for problem in problems]
    findings += [*_repeated(queries), *_shared_ids(queries)]
    examples = [query for query in queries if query.origin == "examples"]
    if held_out is False and examples:
        message = (
            f"{len(examples)} queries are examples of their tools, and neither [golden] nor "
            f"[gate] names this file: builds leave them in the index"
        )
        findings.append(Finding("warning", "not-held-out", message, examples))
    agents_only = [query for query in queries if not query.tools]
    if held_out and agents_only:
        message = (
            f"{len(agents_only)} queries name no tool, and builds measure tools. Move them to "
            f"another file, for `pegboard eval --agents`"
        )
        findings.append(Finding("error", "agents-only", message, agents_only))
    coverage = None
    if board is not None:
        needed = [board.names.resolve(query.tools) for query in queries]
        findings += [
            *_unknown_tools(queries, board.names),
            *_unknown_agents(queries, board.agents),
            *_ambiguous_names(queries, needed),
            *_leaks(queries, needed, board),
        ]
        coverage = _coverage(board.names, needed, map(board.agents.needed, queries))
    wrong = [row for row in findings if row.level == "error" or row.kind == "leak"]
    unusable = {query.id for finding in wrong for query in finding.queries}
    usable = len({query.id for query in queries} - unusable)
    if usable < min_queries:
        message = (
            f"{usable} queries are usable; expected {min_queries} or more, since a mean of fewer "
            f"is chance. Add some, or lower min_queries under [golden]"
        )
        findings.append(Finding("error", "few", message))
    findings.sort(key=lambda finding: finding.level)
    return Checked(
        tuple(queries), tuple(findings), usable, coverage, board.release if board else None
    )


def _repeated(queries: Sequence[GoldenQuery]) -> Iterator[Finding]:
    """Repeated requests, with the same tools or with others."""
    groups: dict[tuple[str, Any], list[GoldenQuery]] = {}
    for query in queries:
        groups.setdefault((as_words(query.query), _history(query)), []).append(query)
    for same in groups.values():
        if len({_right(query) for query in same}) > 1:
            sets = " and ".join(dict.fromkeys(", ".join(sorted(_right(query))) for query in same))
            message = (
                f"{_shown(same[0])} is listed for {sets}. Where each of them would do, write one "
                f'query with alternatives, as in "tools": [["a", "b"]]'
            )
            yield Finding("error", "contradiction", message, same)
        elif len(same) > 1:
            message = f"{_shown(same[0])} appears {len(same)} times"
            yield Finding("warning", "duplicate", message, same)
    firsts = [same[0] for same in groups.values()]
    index = NearDuplicates([query.query for query in firsts])
    for at, query in enumerate(firsts):
        for other in (firsts[place] for place in index.near(query.query) if place > at):
            if _right(query) == _right(other) and _history(query) == _history(other):
                message = (
                    f"{_shown(query)} and {_shown(other)} are near-duplicates, and count twice"
                )
                yield Finding("warning", "duplicate", message, (query, other))


def _right(query: GoldenQuery) -> frozenset[str]:
    """The names of the right tools and agents."""
    return frozenset((*query.tools, *query.agents))


def _shared_ids(queries: Sequence[GoldenQuery]) -> Iterator[Finding]:
    ids: dict[str, set[tuple[str, ...]]] = {}
    for query in queries:
        ids.setdefault(query.id, set()).add((query.query, *query.tools, *query.agents))
    for name, contents in ids.items():
        if len(contents) > 1:
            message = f"{len(contents)} different queries have the id {name}"
            yield Finding("error", "same-id", message)


def _unknown_tools(queries: Sequence[GoldenQuery], names: ToolNames) -> Iterator[Finding]:
    """Names that no tool has, with those that may be meant."""
    unknown: dict[str, list[GoldenQuery]] = {}
    for query in queries:
        for name in query.names:
            if names.resolve([name]).unknown:
                unknown.setdefault(name, []).append(query)
    for number, (name, named_by) in enumerate(sorted(unknown.items())):
        near = _suggestions(name, names) if number < MAX_SUGGESTED else []
        hint = f"Did you mean {' or '.join(near)}?" if near else "Correct or remove the name."
        message = f"no tool is called {name}, which {_count(named_by)}. {hint}"
        yield Finding("error", "unknown-tool", message, named_by)


def _unknown_agents(queries: Sequence[GoldenQuery], names: AgentNames) -> Iterator[Finding]:
    """Names that no agent has, with those that may be meant."""
    unknown: dict[str, list[GoldenQuery]] = {}
    for query in queries:
        for agent in query.agents:
            for name in agent.split(ALTERNATIVE):
                if name not in names.ids:
                    unknown.setdefault(name, []).append(query)
    for name, named_by in sorted(unknown.items()):
        near = get_close_matches(name, sorted(names.ids))
        hint = f"Did you mean {' or '.join(near)}?" if near else "Correct or remove the name."
        message = f"no agent is called {name}, which {_count(named_by)}. {hint}"
        yield Finding("error", "unknown-agent", message, named_by)


def _ambiguous_names(queries: Sequence[GoldenQuery], needed: Sequence[Needed]) -> Iterator[Finding]:
    shared: dict[str, tuple[frozenset[str], list[GoldenQuery]]] = {}
    for query, need in zip(queries, needed, strict=True):
        for name, ids in need.tools.items():
            if len(ids) > 1 and name in query.names:
                shared.setdefault(name, (ids, []))[1].append(query)
    for name, (ids, named_by) in sorted(shared.items()):
        message = (
            f"{len(ids)} tools are called {name}, which {_count(named_by)}: any of them is "
            f"relevant. To mean one, write its id: {list_text(sorted(ids), 3)}"
        )
        yield Finding("warning", "ambiguous", message, named_by)


def _leaks(
    queries: Sequence[GoldenQuery], needed: Sequence[Needed], board: OnBoard
) -> Iterator[Finding]:
    """Queries that are in the index themselves."""
    index = NearDuplicates([text for _, text in board.texts])
    for query, need in zip(queries, needed, strict=True):
        for tool in sorted({board.texts[place][0] for place in index.near(query.query)}):
            message = f"{_shown(query)} is in the index, with {tool}"
            if any(tool in ids for ids in need.tools.values()):
                message += ", which it has to find; it does not count"
                yield Finding("warning", "leak", message, [query])
            else:
                message += ", which is not among its tools"
                yield Finding("warning", "elsewhere", message, [query])


def _coverage(
    names: ToolNames, needed: Iterable[Needed], needed_agents: Iterable[Needed]
) -> dict[str, Any]:
    covered = {tool for need in needed for ids in need.tools.values() for tool in ids}
    named_agents = {agent for need in needed_agents for ids in need.tools.values() for agent in ids}

    def count(ids: Iterable[str], segments: int) -> int:
        return len({"/".join(tool.split("/")[:segments]) for tool in ids})

    segments = {"tools": 3, "agents": 2, "catalogs": 1}
    covered_by = {"tools": covered, "agents": covered | named_agents}
    shares = {
        name: {
            "covered": count(covered_by.get(name, covered | named_agents), depth),
            "of": count(names.catalogs, depth),
        }
        for name, depth in segments.items()
    }
    return {**shares, "uncovered": sorted(names.catalogs.keys() - covered)}


def _suggestions(name: str, names: ToolNames) -> list[str]:
    """Similar names, in as many segments, of tools."""
    segments = min(name.count("/"), 2)
    candidates = {"/".join(tool.split("/")[2 - segments :]) for tool in names.catalogs}
    return get_close_matches(name, sorted(candidates))


def _history(query: GoldenQuery) -> tuple[tuple[tuple[str, str], ...], ...]:
    return tuple(tuple(sorted(message.items())) for message in query.history)


def _count(queries: Sequence[GoldenQuery]) -> str:
    return f"{len(queries)} {'query needs' if len(queries) == 1 else 'queries need'}"


def _shown(query: GoldenQuery) -> str:
    text = " ".join(query.query.split())
    return f"'{text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 4] + ' ...'}'"
