"""`Board.search_agents` in one release: tools and agents searched as one space.

An agent's own description hides most of what its tools can do, and a tool alone says little of its
surroundings; the nearer of the two decides. Lumer et al., "Tool-to-Agent Retrieval", section 2,
Algorithm 1: of the N >> K nearest tools and agents, each is replaced by its owner (an agent by
itself), and the first K distinct agents are the answer. A request may be searched whole or step by
step.

Cosines of tools and agents come from one encoder and are compared as they are. BM25 has its own
statistics in each table; with those of one common table, LiveMCPBench's steps found no more agents,
so these too are compared as they are. The hybrid ranking is the convex combination of the two
merged rankings: combined in each table first, it would lift the best agent to the best tool,
however far it is.

The steps of a request are written by an LLM (the part `decompose`) where the board has one, and are
its clauses by rules (`clauses`) where not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pegboard.hits import Hit
from pegboard.retrieval.context import Context, Searches
from pegboard.retrieval.engine import transformed
from pegboard.retrieval.execution import AsyncExecution, BlockingExecution, drive, run_to_end
from pegboard.retrieval.found import AgentHit, AgentResult, Trace
from pegboard.retrieval.fusion import ReciprocalRank
from pegboard.retrieval.parts import Request
from pegboard.retrieval.rules.clauses import Clauses
from pegboard.search.arguments import check_arguments
from pegboard.search.filters import Filter
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.ranking import Mode, ScoredTool, check_mode, convex_combination

if TYPE_CHECKING:
    from pegboard.retrieval.llm.caller import LlmCaller

ENTITIES = 100
"""N of Algorithm 1 at least: tools and agents in each ranking; ten per agent if that is more."""


@dataclass(frozen=True, slots=True)
class AgentArguments:
    """The arguments of `Board.search_agents`; see there."""

    request: str
    k: int
    mode: Mode
    decompose: bool
    steps: tuple[str, ...]
    index: str | None
    where: Mapping[str, str | Sequence[str]] | None

    def __post_init__(self) -> None:
        check_mode(self.mode)
        texts = (self.request, *self.steps)
        check_arguments(k=self.k, index=self.index, texts=texts, subject="request and steps")


@dataclass(frozen=True, slots=True)
class EntityRankings:
    """What one query found among tools and agents.

    Attributes:
        tools: rankings of tools by scorer, `vector`, `text` or both.
        agents: rankings of agents by the same scorers; `ScoredTool.tool` is the agent's id. Empty
            where a release has no table of agents.
        step: the step of the request, from 1; 0 is the request as a whole.
    """

    tools: Mapping[str, Sequence[ScoredTool]]
    agents: Mapping[str, Sequence[ScoredTool]] = field(
        default_factory=dict[str, Sequence[ScoredTool]]
    )
    step: int = 0


@dataclass(frozen=True, slots=True)
class AgentEvidence:
    """What brought an agent in one step: the best of its tools, or its own description.

    Attributes:
        step: the step, or 0 for the request as a whole.
        rank: the rank, from 1, among the tools and agents that the step found.
        score: higher is better, comparable within the step.
        tool: the tool's id; None for the agent's own description.
    """

    step: int
    rank: int
    score: float
    tool: str | None = None


Found = tuple[str, AgentEvidence]
"""A tool or an agent that a step found, or the agent that it stands for."""


@dataclass(frozen=True, slots=True)
class RankedAgent:
    """An agent's id, its best score, and its evidence of each step that found it, best first."""

    agent: str
    score: float
    why: tuple[AgentEvidence, ...]


