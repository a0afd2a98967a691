"""What following dependencies gains, and where it fails (Lumer et al., "Graph RAG-Tool Fusion").

Equation 1 (section 3.3), with k tools found by search, at most d dependencies of each, K tools
returned, and N tools discovered in all:

    E[retrieval(k, d, K)] = E[retrieval by search(k)] + E[added by dependencies(k, d)] x min(1, K/N)

Errors (section 7.2) are queries that lack a needed tool among the first K. The first tool that a
query names is its main one, and the others are those on which it depends: golden queries name them,
or `closed_queries` adds them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import QueryResult, ReleaseSystem
from pegboard.formatting import table_lines
from pegboard.retrieval.found import Trace
from pegboard.retrieval.rules.dependencies import Dependencies

NOT_FOUND = "the main tool is not among the k tools that search found"
CUT_BEHIND_OTHERS = "cut off, and the main tool is not the first of the k"
CUT = "cut off, and the main tool is the first of the k"
NOT_LINKED = "no edge within the limits leads to a needed tool"
ERRORS = (NOT_FOUND, CUT_BEHIND_OTHERS, CUT, NOT_LINKED)
"""The classes of errors: the paper's three, and one that its complete graph cannot have."""


@dataclass(frozen=True, slots=True)
class DependencyAccount:
    """What following dependencies gained one strategy, and its errors.

    Attributes:
        k: the number of tools whose dependencies are followed.
        d: the largest number of dependencies of each.
        final: the number of tools that count, K.
        queries: their number.
        by_search: the mean recall of the first k tools of the search.
        added: the mean recall that their dependencies add, before anything is cut off.
        discovered: the mean number of tools before the cut, N.
        expected: the recall by equation 1.
        measured: the mean recall of the first K tools that the strategy returned.
        errors: the number of queries of each class of `ERRORS`.
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
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Expansion:
    """One query as the strategy answered it.

    Attributes:
        searched: the tools whose dependencies were followed, best first.
        discovered: these, each followed by its dependencies, before the cut.
        returned: the first K tools of the answer.
    """

    result: QueryResult
    searched: Sequence[str]
    discovered: Sequence[str]
    returned: Sequence[str]

    def recall(self, tools: Iterable[str]) -> float:
        """The share of the needed tools that is among these."""
        needed = self.result.needed
        retrieved = {label for label, _ in needed.labelled((tool, 0.0) for tool in tools)}
        return len(needed.labels & retrieved) / len(needed.labels)

    def error(self) -> str | None:
        """The class of `ERRORS`; None if no needed tool is missing."""
        needed = self.result.needed
        if self.recall(self.returned) == 1:
            return None
        main_tool = _main_tool(self.result.query, needed)
        if main_tool.isdisjoint(self.searched):
            return NOT_FOUND
        missing = [ids for ids in needed.tools.values() if ids.isdisjoint(self.returned)]
        if needed.unknown or any(ids.isdisjoint(self.discovered) for ids in missing):
            return NOT_LINKED
        return CUT if self.searched[0] in main_tool else CUT_BEHIND_OTHERS


def follows_dependencies(system: ReleaseSystem) -> bool:
    """Whether a system's strategy has the part `dependencies`, and so an account."""
    parts = getattr(system.strategy, "refine", ())  # a search for agents has none
    return any(isinstance(part, Dependencies) for part in parts)


def dependency_account(
    system: ReleaseSystem, results: Sequence[QueryResult], final: int
) -> DependencyAccount:
    """Account for what a strategy with the part `dependencies` retrieved.

    Args:
        results: what the system retrieved with `explain`, at least `final` tools for each query.
        final: the number of tools that count, K.

    Raises ConfigurationError for a strategy without that part.
    """
    part = _part(system)
    expansions = [_expansion(system.searcher, part, result, final) for result in results]
    count = len(expansions)
    by_search = sum(each.recall(each.searched) for each in expansions) / count
    with_added = sum(each.recall(each.discovered) for each in expansions) / count
    discovered = sum(len(each.discovered) for each in expansions) / count
    kept = min(1.0, final / discovered) if discovered else 1.0
    errors = Counter(error for each in expansions if (error := each.error()))
    return DependencyAccount(
        strategy=system.strategy_name,
        index=system.index_name,
        k=part.initial,
        d=part.limit,
        final=final,
        queries=count,
        by_search=by_search,
        added=with_added - by_search,
        discovered=discovered,
        expected=by_search + (with_added - by_search) * kept,
        measured=sum(each.recall(each.returned) for each in expansions) / count,
        errors={name: errors[name] for name in ERRORS},
    )


