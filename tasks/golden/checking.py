"""Checks of golden queries: whether they can be used, by themselves and on a board.

| finding       | level   | meaning |
|---------------|---------|---|
| format        | error   | a line that is no golden query |
| few           | error   | too few queries are usable: known tools, not in the index themselves |
| contradiction | error   | the same request with other tools |
| same-id       | error   | two different queries of one id |
| unknown-tool  | error   | a name or id that no tool of the release has |
| duplicate     | warning | the same request twice, or nearly, with the same tools |
| ambiguous     | warning | a name that several tools have; any of them is relevant |
| leak          | warning | it is in the index, with one of its tools: not usable |
| elsewhere     | warning | it is in the index, with a tool that is not among its own |
| not-held-out  | warning | an example of its tools in a file that no configured build holds out |

A query that is in an index finds itself, whatever the index is worth. It is there if it is a line
of a document, if six or more of its words stand there in a row, or if nine in ten of its words are
those of a stored request. A few words that stand in a description, as those of everyday requests
do, are no copy of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pegboard.evaluation.golden import GoldenQuery, Needed, ToolNames, read_problems
from pegboard.evaluation.searcher import Searcher
from pegboard.search.text import singular_words
from pegboard.store.contract import embedding_table
from pegboard.store.releases import ReleaseStore
from tasks.enrichment.near_duplicates import NearDuplicates
from tasks.golden.reading import as_words
from tasks.settings.release import MIN_QUERIES

SHOWN_CHARACTERS = 80
"""Of a query, in a message."""
MIN_WORDS = 3
"""A query of fewer words is in documents by chance, and compared with whole requests only."""
COPIED_WORDS = 6
"""Words in a row shared with a description that make a copy."""
TOOLS_PER_READ = 5_000
MAX_SUGGESTED = 20
"""Unknown names that are compared with all others, which takes seconds in a large catalog."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of golden queries; `queries` are their ids, if it is about any."""

    level: Literal["error", "warning"]
    kind: str
    message: str
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OnBoard:
    """A release to check queries on.

    Attributes:
        documents, requests: (tool, text) of every document and stored request of its indexes.
    """

    release: str
    names: ToolNames
    documents: Sequence[tuple[str, str]]
    requests: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, searcher: Searcher, uri: str) -> "OnBoard":
        """Return a release of the board at `uri`, with the texts of all its indexes."""
        release, store = searcher.release, ReleaseStore(uri)
        documents: dict[tuple[str, str], None] = {}
        for index in release.manifest["indexes"]:
            rows = store.read_rows(release.tables[embedding_table(index)], ["tool", "text"])
            columns = (rows.column(name).to_pylist() for name in ("tool", "text"))
            documents |= dict.fromkeys(zip(*columns, strict=True))
        most = max(int(index["questions"]) for index in release.manifest["indexes"].values())
        requests: list[tuple[str, str]] = []
        ids = sorted(searcher.names.catalogs)
        for start in range(0, len(ids), TOOLS_PER_READ):
            for tool in searcher.loaded.tools(ids[start : start + TOOLS_PER_READ]).values():
                written = tool.enrichment.questions if tool.enrichment else ()
                texts = dict.fromkeys((*tool.examples, *written))
                requests += [(tool.id, text) for text in texts if text.strip()][:most]
        return cls(release.id, searcher.names, tuple(documents), requests)


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
            "kinds": dict(Counter(query.kind for query in self.queries)),
            "origins": dict(Counter(query.origin for query in self.queries)),
            "findings": [
                asdict(finding) | {"queries": list(finding.queries)} for finding in self.findings
            ],
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
    queries, problems = read_problems(file)
    check = _Check(queries)
    for problem in problems:
        check.error("format", problem)
    check.repeats()
    if held_out is False and (
        examples := [query for query in queries if query.origin == "examples"]
    ):
        check.warn(
            "not-held-out",
            f"{len(examples)} queries are examples of their tools, and neither [golden] nor "
            f"[gate] names this file: builds leave them in the index",
            *examples,
        )
    coverage = None
    if board is not None:
        needed = [board.names.resolve(query.tools) for query in queries]
        check.tools(needed, board.names)
        check.leaks(needed, board)
        coverage = _coverage(board.names, needed)
    usable = len({query.id for query in queries} - check.unusable)
    if usable < min_queries:
        check.error(
            "few",
            f"{usable} queries are usable; expected {min_queries} or more, since a mean of fewer "
            f"is chance. Add some, or lower min_queries under [golden]",
        )
    order = {"error": 0, "warning": 1}
    findings = sorted(check.findings, key=lambda finding: order[finding.level])
    return Checked(
        tuple(queries), tuple(findings), usable, coverage, board.release if board else None
    )


