"""The tools that an agent is given for a golden query: those it needs, and distractors."""

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
    """The counts of skipped queries, by reason.

    Attributes:
        without_calls: they name no right calls.
        without_tools: they need a tool that the release lacks.
        missing: those tools.
    """

    without_calls: int = 0
    without_tools: int = 0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offered:
    """Tools in OpenAI's form, and the id of each by the name that the agent sees."""

    tools: tuple[Mapping[str, Any], ...]
    ids: Mapping[str, str]


class ToolDefinitions:
    """The tools of a release in the form that a model is given, each read once.

    Args:
        descriptions: the catalog's own, or those that an LLM wrote.
    """

    def __init__(self, searcher: Searcher, descriptions: Descriptions = "catalog") -> None:
        self._loaded = searcher.loaded
        self._descriptions: Descriptions = descriptions
        self._hits: dict[str, Hit] = {}

    def fetch(self, tools: Iterable[str]) -> None:
        """Read the tools of those ids at once."""
        missing = sorted({tool for tool in tools if tool not in self._hits})
        for identity, tool in self._loaded.tools(missing).items() if missing else ():
            self._hits[identity] = Hit(tool, self._loaded.agents[tool.agent], 0.0, {})

    def offered(self, tools: Sequence[str]) -> Offered:
        """The tools of those ids, in that order."""
        self.fetch(tools)
        hits = [self._hits[tool] for tool in tools if tool in self._hits]
        named = {name: hit.tool.id for name, hit in call_names(hits).items()}
        return Offered(tuple(as_openai_tools(hits, self._descriptions)), named)


def cases_of(searcher: Searcher, queries: Sequence[GoldenQuery]) -> tuple[list[Case], LeftOut]:
    """The queries that an agent can be asked, and how many it cannot."""
    cases: list[Case] = []
    without_calls = without_tools = 0
    missing: dict[str, None] = {}
    for query in queries:
        if not query.calls:
            without_calls += 1
            continue
        called = [call["tool"] for call in query.calls]
        names = dict.fromkeys((*query.tools, *(name for name in called if name not in query.names)))
        needed = searcher.names.resolve(names)
        if needed.unknown:
            without_tools += 1
            missing |= dict.fromkeys(needed.unknown)
            continue
        preferred = frozenset[str]().union(*searcher.names.resolve(called).tools.values())
        ids = dict.fromkeys(min(tools & preferred or tools) for tools in needed.tools.values())
        cases.append(
            Case(
                replace(query, tools=tuple(names)),
                tuple(_right_call(searcher, call) for call in query.calls),
                tuple(ids),
                frozenset().union(*needed.tools.values()),
            )
        )
    return cases, LeftOut(without_calls, without_tools, tuple(missing))


def given_tools(
    case: Case, sizes: Sequence[int], tools: Sequence[str], seed: int
) -> dict[int, tuple[str, ...]]:
    """For each number of tools the ids of those that the agent gets: needed ones and distractors.

    A query that needs more tools gets all that it needs. A larger set contains the smaller
    ones; the order is random.

    Args:
        tools: the ids of all tools of the release, in an order that does not change.
    """
    dice = random.Random(f"{seed}:{case.query.id}")  # noqa: S311  a sample, no secret
    most = max(sizes, default=0) - len(case.needed)
    # A few more than needed, since tools that are right for the query are removed.
    drawn = dice.sample(tools, min(len(tools), max(most, 0) + len(case.right)))
    others = [tool for tool in drawn if tool not in case.right]
    order = {tool: _place(seed, case.query.id, tool) for tool in (*case.needed, *others)}
    given: dict[int, tuple[str, ...]] = {}
    for size in sizes:
        tools_of_size = (*case.needed, *others[: max(size - len(case.needed), 0)])
        given[size] = tuple(sorted(tools_of_size, key=order.__getitem__))
    return given


def _right_call(searcher: Searcher, call: Mapping[str, Any]) -> RightCall:
    tools = searcher.names.resolve([call["tool"]]).tools.values()
    return RightCall(frozenset().union(*tools), call.get("arguments", {}))


def _place(seed: int, query: str, tool: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{query}\n{tool}".encode()).digest()
