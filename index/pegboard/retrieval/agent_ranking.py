"""Which agents can serve a request: tools and agents are searched as one space, and every tool
stands for its owner.

An agent's own description hides most of what its tools can do, and a tool alone says little of its
surroundings; the one that is nearer decides. Lumer et al., "Tool-to-Agent Retrieval", section 2,
Algorithm 1: of the N >> K nearest tools and agents, each is replaced by its owner (an agent by
itself), and the first K agents that are named are the answer. A request may be asked whole or step
by step.

Cosines of tools and agents come from one encoder and are compared as they are. BM25 has statistics
of its own in each table; scored by those of one common table, LiveMCPBench's steps found no more
agents, so these too are compared as they are. The hybrid ranking is the
convex combination of the two merged rankings: made in each table first, it would lift the best
agent to the best tool, however far it is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pegboard.errors import QueryError
from pegboard.search.ranking import Ranked, convex_combination

ENTITIES = 100
"""N of Algorithm 1, at least: how many tools and how many agents each ranking should hold; ten for
each agent wanted where that is more.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What one query found.

    Attributes:
        tools: rankings of tools by mode, `vector`, `text` or both, as an index gives them.
        agents: rankings of agents by the same modes; `Ranked.tool` is the agent's id. Empty where a
            release has no table of agents.
        step: the step of the request that was asked for, from 1; 0 is the request as a whole.
    """

    tools: Mapping[str, Sequence[Ranked]]
    agents: Mapping[str, Sequence[Ranked]] = field(default_factory=dict[str, Sequence[Ranked]])
    step: int = 0


@dataclass(frozen=True, slots=True)
class AgentEvidence:
    """What brought an agent in one step: the best of its tools, or its own description.

    Attributes:
        step: the step, or 0 for the request as a whole.
        rank: the place, from 1, among the tools and agents that the step found.
        score: higher is better, comparable within the step.
        tool: the tool's id; None if the agent's own description was nearer than all of its tools.
    """

    step: int
    rank: int
    score: float
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class RankedAgent:
    """An agent's id, the score of its best evidence, and its evidence: one for each step that found
    it, best first.
    """

    agent: str
    score: float
    why: tuple[AgentEvidence, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"agent": self.agent, "score": self.score, "why": [asdict(one) for one in self.why]}


def rank_agents(
    found: Sequence[Found], owner_of: Callable[[str], str | None], k: int
) -> list[RankedAgent]:
    """The `k` best agents, best first.

    Of several steps, agents are ordered by their best place in any step, equals by score, so that
    every step gets its first agent before any gets its second. On LiveMCPBench the first five of
    these hold the agents of more questions than the first five by reciprocal rank fusion, which
    prefers agents that every step finds a little.

    Args:
        found: what the request found, or each of its steps; all in the same modes.
        owner_of: the id of the agent that owns a tool; None if it is unknown, and then the tool
            counts for nobody.
        k: the number of agents wanted.

    Raises:
        QueryError: k is below 1.

    Example:
        >>> found = Found({"vector": [Ranked("a/git/log", 0.7, "")]}, {"vector": [Ranked("a/ci",
        0.4, "")]})
        >>> [one.agent for one in rank_agents([found], {"a/git/log": "a/git"}.get, k=2)]
        ['a/git', 'a/ci']
    """
    if k < 1:
        raise QueryError(f"k is {k}; expected the number of agents wanted, 1 or more.")
    places: dict[str, int] = {}
    why: dict[str, list[AgentEvidence]] = {}
    for one in found:
        for place, (agent, evidence) in enumerate(_owners(one, owner_of), start=1):
            places[agent] = min(place, places.get(agent, place))
            why.setdefault(agent, []).append(evidence)
    ranked: list[RankedAgent] = []
    for agent, evidence in why.items():
        evidence.sort(key=lambda one: (-one.score, one.rank, one.step))
        ranked.append(RankedAgent(agent, evidence[0].score, tuple(evidence)))
    return sorted(ranked, key=lambda one: (places[one.agent], -one.score, one.agent))[:k]


def ranked_entities(found: Found) -> list[tuple[str, float]]:
    """The tools and agents of one query as one ranking of ids and scores, best first: the list L of
    Algorithm 1.

    An agent's id is never a tool's: it has one segment less.
    """
    modes = [mode for mode in ("vector", "text") if mode in found.tools or mode in found.agents]
    merged = {
        mode: _merged(found.tools.get(mode, ()), found.agents.get(mode, ())) for mode in modes
    }
    if len(merged) == 2:
        return convex_combination(merged["vector"], merged["text"])
    return [(row.tool, row.score) for rows in merged.values() for row in rows]


def _owners(
    found: Found, owner_of: Callable[[str], str | None]
) -> Iterator[tuple[str, AgentEvidence]]:
    """Each agent once, with the first entity that names it."""
    agents = {row.tool for rows in found.agents.values() for row in rows}
    seen: set[str] = set()
    for rank, (entity, score) in enumerate(ranked_entities(found), start=1):
        tool = None if entity in agents else entity
        agent = entity if tool is None else owner_of(tool)
        if agent is not None and agent not in seen:
            seen.add(agent)
            yield agent, AgentEvidence(found.step, rank, score, tool)


def _merged(tools: Sequence[Ranked], agents: Sequence[Ranked]) -> list[Ranked]:
    return sorted((*tools, *agents), key=lambda row: (-row.score, row.tool))