@dataclass(slots=True)
class _Check:
    queries: Sequence[GoldenQuery]
    findings: list[Finding] = field(default_factory=list[Finding])
    unusable: set[str] = field(default_factory=set[str])

    def error(self, kind: str, message: str, *queries: GoldenQuery) -> None:
        self.unusable |= {query.id for query in queries}
        self.findings.append(Finding("error", kind, message, tuple(query.id for query in queries)))

    def warn(self, kind: str, message: str, *queries: GoldenQuery) -> None:
        self.findings.append(
            Finding("warning", kind, message, tuple(query.id for query in queries))
        )

    def repeats(self) -> None:
        """Find repeated requests, with the same tools or with others, and ambiguous ids."""
        groups: dict[tuple[str, Any], list[GoldenQuery]] = {}
        ids: dict[str, set[tuple[str, tuple[str, ...]]]] = {}
        for query in self.queries:
            groups.setdefault((as_words(query.query), _history(query)), []).append(query)
            ids.setdefault(query.id, set()).add((query.query, query.tools))
        for same in groups.values():
            if len({frozenset(query.tools) for query in same}) > 1:
                sets = " and ".join(dict.fromkeys(", ".join(sorted(query.tools)) for query in same))
                self.error(
                    "contradiction",
                    f"{_shown(same[0])} is listed for {sets}. Where each of them would do, write "
                    f'one query with alternatives, as in "tools": [["a", "b"]]',
                    *same,
                )
            elif len(same) > 1:
                self.warn("duplicate", f"{_shown(same[0])} appears {len(same)} times", *same)
        for name, what in ids.items():
            if len(what) > 1:
                self.error("same-id", f"{len(what)} different queries have the id {name}")
        firsts = [same[0] for same in groups.values()]
        index = NearDuplicates([query.query for query in firsts])
        for at, query in enumerate(firsts):
            for other in index.near(query.query):
                same_tools = set(query.tools) == set(firsts[other].tools) and _history(
                    query
                ) == _history(firsts[other])
                if other > at and same_tools:
                    text = (
                        f"{_shown(query)} and {_shown(firsts[other])} are near-duplicates, and "
                        f"count twice"
                    )
                    self.warn("duplicate", text, query, firsts[other])

    def tools(self, needed: Sequence[Needed], names: ToolNames) -> None:
        """Names that no tool has, with those that may be meant, and names that several have."""
        unknown: dict[str, list[GoldenQuery]] = {}
        shared: dict[str, tuple[frozenset[str], list[GoldenQuery]]] = {}
        for query, need in zip(self.queries, needed, strict=True):
            for name in query.names:
                if names.resolve([name]).unknown:
                    unknown.setdefault(name, []).append(query)
            for name, ids in need.tools.items():
                if len(ids) > 1 and name in query.names:
                    shared.setdefault(name, (ids, []))[1].append(query)
        for number, (name, queries) in enumerate(sorted(unknown.items())):
            near = _suggestions(name, names) if number < MAX_SUGGESTED else []
            hint = f"Did you mean {' or '.join(near)}?" if near else "Correct or remove the name."
            self.error(
                "unknown-tool",
                f"no tool is called {name}, which {_count(queries)}. {hint}",
                *queries,
            )
        for name, (ids, queries) in sorted(shared.items()):
            listed = ", ".join(sorted(ids)[:3]) + (", ..." if len(ids) > 3 else "")
            text = (
                f"{len(ids)} tools are called {name}, which {_count(queries)}: any of them is "
                f"relevant. To mean one, write its id: {listed}"
            )
            self.warn("ambiguous", text, *queries)

    def leaks(self, needed: Sequence[Needed], board: OnBoard) -> None:
        """Queries that stand in the index themselves."""
        documents = _Documents([text for _, text in board.documents])
        requests = NearDuplicates([text for _, text in board.requests])
        for query, need in zip(self.queries, needed, strict=True):
            copying = documents.copying(singular_words(query.query))
            found = {board.documents[number][0] for number in copying}
            found |= {board.requests[number][0] for number in requests.near(query.query)}
            for tool in sorted(found):
                text = f"{_shown(query)} is in the index, with {tool}"
                if any(tool in ids for ids in need.tools.values()):
                    self.unusable.add(query.id)
                    self.warn("leak", f"{text}, which it has to find; it does not count", query)
                else:
                    self.warn("elsewhere", f"{text}, which is not among its tools", query)


