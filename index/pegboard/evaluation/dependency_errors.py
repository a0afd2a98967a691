"""What following dependencies gains, and where it fails: Graph RAG-Tool Fusion's own accounts.

Lumer and others, 2025. Equation 1 (section 3.3), with k tools found by search, at most d
dependencies of each, K tools returned, and N tools discovered in all:

    E[retrieval(k, d, K)] = E[retrieval by search(k)] + E[added by dependencies(k, d)] x min(1, K/N)

Errors (section 7.2) are queries that lack a needed tool among the first K. The first tool that a
query names is its main one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import QueryResult, ReleaseSystem
from pegboard.retrieval.rules.dependencies import Dependencies
from pegboard.retrieval.strategy import Strategy

NOT_FOUND = "main tool not in the top k"
CUT_TOP_1 = "cut off, main tool is top-1"
CUT = "cut off, main tool is not top-1"
NOT_LINKED = "not linked to a tool of the top k"
ERRORS = (NOT_FOUND, CUT_TOP_1, CUT, NOT_LINKED)


@dataclass(frozen=True, slots=True)
class DependencyAccount:
    """One strategy's account.

    Attributes:
        by_search: mean recall of the first k tools of the search.
        added: mean recall that their dependencies add, before anything is cut off.
        discovered: mean number of tools before the cut: N.
        expected: equation 1.
        measured: mean recall of the first K tools that the strategy returned.
        errors: for each class of `ERRORS` the number of queries.
    """

    strategy: str
    index: str
    k: int
    d: int
    final: int
    queries: int
    by_search: float
    added: float
    discovered: float
    expected: float
    measured: float
    errors: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return values | {"errors": dict(self.errors)}


def dependency_account(
    system: ReleaseSystem, results: Sequence[QueryResult], final: int
) -> DependencyAccount:
    """Account for what a strategy with the part `dependencies` retrieved.

    Args:
        results: of that system, at least `final` tools deep.
        final: K, the tools that count.

    Raises ConfigurationError for a strategy without that part.
    """
    part, searched = _without_dependencies(system.strategy)
    hits = replace(system, strategy=searched).search(
        [result.query for result in results], part.initial
    )
    values: dict[str, list[float]] = {name: [] for name in ("search", "added", "tools", "measured")}
    errors: Counter[str] = Counter(dict.fromkeys(ERRORS, 0))
    for result, found in zip(results, hits, strict=True):
        top = [tool.id for tool in found.retrieved]
        tools = _expanded(system.searcher, part, top)
        returned = [tool.id for tool in result.retrieved[:final]]
        by_search, measured = _recall(result.needed, top), _recall(result.needed, returned)
        values["search"].append(by_search)
        values["added"].append(_recall(result.needed, tools) - by_search)
        values["tools"].append(len(tools))
        values["measured"].append(measured)
        if measured < 1:
            errors[_error(result, top, tools, returned)] += 1
    search, added, discovered, reached = (sum(own) / len(results) for own in values.values())
    return DependencyAccount(
        strategy=system.strategy_name,
        index=system.index_name,
        k=part.initial,
        d=part.limit,
        final=final,
        queries=len(results),
        by_search=search,
        added=added,
        discovered=discovered,
        expected=search + added * min(1.0, final / discovered if discovered else 1.0),
        measured=reached,
        errors=dict(errors),
    )


def closed_queries(queries: Iterable[GoldenQuery], searcher: Searcher) -> list[GoldenQuery]:
    """The queries, each needing also what its tools depend on, in the graph of the release.

    Of a name that means several tools, what all of them depend on is needed.
    """
    return [_closed(query, searcher) for query in queries]


def _closed(query: GoldenQuery, searcher: Searcher) -> GoldenQuery:
    tools = dict.fromkeys(query.tools)
    for ids in searcher.names.resolve(query.tools).tools.values():
        walks = [
            [edge.target for edge in searcher.loaded.graph.dependencies(tool, None)]
            for tool in sorted(ids)
        ]
        every = set[str]().union(*walks).intersection(*walks)
        tools |= dict.fromkeys(tool for tool in walks[0] if tool in every)
    return replace(query, tools=tuple(tools))


def _without_dependencies(strategy: Strategy) -> tuple[Dependencies, Strategy]:
    """The part, and the strategy up to it."""
    for place, part in enumerate(strategy.refine):
        if isinstance(part, Dependencies):
            return part, replace(strategy, refine=strategy.refine[:place])
    raise ConfigurationError(
        f"The strategy '{strategy.name}' follows no dependencies. Expected one with the part "
        f"'dependencies', such as the strategy 'dependencies'."
    )


def _expanded(searcher: Searcher, part: Dependencies, top: Iterable[str]) -> list[str]:
    """Lines 11 to 20 of algorithm 1: the tools, each followed by what it depends on, none twice."""
    tools: dict[str, None] = {}
    for tool in top:
        tools.setdefault(tool)
        walk = searcher.loaded.graph.dependencies(
            tool,
            part.limit,
            types=part.types,
            origins=part.origins,
            min_confidence=part.min_confidence,
        )
        tools.update(dict.fromkeys(edge.target for edge in walk))
    return list(tools)


def _recall(needed: Needed, tools: Iterable[str]) -> float:
    retrieved = {label for label, _ in needed.labelled((tool, 0.0) for tool in tools)}
    return len(needed.labels & retrieved) / len(needed.labels)


def _error(
    result: QueryResult, top: Sequence[str], tools: Sequence[str], returned: Sequence[str]
) -> str:
    needed = result.needed.tools
    main = needed.get(result.query.tools[0], frozenset())
    if main.isdisjoint(top):
        return NOT_FOUND
    lacking = [ids for ids in needed.values() if ids.isdisjoint(returned)]
    if any(ids.isdisjoint(tools) for ids in lacking) or result.needed.unknown:
        return NOT_LINKED
    return CUT_TOP_1 if top[0] in main else CUT
