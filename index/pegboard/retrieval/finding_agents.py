"""What `Board.agents` does in one release: tools and agents searched as one space, every tool
standing for its owner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.errors import QueryError
from pegboard.retrieval.agent_ranking import ENTITIES, Found, RankedAgent, rank_agents
from pegboard.retrieval.found import AgentHit
from pegboard.retrieval.rules.clauses import split_clauses
from pegboard.search.filters import Filter
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.ranking import MODES, Mode, Ranked
from pegboard.search.text import tokenize


@dataclass(frozen=True, slots=True)
class AgentsAsked:
    """What a caller of `Board.agents` asked for: see there."""

    request: str
    k: int
    mode: Mode
    decompose: bool
    steps: tuple[str, ...]
    index: str | None
    where: Mapping[str, str | Sequence[str]] | None


def find_agents(loaded: LoadedRelease, asked: AgentsAsked, vectors: QueryVectors) -> list[AgentHit]:
    """The agents found, best first. Raises as `Board.search` does."""
    if asked.mode not in MODES:
        raise QueryError(f"There is no mode '{asked.mode}'. Expected one of: {', '.join(MODES)}.")
    if type(asked.k) is not int or asked.k < 1:
        raise QueryError(f"k is {asked.k!r}; expected the number of agents wanted, 1 or more.")
    if not isinstance(asked.request, str) or not all(isinstance(step, str) for step in asked.steps):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise QueryError(
            "The request and its steps are not all texts; expected a text, and a list of texts."
        )
    index, where = loaded.index_name(asked.index), loaded.filter(asked.where)
    steps = list(asked.steps) or [
        asked.request,
        *(split_clauses(asked.request) if asked.decompose else ()),
    ]
    steps = [step for step in dict.fromkeys(steps) if step.strip()]
    if not steps:
        return []
    found = _search(loaded, index, steps, asked.mode, max(ENTITIES, 10 * asked.k), where, vectors)
    ranked = rank_agents(found, _owner, asked.k)
    return [_hit(loaded, one, steps) for one in ranked if one.agent in loaded.agents]


def _search(
    loaded: LoadedRelease,
    index: str,
    texts: Sequence[str],
    mode: Mode,
    n: int,
    where: Filter | None,
    vectors: QueryVectors,
) -> list[Found]:
    tools = loaded.index(index)
    # What an agent says of itself has no tags, so a search by tags finds agents by their tools
    # alone.
    by_tags = where is not None and "tags" in where.allowed
    agents = None if by_tags else loaded.agent_index(index)
    by_tools: dict[str, list[list[Ranked]]] = {}
    by_agents: dict[str, list[list[Ranked]]] = {}
    if mode != "text":
        units = vectors.units(loaded, index, texts)
        by_tools["vector"] = tools.vectors(units, n, where)
        by_agents["vector"] = agents.vectors(units, n, where) if agents else [[] for _ in texts]
    if mode != "vector":
        tokens = [tokenize(text) for text in texts]
        by_tools["text"] = tools.texts(tokens, n, where)
        by_agents["text"] = agents.texts(tokens, n, where) if agents else [[] for _ in texts]
    return [
        Found(
            {way: rows[place] for way, rows in by_tools.items()},
            {way: rows[place] for way, rows in by_agents.items()},
            step=place + 1 if len(texts) > 1 else 0,
        )
        for place in range(len(texts))
    ]


def _owner(tool: str) -> str:
    """The id of the agent that owns a tool: ids are `catalog/agent/name`, and no part of one holds
    a slash.
    """
    return tool.rpartition("/")[0]


def _hit(loaded: LoadedRelease, ranked: RankedAgent, steps: Sequence[str]) -> AgentHit:
    best = ranked.why[0]
    why: dict[str, Any] = {"rank": best.rank, "tool": best.tool} | (
        {"step": steps[best.step - 1]} if best.step else {}
    )
    if len(ranked.why) > 1:
        why["steps"] = [
            {"step": steps[one.step - 1], "rank": one.rank, "score": one.score, "tool": one.tool}
            for one in ranked.why
        ]
    return AgentHit(loaded.agents[ranked.agent], ranked.score, why, loaded.release.id)