def find_agents(
    loaded: LoadedRelease,
    arguments: AgentArguments,
    vectors: QueryVectors,
    caller: "LlmCaller | None" = None,
) -> AgentResult:
    """Return the agents, best first, and the tools and agents that led to them. Raises as
    `Board.search` does.
    """
    index, where = loaded.index_name(arguments.index), loaded.filter(arguments.where)
    mode, k, release, trace = arguments.mode, arguments.k, loaded.release.id, Trace("agents")
    texts = arguments.steps or (arguments.request,)
    if arguments.decompose and not arguments.steps and arguments.request.strip():
        searches = Searches(loaded, vectors, [index], [mode], ReciprocalRank(), where, k)
        texts = (arguments.request, *_decomposed(arguments, searches, trace, caller))
    steps = [text for text in dict.fromkeys(texts) if text.strip()]
    if not steps:
        return AgentResult((), (), trace, release=release)
    rankings = search_entities(loaded, index, steps, mode, max(ENTITIES, 10 * k), where, vectors)
    found = [list(_evidence(step)) for step in rankings]
    ranked = _ranked(found, k)
    hits = [_hit(loaded, agent, steps) for agent in ranked if agent.agent in loaded.agents]
    entities = _entities(loaded, found, k, steps)
    own = () if steps == [arguments.request] else tuple(steps)
    return AgentResult(tuple(hits), tuple(entities), trace, own, release)


def _decomposed(
    arguments: AgentArguments, searches: Searches, trace: Trace, caller: "LlmCaller | None"
) -> list[str]:
    """The steps of the request, by an LLM if there is one."""
    from pegboard.retrieval.llm.transforms import Decompose

    part = Decompose() if caller is not None else Clauses(background=0)
    run = drive if caller is None else run_to_end
    execution = BlockingExecution() if caller is None else AsyncExecution()
    request = Request(arguments.request, arguments.k)
    context = Context(request, searches, execution, trace, caller)
    queries = run(transformed([part], context))
    steps = [query.text for query in queries if query.role in ("step", "clause")]
    trace.parts[0].queries = tuple(steps)
    return steps


def _entities(
    loaded: LoadedRelease, found: Sequence[Sequence[Found]], k: int, steps: Sequence[str]
) -> list[Hit | AgentHit]:
    """The `k` best tools and agents: by their best rank in any step, then by score."""
    best: dict[str, AgentEvidence] = {}
    for step in found:
        for entity, evidence in step[:k]:
            earlier = best.setdefault(entity, evidence)
            best[entity] = min(earlier, evidence, key=lambda own: (own.rank, -own.score))
    order = sorted(best, key=lambda entity: (best[entity].rank, -best[entity].score, entity))[:k]
    tools = loaded.tools([entity for entity in order if best[entity].tool])
    entities: list[Hit | AgentHit] = []
    for entity in order:
        evidence, tool = best[entity], tools.get(entity)
        if tool is not None:
            why = {"rank": evidence.rank, "score": evidence.score}
            why |= {"query": steps[evidence.step - 1]} if evidence.step else {}
            agent = loaded.agents[tool.agent]
            entities.append(Hit(tool, agent, evidence.score, {"agents": why}, loaded.release.id))
        elif entity in loaded.agents:
            entities.append(_hit(loaded, RankedAgent(entity, evidence.score, (evidence,)), steps))
    return entities


def rank_agents(rankings: Sequence[EntityRankings], k: int) -> list[RankedAgent]:
    """Return the `k` best agents, best first.

    Of several steps, agents are ordered by their best rank in any step, then by score, so that
    every step gets its first agent before any gets its second. On LiveMCPBench the first five of
    these hold the agents of more questions than the first five by reciprocal rank fusion, which
    prefers agents that every step finds a little.

    Args:
        rankings: what the request found, or each of its steps; all by the same scorers.

    Example:
        >>> found = EntityRankings(
        ...     {"vector": [ScoredTool("a/git/log", 0.7)]}, {"vector": [ScoredTool("a/ci", 0.4)]}
        ... )
        >>> [agent.agent for agent in rank_agents([found], k=2)]
        ['a/git', 'a/ci']
    """
    return _ranked([list(_evidence(step)) for step in rankings], k)


