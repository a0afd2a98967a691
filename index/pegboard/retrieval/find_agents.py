"""`Board.search_agents` and `search_entities` in one release: tools and agents are one space.

An agent's own description omits most of what its tools can do, and a single tool says little about
its context; the nearer of the two decides. Lumer et al., "Tool-to-Agent Retrieval", section 2,
Algorithm 1: each of the N >> K nearest tools and agents is replaced by its owner (an agent by
itself), and the first K distinct agents are the result. A request may be searched as a whole or
step by step.

Cosines of tools and agents come from one encoder and are compared directly. BM25 statistics are
those of each table; common statistics did not find more agents for LiveMCPBench's steps, so these
scores are compared directly, too. The hybrid ranking is the convex combination of the two merged
rankings: combined within each table, it would raise the best agent to the level of the best tool,
however distant it is.

An LLM writes the steps of a request (the part `decompose`) if the board has one; otherwise they are
its clauses by rules (`clauses`).

`find_entities` returns the ranking itself, in which an agent may stand in place of its tools:
section 1 of the paper has the retriever return "a single tool or a bundle of an agent, whichever
suits the query better".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pegboard.hits import Hit
from pegboard.ranking import Mode, ScoredTool, check_mode, convex_combination
from pegboard.retrieval.context import Context, RequestLog, Searches
from pegboard.retrieval.engine import transformed
from pegboard.retrieval.execution import Execution, drive, run_to_end
from pegboard.retrieval.found import AgentHit, AgentResult, EntityResult, Trace
from pegboard.retrieval.requests import Ranking, Request
from pegboard.retrieval.rules.clauses import Clauses
from pegboard.search.arguments import check_arguments
from pegboard.search.filters import Filter
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors

if TYPE_CHECKING:
    from pegboard.retrieval.llm.caller import LlmCaller

ENTITIES = 100
"""Minimum number of tools and agents in each ranking, N of Algorithm 1; ten per agent if that is
more.
"""


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


@dataclass(frozen=True, slots=True)
class EntityArguments:
    """The arguments of `Board.search_agents` and `Board.search_entities`; see there."""

    request: str
    k: int
    mode: Mode = "hybrid"
    decompose: bool = False
    index: str | None = None
    where: Mapping[str, str | Sequence[str]] | None = None

    def __post_init__(self) -> None:
        check_mode(self.mode)
        check_arguments(k=self.k, index=self.index, texts=(self.request,))


def find_agents(
    loaded: LoadedRelease,
    arguments: EntityArguments,
    vectors: QueryVectors,
    caller: "LlmCaller | None" = None,
) -> AgentResult:
    """Return the agents, best first; arguments and errors as of `Board.search_agents`."""
    trace = Trace("agents")
    texts, rankings = _searched(loaded, arguments, vectors, caller, trace)
    hits = [
        _hit(loaded, evidence, texts)
        for evidence in rank_agents(rankings, arguments.k)
        if evidence[0].agent in loaded.agents
    ]
    return AgentResult(tuple(hits), trace, _steps(arguments, texts), loaded.release.id)


def find_entities(
    loaded: LoadedRelease,
    arguments: EntityArguments,
    vectors: QueryVectors,
    caller: "LlmCaller | None" = None,
) -> EntityResult:
    """Return tools and agents, best first; arguments and errors as of `Board.search_entities`."""
    trace = Trace("entities")
    texts, rankings = _searched(loaded, arguments, vectors, caller, trace)
    ranked = rank_entities(rankings, arguments.k)
    tools = loaded.tools([evidence.tool for evidence in ranked if evidence.tool])
    hits: list[Hit | AgentHit] = []
    for evidence in ranked:
        if evidence.tool is None and evidence.agent in loaded.agents:
            hits.append(_hit(loaded, [evidence], texts))
        elif tool := tools.get(evidence.entity):
            why = {"entities": _why(evidence, texts)}
            agent = loaded.agents[tool.agent]
            hits.append(Hit(tool, agent, evidence.score, why, loaded.release.id))
    return EntityResult(tuple(hits), trace, _steps(arguments, texts), loaded.release.id)


def _searched(
    loaded: LoadedRelease,
    arguments: EntityArguments,
    vectors: QueryVectors,
    caller: "LlmCaller | None",
    trace: Trace,
) -> tuple[list[str], list[list[ScoredTool]]]:
    """Return the texts that are searched, the request and its steps, and the ranking of each."""
    request = arguments.request
    index = loaded.index_name(arguments.index)
    filter_ = loaded.filter(arguments.where)
    steps: list[str] = []
    if arguments.decompose and request.strip():
        searches = Searches(loaded, vectors, index, filter_, arguments.k, arguments.mode)
        steps = decomposed(request, searches, trace, caller)
    texts = [text for text in dict.fromkeys((request, *steps)) if text.strip()]
    n = max(ENTITIES, 10 * arguments.k)
    if not texts:
        return [], []
    return texts, search_entities(loaded, index, texts, arguments.mode, n, filter_, vectors)


def _steps(arguments: EntityArguments, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that were searched; none if that is the request only."""
    return () if list(texts) == [arguments.request] else tuple(texts)


def decomposed(
    text: str, searches: Searches, trace: Trace, caller: "LlmCaller | None"
) -> list[str]:
    """Return the steps of the request, written by an LLM if there is one, else by rules."""
    from pegboard.retrieval.llm.transforms import Decompose

    log = RequestLog(Request(text, searches.k), trace)
    if caller is None:
        context = Context(searches, Execution(concurrent=False), log)
        queries = drive(transformed([Clauses(background=0)], context))
    else:
        context = Context(searches, Execution(concurrent=True), log, caller)
        queries = run_to_end(transformed([Decompose()], context))
    steps = [query.text for query in queries if query.role in ("step", "clause")]
    trace.parts[0].queries = tuple(steps)
    return steps


