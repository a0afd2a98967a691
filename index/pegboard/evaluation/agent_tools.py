"""The tools that an agent is given for a golden query: those that it needs, and others of the
release that it does not.
"""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.tool_calls import RightCall
from pegboard.hits import Descriptions, Hit, as_openai_tools, call_names


@dataclass(frozen=True, slots=True)
class Case:
    """A golden query with its right calls, among the tools of a release.

    Attributes:
        query: the query; its `tools` are all that it or one of its calls names.
        calls: what is right.
        needed: ids, one for each tool that is named.
        right: the ids of all tools that would do for one that is named; none of them is a
            distractor.
    """

    query: GoldenQuery
    calls: tuple[RightCall, ...]
    needed: tuple[str, ...]
    right: frozenset[str]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The queries that an agent is not asked: those without right calls, and those that need a tool
    that the release has not.
    """

    without_calls: int = 0
    without_tools: int = 0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offered:
    """Tools as an agent is given them: as OpenAI's, and the id of each by the name under which it
    is given.
    """

    tools: tuple[Mapping[str, Any], ...]
    ids: Mapping[str, str]


class Shelf:
    """The tools of a release as a model is given them, each read once.

    Args:
        searcher: the release.
        descriptions: the catalog's own, or those that an LLM wrote.
    """

    def __init__(self, searcher: Searcher, descriptions: Descriptions = "catalog") -> None:
        self._loaded = searcher.loaded
        self._descriptions: Descriptions = descriptions
        self._hits: dict[str, Hit] = {}

    def fetch(self, tools: Iterable[str]) -> None:
        """Read the tools of those ids at once."""
        missing = sorted({one for one in tools if one not in self._hits})
        for identity, tool in self._loaded.tools(missing).items() if missing else ():
            self._hits[identity] = Hit(tool, self._loaded.agents[tool.agent], 0.0, {})

    def offered(self, tools: Sequence[str]) -> Offered:
        """The tools of those ids, in that order."""
        self.fetch(tools)
        hits = [self._hits[one] for one in tools if one in self._hits]
        named = {name: hit.tool.id for name, hit in call_names(hits).items()}
        return Offered(tuple(as_openai_tools(hits, self._descriptions)), named)


def cases_of(searcher: Searcher, queries: Sequence[GoldenQuery]) -> tuple[list[Case], LeftOut]:
    """The queries that an agent can be asked, and how many it cannot."""
    cases: list[Case] = []
    bare, short = 0, 0
    missing: dict[str, None] = {}
    for query in queries:
        called = [searcher.names.resolve([call["tool"]]) for call in query.calls]
        names = tuple(dict.fromkeys((*query.tools, *(call["tool"] for call in query.calls))))
        needed = searcher.names.resolve(names)
        bare += not query.calls
        short += bool(query.calls and needed.unknown)
        missing |= dict.fromkeys(needed.unknown if query.calls else ())
        if query.calls and not needed.unknown:
            calls = [
                RightCall(frozenset().union(*one.tools.values()), call.get("arguments", {}))
                for one, call in zip(called, query.calls, strict=True)
            ]
            ids = [min(one) for one in needed.tools.values()]
            right = frozenset().union(*needed.tools.values())
            cases.append(
                Case(replace(query, tools=names), tuple(calls), tuple(dict.fromkeys(ids)), right)
            )
    return cases, LeftOut(bare, short, tuple(missing))


def given_tools(
    case: Case, sizes: Sequence[int], tools: Sequence[str], seed: int
) -> dict[int, tuple[str, ...]]:
    """For each number of tools which ones the agent gets, by id: what the query needs, and
    distractors up to that number.

    A query that needs more tools than that gets all that it needs. A larger set holds the smaller
    ones; the order is of chance.

    Args:
        tools: the ids of all tools of the release, in an order that does not change.
    """
    dice = random.Random(f"{seed}:{case.query.id}")  # noqa: S311  a sample, no secret
    most = max(sizes, default=0) - len(case.needed)
    # A few more than are wanted, since some may be right for the query and fall out.
    drawn = dice.sample(tools, min(len(tools), max(most, 0) + len(case.right)))
    others = [one for one in drawn if one not in case.right]
    order = {one: _place(seed, case.query.id, one) for one in (*case.needed, *others)}
    given: dict[int, tuple[str, ...]] = {}
    for size in sizes:
        kept = (*case.needed, *others[: max(size - len(case.needed), 0)])
        given[size] = tuple(sorted(kept, key=order.__getitem__))
    return given


def _place(seed: int, query: str, tool: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{query}\n{tool}".encode()).digest()