def account_lines(account: Mapping[str, Any]) -> list[str]:
    """Return an account, as `DependencyAccount.to_dict` gives it, as lines for people."""
    final = account["final"]
    errors = sum(account["errors"].values())
    lines = [
        f"{account['strategy']} in {account['index']}: recall {account['by_search']:.3f} by search "
        f"(k = {account['k']}) + {account['added']:.3f} by dependencies (d = {account['d']}) x "
        f"min(1, {final} / {account['discovered']:.1f}) = {account['expected']:.3f} expected; "
        f"{account['measured']:.3f} measured",
        f"{errors} of {account['queries']} queries lack a needed tool among the first {final}",
    ]
    if not errors:
        return lines
    rows = [
        [name, str(count), f"{count / errors:.0%}"] for name, count in account["errors"].items()
    ]
    return [*lines, *table_lines(["", "queries", "of these"], rows)]


def closed_queries(queries: Iterable[GoldenQuery], searcher: Searcher) -> list[GoldenQuery]:
    """Return the queries, each needing also what its tools depend on by declared edges.

    Of a name that means several tools, what all of them depend on is needed.
    """
    return [_closed(query, searcher) for query in queries]


def _closed(query: GoldenQuery, searcher: Searcher) -> GoldenQuery:
    dependencies = searcher.loaded.graph.dependencies
    in_release = searcher.names.catalogs.__contains__
    needed = dict.fromkeys(query.tools)
    named = searcher.names.resolve(query.tools).tools.values()
    for ids in named:
        walks = [
            [edge.target for edge in dependencies(tool, None, ("declared",), in_release)]
            for tool in sorted(ids)
        ]
        shared = set(walks[0]).intersection(*walks[1:])
        needed |= dict.fromkeys(tool for tool in walks[0] if tool in shared)
    already_named = frozenset[str]().union(*named) - set(query.tools)
    tools = (tool for tool in needed if tool not in already_named)
    return replace(query, tools=tuple(tools))


def _main_tool(query: GoldenQuery, needed: Needed) -> frozenset[str]:
    """The ids that the first name of a query may mean."""
    return needed.tools.get(query.tools[0], frozenset())


def _part(system: ReleaseSystem) -> Dependencies:
    for part in system.strategy.refine:
        if isinstance(part, Dependencies):
            return part
    raise ConfigurationError(
        f"The strategy '{system.strategy_name}' follows no dependencies. Expected one with the "
        f"part 'dependencies', such as the strategy 'dependencies'."
    )


def _expansion(
    searcher: Searcher, part: Dependencies, result: QueryResult, final: int
) -> Expansion:
    """Lines 11 to 20 of algorithm 1, for the tools from which the strategy started."""
    searched = _tools_before(part.part, result.trace)[: part.initial]
    in_release = searcher.names.catalogs.__contains__
    discovered: dict[str, None] = {}
    for tool in searched:
        discovered.setdefault(tool)
        walk = searcher.loaded.graph.dependencies(tool, part.limit, part.origins, in_release)
        discovered.update(dict.fromkeys(edge.target for edge in walk))
    returned = [tool.id for tool in result.retrieved[:final]]
    return Expansion(result, searched, list(discovered), returned)


def _tools_before(part: str, trace: Trace | None) -> list[str]:
    """The ranking that entered a part: that of the last fusion or refinement before it."""
    ranking: list[str] = []
    for ran in trace.parts if trace else ():
        if ran.part == part and ran.step is None:
            break
        if ran.stage in ("fuse", "refine"):
            ranking = sorted(ran.ranks, key=lambda tool: ran.ranks[tool])
    return ranking