def _ranked(found: Sequence[Sequence[Found]], k: int) -> list[RankedAgent]:
    places: dict[str, int] = {}
    why: dict[str, list[AgentEvidence]] = {}
    for step in found:
        for place, (agent, evidence) in enumerate(_owners(step), start=1):
            places[agent] = min(place, places.get(agent, place))
            why.setdefault(agent, []).append(evidence)
    ranked: list[RankedAgent] = []
    for agent, evidence in why.items():
        evidence.sort(key=lambda own: (-own.score, own.rank, own.step))
        ranked.append(RankedAgent(agent, evidence[0].score, tuple(evidence)))
    return sorted(ranked, key=lambda own: (places[own.agent], -own.score, own.agent))[:k]


def ranked_entities(rankings: EntityRankings) -> list[ScoredTool]:
    """Return tools and agents as one ranking, best first: L of Algorithm 1.

    An agent's id is never a tool's: it has one segment less.
    """
    tools, agents = rankings.tools, rankings.agents
    merged = {
        scorer: _merged(tools.get(scorer, ()), agents.get(scorer, ()))
        for scorer in ("vector", "text")
        if scorer in tools or scorer in agents
    }
    if len(merged) == 2:
        return convex_combination(merged["vector"], merged["text"])
    return next(iter(merged.values()), [])


def search_entities(
    loaded: LoadedRelease,
    index: str,
    texts: Sequence[str],
    mode: Mode,
    n: int,
    where: Filter | None,
    vectors: QueryVectors,
) -> list[EntityRankings]:
    """Return what each text finds among tools and agents, at most `n` by each scorer."""
    tools, agents = loaded.index(index), loaded.agent_index(index)
    # Agents have no tags and are no tools, so such filters find them by their tools alone.
    if where is not None and not where.allowed.keys().isdisjoint(("tags", "tool")):
        agents = None
    by_tools: dict[str, list[list[ScoredTool]]] = {}
    by_agents: dict[str, list[list[ScoredTool]]] = {}
    if mode != "text":
        units = vectors.units(loaded, index, texts)
        by_tools["vector"] = tools.vectors(units, n, where)
        by_agents["vector"] = agents.vectors(units, n, where) if agents else [[] for _ in texts]
    if mode != "vector":
        tokens = [loaded.query_words(index, text) for text in texts]
        by_tools["text"] = tools.texts(tokens, n, where)
        by_agents["text"] = agents.texts(tokens, n, where) if agents else [[] for _ in texts]
    return [
        EntityRankings(
            {scorer: rows[place] for scorer, rows in by_tools.items()},
            {scorer: rows[place] for scorer, rows in by_agents.items()},
            step=place + 1 if len(texts) > 1 else 0,
        )
        for place in range(len(texts))
    ]


def _hit(loaded: LoadedRelease, ranked: RankedAgent, steps: Sequence[str]) -> AgentHit:
    best = ranked.why[0]
    why: dict[str, Any] = {"rank": best.rank, "tool": best.tool}
    if best.step:
        why["step"] = steps[best.step - 1]
    if len(ranked.why) > 1:
        why["steps"] = [
            {"step": steps[own.step - 1], "rank": own.rank, "score": own.score, "tool": own.tool}
            for own in ranked.why
        ]
    return AgentHit(loaded.agents[ranked.agent], ranked.score, why, loaded.release.id)


def _owners(found: Sequence[Found]) -> Iterator[Found]:
    """Each agent once, with the first entity that names it."""
    seen: set[str] = set()
    for entity, evidence in found:
        # The id of a tool is `catalog/agent/name`, and no segment holds a slash.
        agent = entity if evidence.tool is None else evidence.tool.rpartition("/")[0]
        if agent not in seen:
            seen.add(agent)
            yield agent, evidence


def _evidence(rankings: EntityRankings) -> Iterator[Found]:
    """Each tool and agent that a step found, best first."""
    agents = {row.tool for rows in rankings.agents.values() for row in rows}
    for rank, row in enumerate(ranked_entities(rankings), start=1):
        tool = None if row.tool in agents else row.tool
        yield row.tool, AgentEvidence(rankings.step, rank, row.score, tool)


def _merged(tools: Sequence[ScoredTool], agents: Sequence[ScoredTool]) -> list[ScoredTool]:
    return sorted((*tools, *agents), key=lambda row: (-row.score, row.tool))
