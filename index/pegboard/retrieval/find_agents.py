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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pegboard.ranking import Mode, ScoredTool, check_mode, convex_combination
from pegboard.retrieval.context import Context, Searches
from pegboard.retrieval.engine import transformed
from pegboard.retrieval.execution import Execution, drive, run_to_end
from pegboard.retrieval.found import AgentHit, AgentResult, Trace
from pegboard.retrieval.requests import Ranking, Request
from pegboard.retrieval.rules.clauses import Clauses
from pegboard.search.arguments import check_arguments
from pegboard.search.filters import Filter
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors

if TYPE_CHECKING:
    from pegboard.retrieval.llm.caller import LlmCaller

ENTITIES = 100
"""N of Algorithm 1 at least: tools and agents in each ranking; ten per agent if that is more."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A tool or an agent that one step found.

    Attributes:
        entity: its id.
        step: the step, from 1; 0 for the request as a whole.
        rank: the rank, from 1, among the tools and agents that the step found.
        score: higher is better, comparable within the step.
    """

    entity: str
    step: int
    rank: int
    score: float

    @property
    def tool(self) -> str | None:
        """The tool's id; None for an agent's own description."""
        # `catalog/agent/name`, an agent's has one segment less, and no segment holds a slash.
        return self.entity if self.entity.count("/") > 1 else None

    @property
    def agent(self) -> str:
        """The id of the agent that it is, or that owns it."""
        return self.entity.rpartition("/")[0] if self.tool else self.entity


def find_agents(
    loaded: LoadedRelease,
    request: str,
    k: int,
    vectors: QueryVectors,
    caller: "LlmCaller | None" = None,
    *,
    mode: Mode,
    decompose: bool,
    index: str | None,
    where: Mapping[str, str | Sequence[str]] | None,
) -> AgentResult:
    """Return the agents, best first; arguments and errors as of `Board.search_agents`."""
    check_mode(mode)
    check_arguments(k=k, index=index, texts=(request,))
    index, allowed, release = loaded.index_name(index), loaded.filter(where), loaded.release.id
    trace, texts = Trace("agents"), (request,)
    if decompose and request.strip():
        searches = Searches(loaded, vectors, index, allowed, k, mode)
        texts = (request, *_decomposed(request, searches, trace, caller))
    texts = [text for text in dict.fromkeys(texts) if text.strip()]
    if not texts:
        return AgentResult((), trace, release=release)
    n = max(ENTITIES, 10 * k)
    ranked = rank_agents(search_entities(loaded, index, texts, mode, n, allowed, vectors), k)
    hits = [_hit(loaded, own, texts) for own in ranked if own[0].agent in loaded.agents]
    own = () if texts == [request] else tuple(texts)
    return AgentResult(tuple(hits), trace, own, release)


def _decomposed(
    text: str, searches: Searches, trace: Trace, caller: "LlmCaller | None"
) -> list[str]:
    """The steps of the request, by an LLM if there is one."""
    from pegboard.retrieval.llm.transforms import Decompose

    part = Decompose() if caller is not None else Clauses(background=0)
    run, execution = (drive if caller is None else run_to_end), Execution(caller is not None)
    context = Context(Request(text, searches.k), searches, execution, trace, caller)
    queries = run(transformed([part], context))
    steps = [query.text for query in queries if query.role in ("step", "clause")]
    trace.parts[0].queries = tuple(steps)
    return steps


def rank_agents(rankings: Sequence[Ranking], k: int) -> list[list[Evidence]]:
    """Return the evidence of the `k` best agents, best first; that of each agent best first, too.

    Of several steps, agents are ordered by their best rank in any step, then by score, so that
    every step gets its first agent before any gets its second. On LiveMCPBench the first five of
    these hold the agents of more questions than the first five by reciprocal rank fusion, which
    prefers agents that every step finds a little.

    Args:
        rankings: the tools and agents that the request found, or each of its steps.

    Example:
        >>> found = [ScoredTool("a/git/log", 0.7), ScoredTool("a/ci", 0.4)]
        >>> [own[0].agent for own in rank_agents([found], k=2)]
        ['a/git', 'a/ci']
    """
    places: dict[str, int] = {}
    why: dict[str, list[Evidence]] = {}
    for step, ranking in enumerate(rankings, start=1 if len(rankings) > 1 else 0):
        found = [Evidence(row.tool, step, rank, row.score) for rank, row in enumerate(ranking, 1)]
        firsts: dict[str, Evidence] = {}
        for evidence in found:
            firsts.setdefault(evidence.agent, evidence)
        for place, (agent, evidence) in enumerate(firsts.items(), start=1):
            places[agent] = min(place, places.get(agent, place))
            why.setdefault(agent, []).append(evidence)
    for own in why.values():
        own.sort(key=lambda evidence: (-evidence.score, evidence.rank, evidence.step))
    order = sorted(why, key=lambda agent: (places[agent], -why[agent][0].score, agent))
    return [why[agent] for agent in order[:k]]


def ranked_entities(*scorers: Sequence[Ranking]) -> list[ScoredTool]:
    """Return tools and agents as one ranking, best first: L of Algorithm 1.

    Args:
        scorers: for vectors and for words, or for one of them, the rankings of tools and of agents.
    """
    merged = [
        sorted(
            (row for ranking in rankings for row in ranking),
            key=lambda row: (-row.score, row.tool),
        )
        for rankings in scorers
    ]
    first, *others = merged
    return convex_combination(first, others[0]) if others else first


def search_entities(
    loaded: LoadedRelease,
    index: str,
    texts: Sequence[str],
    mode: Mode,
    n: int,
    where: Filter | None,
    vectors: QueryVectors,
    searched: Literal["agents", "tools", "both"] = "both",
) -> list[list[ScoredTool]]:
    """Return the ranking of tools and agents of each text, from at most `n` by each scorer."""
    indexes = [] if searched == "agents" else [loaded.index(index)]
    # Agents have no tags and are no tools, so such filters find them by their tools alone.
    by_tools_alone = where is not None and not where.allowed.keys().isdisjoint(("tags", "tool"))
    if searched != "tools" and not by_tools_alone:
        indexes.append(loaded.agent_index(index))
    scorers: list[list[list[list[ScoredTool]]]] = []
    if mode != "text":
        units = vectors.units(loaded, index, texts)
        scorers.append([own.vectors(units, n, where) for own in indexes])
    if mode != "vector":
        tokens = [loaded.query_words(index, text) for text in texts]
        scorers.append([own.texts(tokens, n, where) for own in indexes])
    return [
        ranked_entities(*([found[place] for found in scorer] for scorer in scorers))
        for place in range(len(texts))
    ]


def _hit(loaded: LoadedRelease, own: Sequence[Evidence], steps: Sequence[str]) -> AgentHit:
    best = own[0]
    why: dict[str, Any] = {"rank": best.rank, "tool": best.tool}
    if best.step:
        why["step"] = steps[best.step - 1]
    if len(own) > 1:
        why["steps"] = [
            {"step": steps[one.step - 1], "rank": one.rank, "score": one.score, "tool": one.tool}
            for one in own
        ]
    return AgentHit(loaded.agents[best.agent], best.score, why, loaded.release.id)
