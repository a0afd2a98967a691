"""Systems that search for agents, measured as those that search for tools.

This is what Tool-to-Agent Retrieval (Lumer and others, 2025) evaluates. A query names agents, or
tools, which stand for their owners. A tool name that several agents have is satisfied by any of
them, so a request needs a set of owners for each tool; an agent counts for the first set that
contains it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product, starmap
from typing import Any

from pegboard.evaluation.golden import ALTERNATIVE, GoldenQuery, Needed
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import Advance, QueryResult, ReleaseSystem, RetrievedTool
from pegboard.retrieval.find_agents import ENTITIES, rank_agents, search_entities
from pegboard.retrieval.found import PartTrace, Trace
from pegboard.retrieval.rules.clauses import split_clauses

SEARCHED = {
    "agents": "by their own descriptions",
    "tools": "by their tools",
    "both": "by both in one space",
}
TEXTS = {
    "": "",
    "steps": ", all steps as one request",
    "clauses": ", the request and its clauses",
}


@dataclass(frozen=True, slots=True)
class AgentStrategy:
    """How agents are searched.

    Attributes:
        searched: `agents` (their own descriptions), `tools` (the owners of tools) or `both`.
        mode: `text`, `vector` or `hybrid`.
        texts: the request as a whole if empty; `steps`, its known steps at once; or `clauses`, the
            request and its clauses.
    """

    searched: str
    mode: str
    texts: str = ""
    index: None = None

    @property
    def name(self) -> str:
        """Its name in rows, such as `both-vector-steps`."""
        mode = "BM25" if self.mode == "text" else self.mode
        return "-".join(part for part in (self.searched, mode, self.texts) if part)

    @property
    def description(self) -> str:
        """What it does, in words."""
        return f"agents: {SEARCHED[self.searched]}{TEXTS[self.texts]}"

    def fits(self, queries: Sequence[GoldenQuery]) -> bool:
        """Whether it differs from the whole request: steps and clauses are of whole questions."""
        return not self.texts or any(query.steps for query in queries)


AGENT_STRATEGIES = (
    *starmap(AgentStrategy, product(SEARCHED, ("text", "vector", "hybrid"))),
    *(
        AgentStrategy("both", mode, texts)
        for texts in ("steps", "clauses")
        for mode in ("vector", "hybrid")
    ),
)


@dataclass(frozen=True, slots=True)
class AgentSystem(ReleaseSystem):
    """A way of searching for agents in an index of a release."""

    strategy: Any  # an AgentStrategy

    @property
    def key(self) -> tuple[Any, ...]:
        """The release's digest, the index and the strategy's name."""
        return (self.searcher.release.digest, self.index, self.strategy.name)

    def search(
        self, queries: Sequence[GoldenQuery], depth: int, advance: Advance = lambda _: None
    ) -> list[QueryResult]:
        """Rank at most `depth` agents for each query."""
        owners = _owners(self.searcher)
        texts = [self._texts(query) for query in queries]
        distinct = list(dict.fromkeys(text for own in texts for text in own))
        loaded, vectors, n = self.searcher.loaded, self.searcher.vectors, max(ENTITIES, 10 * depth)
        mode, searched = self.strategy.mode, self.strategy.searched
        found = search_entities(loaded, self.index_name, distinct, mode, n, None, vectors, searched)
        rankings = dict(zip(distinct, found, strict=True))
        results: list[QueryResult] = []
        for query, own in zip(queries, texts, strict=True):
            ranked = rank_agents([rankings[text] for text in own], depth)
            agents = tuple(RetrievedTool(best.agent, best.score) for best, *_ in ranked)
            needed = needed_agents(query.tools, owners)
            searches = PartTrace("search", "search", searches=len(own))
            trace = Trace(self.strategy_name, [searches])
            results.append(QueryResult(query, needed, agents, trace))
        advance(len(queries))
        return results

    def _texts(self, query: GoldenQuery) -> list[str]:
        if self.strategy.texts == "steps":
            return list(query.steps) or [query.query]
        clauses = split_clauses(query.query) if self.strategy.texts == "clauses" else ()
        return [query.query, *clauses]


def needed_agents(tools: Sequence[str], owners: Mapping[str, set[str]]) -> Needed:
    """For each tool the agents that own one of that name, for each agent itself.

    A set that contains another is left out: whatever satisfies the smaller satisfies it, too.
    """
    sets = {
        tool: frozenset[str]().union(*(owners.get(name, ()) for name in tool.split(ALTERNATIVE)))
        for tool in tools
    }
    sets = {tool: own for tool, own in sets.items() if own}
    smallest = {
        tool: own for tool, own in sets.items() if not any(other < own for other in sets.values())
    }
    first = {own: tool for tool, own in reversed(smallest.items())}
    return Needed(
        {tool: own for tool, own in smallest.items() if first[own] == tool},
        tuple(tool for tool in tools if tool not in sets),
    )


def _owners(searcher: Searcher) -> dict[str, set[str]]:
    """The ids of the agents that a name means: a tool's name or id, or else an agent's."""
    owners: dict[str, set[str]] = {}
    for tool, name, agent in searcher.loaded.tool_names():
        for called in (tool, name, f"{agent}/{name}"):
            owners.setdefault(called, set()).add(_owner(tool))
    agents: dict[str, set[str]] = {}
    for identity, agent in searcher.loaded.agents.items():
        for called in (identity, agent.name):
            agents.setdefault(called, set()).add(identity)
    return agents | owners


def _owner(tool: str) -> str:
    return tool.rpartition("/")[0]