def _coverage(names: ToolNames, needed: Iterable[Needed]) -> dict[str, Any]:
    covered = {tool for need in needed for ids in need.tools.values() for tool in ids}

    def count(ids: Iterable[str], segments: int) -> int:
        return len({"/".join(tool.split("/")[:segments]) for tool in ids})

    segments = {"tools": 3, "agents": 2, "catalogs": 1}
    shares = {
        name: {"covered": count(covered, most), "of": count(names.catalogs, most)}
        for name, most in segments.items()
    }
    return {**shares, "uncovered": sorted(names.catalogs.keys() - covered)}


class _Documents:
    """An index of documents by their words, in which copies of queries are found."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._words = [f" {' '.join(singular_words(text))} " for text in texts]
        self._postings: dict[str, list[int]] = {}
        for number, words in enumerate(self._words):
            for word in dict.fromkeys(words.split()):
                self._postings.setdefault(word, []).append(number)

    def copying(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of the documents that have these words as one of their lines or, six
        or more words, anywhere in a row.
        """
        if len(words) < MIN_WORDS:
            return []
        rarest = min((self._postings.get(word, []) for word in words), key=len)
        row = f" {' '.join(words)} "
        found = [number for number in rarest if row in self._words[number]]
        if len(words) >= COPIED_WORDS:
            return found
        return [
            number
            for number in found
            if any(
                list(singular_words(line)) == list(words)
                for line in self._texts[number].split("\n")
            )
        ]


def _suggestions(name: str, names: ToolNames) -> list[str]:
    """Similar names, or tools of the same name elsewhere, for a name that no tool has."""
    moved = [
        tool
        for tool in sorted(names.catalogs)
        if "/" in name and tool.rpartition("/")[2] == name.rpartition("/")[2]
    ]
    if moved:
        return moved[:3]
    segments = name.count("/")
    candidates = {"/".join(tool.split("/")[2 - min(segments, 2) :]) for tool in names.catalogs}
    return get_close_matches(name, sorted(candidates))


def _history(query: GoldenQuery) -> tuple[tuple[tuple[str, str], ...], ...]:
    return tuple(tuple(sorted(message.items())) for message in query.history)


def _count(queries: Sequence[GoldenQuery]) -> str:
    return f"{len(queries)} {'query needs' if len(queries) == 1 else 'queries need'}"


def _shown(query: GoldenQuery) -> str:
    text = " ".join(query.query.split())
    return f"'{text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 4] + ' ...'}'"