def rank_agents(rankings: Sequence[Ranking], k: int) -> list[list[Evidence]]:
    """Return the evidence of the `k` best agents, best first, each agent's best evidence first.

    With several steps, agents are ordered by their best rank in any step, then by score, so that
    every step gets its first agent before any gets its second. On LiveMCPBench the first five
    agents in this order cover more questions than the first five by reciprocal rank fusion, which
    favours agents that every step finds at low ranks.

    Args:
        rankings: the tools and agents found for the request, or for each of its steps.

    Example:
        >>> ranking = [ScoredTool("a/git/log", 0.7), ScoredTool("a/ci", 0.4)]
        >>> [evidence[0].agent for evidence in rank_agents([ranking], k=2)]
        ['a/git', 'a/ci']
    """
    best_ranks: dict[str, int] = {}
    evidence_of: dict[str, list[Evidence]] = {}
    first_step = 1 if len(rankings) > 1 else 0
    for step, ranking in enumerate(rankings, start=first_step):
        best_of: dict[str, Evidence] = {}
        for rank, row in enumerate(ranking, start=1):
            evidence = Evidence(row.tool, step, rank, row.score)
            best_of.setdefault(evidence.agent, evidence)
        for rank, (agent, evidence) in enumerate(best_of.items(), start=1):
            best_ranks[agent] = min(rank, best_ranks.get(agent, rank))
            evidence_of.setdefault(agent, []).append(evidence)
    for evidence_list in evidence_of.values():
        evidence_list.sort(key=lambda evidence: (-evidence.score, evidence.rank, evidence.step))
    order = sorted(
        evidence_of, key=lambda agent: (best_ranks[agent], -evidence_of[agent][0].score, agent)
    )
    return [evidence_of[agent] for agent in order[:k]]


def rank_entities(rankings: Sequence[Ranking], k: int) -> list[Evidence]:
    """Return the `k` best tools and agents, by their best rank in any step, then by score.

    Of an agent and its tools, whichever comes first stays: an agent stands in place of all its
    tools, and behind one of its tools it would add nothing that the tool's owner does not tell.

    Args:
        rankings: as in `rank_agents`.

    Example:
        >>> scores = {"a/git": 0.7, "a/git/log": 0.6, "a/ci": 0.2}
        >>> ranking = [ScoredTool(entity, score) for entity, score in scores.items()]
        >>> [evidence.entity for evidence in rank_entities([ranking], k=2)]
        ['a/git', 'a/ci']
    """
    best: dict[str, Evidence] = {}
    first_step = 1 if len(rankings) > 1 else 0
    for step, ranking in enumerate(rankings, start=first_step):
        for rank, row in enumerate(ranking, start=1):
            evidence = Evidence(row.tool, step, rank, row.score)
            earlier = best.setdefault(evidence.entity, evidence)
            best[evidence.entity] = min(earlier, evidence, key=_place)
    is_listed_as_agent: dict[str, bool] = {}
    chosen: list[Evidence] = []
    for evidence in sorted(best.values(), key=_place):
        is_agent = evidence.tool is None
        listed_as_agent = is_listed_as_agent.setdefault(evidence.agent, is_agent)
        if listed_as_agent == is_agent:
            chosen.append(evidence)
    return chosen[:k]


def _place(evidence: Evidence) -> tuple[int, float, str]:
    return evidence.rank, -evidence.score, evidence.entity


def ranked_entities(*scorers: Sequence[Ranking]) -> list[ScoredTool]:
    """Return tools and agents as one ranking, best first: L of Algorithm 1.

    Args:
        scorers: the rankings of tools and of agents, by vectors, by words, or by both in this
            order.
    """
    merged = [
        sorted(
            (row for ranking in rankings for row in ranking),
            key=lambda row: (-row.score, row.tool),
        )
        for rankings in scorers
    ]
    if len(merged) == 1:
        return merged[0]
    vector_ranking, text_ranking = merged
    return convex_combination(vector_ranking, text_ranking)


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
    # Agents have neither tags nor tool ids, so such filters find them through their tools only.
    through_tools_only = where is not None and not where.allowed.keys().isdisjoint(("tags", "tool"))
    if searched != "tools" and not through_tools_only:
        indexes.append(loaded.agent_index(index))
    scorers: list[list[list[list[ScoredTool]]]] = []
    if mode != "text":
        units = vectors.units(loaded, index, texts)
        scorers.append([table.vectors(units, n, where) for table in indexes])
    if mode != "vector":
        tokens = [loaded.query_words(index, text) for text in texts]
        scorers.append([table.texts(tokens, n, where) for table in indexes])
    return [
        ranked_entities(*([rankings[number] for rankings in scorer] for scorer in scorers))
        for number in range(len(texts))
    ]


def _hit(
    loaded: LoadedRelease, evidence_list: Sequence[Evidence], steps: Sequence[str]
) -> AgentHit:
    best = evidence_list[0]
    why = _why(best, steps)
    if len(evidence_list) > 1:
        why["steps"] = [
            {
                "step": steps[evidence.step - 1],
                "rank": evidence.rank,
                "score": evidence.score,
                "tool": evidence.tool,
            }
            for evidence in evidence_list
        ]
    return AgentHit(loaded.agents[best.agent], best.score, why, loaded.release.id)


def _why(evidence: Evidence, steps: Sequence[str]) -> dict[str, Any]:
    why: dict[str, Any] = {"rank": evidence.rank, "tool": evidence.tool}
    if evidence.step:
        why["step"] = steps[evidence.step - 1]
    return why
