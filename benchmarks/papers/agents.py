"""Requests for agents, by the measures of requests for tools: what Tool-to-Agent Retrieval (Lumer
and others, 2025) evaluates.

A tool name that several servers have is met by any of them, so what a request needs is a set of
owners for each tool; an agent counts for the first set that it is in.
"""

from collections.abc import Sequence

from benchmarks.papers.benchmark import AgentRequest
from benchmarks.papers.strategies import AgentStrategy
from pegboard.evaluation.experiment import UNBOUNDED_DEPTH
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.measures import Measure, per_query
from pegboard.evaluation.results import Evaluation, QueryResult, ScoredTool
from pegboard.evaluation.searcher import Searcher
from pegboard.retrieval.agent_ranking import ENTITIES, Found, rank_agents
from pegboard.retrieval.rules.clauses import split_clauses
from pegboard.search.ranking import Ranked
from pegboard.search.text import tokenize

LEAST_DEPTH = 10
Rankings = dict[str, Sequence[Ranked]]


def evaluate_agents(
    searcher: Searcher,
    requests: Sequence[AgentRequest],
    strategy: AgentStrategy,
    measures: Sequence[Measure],
) -> Evaluation:
    """What is found for the requests, and the measures of it. Raises ConfigurationError for no
    requests.
    """
    index = searcher.loaded.index_name(None)
    k = max([LEAST_DEPTH, *(one.k or UNBOUNDED_DEPTH for one in measures)])
    texts = [_texts(one, strategy) for one in requests]
    found = _search(
        searcher,
        index,
        list(dict.fromkeys(text for one in texts for text in one)),
        strategy,
        max(ENTITIES, 10 * k),
    )
    names: dict[str, set[str]] = {}
    for tool, name, _ in searcher.loaded.tool_names():
        names.setdefault(name, set()).add(_owner(tool))
    answers: list[QueryResult] = []
    for request, asked in zip(requests, texts, strict=True):
        ranked = rank_agents([found[text] for text in asked], _owner, k)
        hits = tuple(ScoredTool(one.agent, one.score) for one in ranked)
        answers.append(
            QueryResult(
                GoldenQuery(request.text, request.tools), needed_agents(request.tools, names), hits
            )
        )
    values = per_query(
        measures, [one.needed.labels for one in answers], [one.ranking() for one in answers]
    )
    encoder = str(searcher.loaded.index_manifest(index)["encoder"])
    return Evaluation(searcher.release.id, strategy.name, index, encoder, tuple(answers), values)


def needed_agents(tools: Sequence[str], owners: "dict[str, set[str]]") -> Needed:
    """For each tool the agents that own one of that name. A set that contains another is left out:
    who meets that meets this, too.
    """
    sets = {tool: frozenset(owners[tool]) for tool in tools if tool in owners}
    smallest = {
        tool: own for tool, own in sets.items() if not any(other < own for other in sets.values())
    }
    first = {own: tool for tool, own in reversed(smallest.items())}
    return Needed(
        {tool: own for tool, own in smallest.items() if first[own] == tool},
        tuple(one for one in tools if one not in owners),
    )


def _texts(request: AgentRequest, strategy: AgentStrategy) -> list[str]:
    if strategy.texts == "steps":
        return list(request.steps) or [request.text]
    return [request.text, *(split_clauses(request.text) if strategy.texts == "clauses" else ())]


def _search(
    searcher: Searcher, index: str, texts: Sequence[str], strategy: AgentStrategy, n: int
) -> dict[str, Found]:
    """What each text finds among tools, agents or both, as `finding_agents` searches them."""
    loaded = searcher.loaded
    tools = loaded.index(index) if strategy.searched != "agents" else None
    agents = loaded.agent_index(index) if strategy.searched != "tools" else None
    by_tools: list[Rankings] = [{} for _ in texts]
    by_agents: list[Rankings] = [{} for _ in texts]
    units = searcher.vectors.units(loaded, index, texts) if strategy.mode != "text" else None
    tokens = [tokenize(text) for text in texts]
    for searched, found in ((tools, by_tools), (agents, by_agents)):
        if searched is None:
            continue
        if units is not None:
            for at, rows in enumerate(searched.vectors(units, n, None)):
                found[at]["vector"] = rows
        if strategy.mode != "vector":
            for at, rows in enumerate(searched.texts(tokens, n, None)):
                found[at]["text"] = rows
    return {
        text: Found(own, other) for text, own, other in zip(texts, by_tools, by_agents, strict=True)
    }


def _owner(tool: str) -> str:
    return tool.rpartition("/")[0]
