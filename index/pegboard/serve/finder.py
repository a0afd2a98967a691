"""Finding tools for a client, among those alone that it may see."""

import time
from dataclasses import dataclass, replace
from typing import Any

from pegboard.errors import QueryError
from pegboard.hits import Hit
from pegboard.retrieval.found import FindResult
from pegboard.serve.access.clients import Client
from pegboard.serve.access.control import AccessControl
from pegboard.serve.access.views import View
from pegboard.serve.concurrency import ConcurrencyLimit
from pegboard.serve.metrics import Metrics

MAX_QUERY = 8_000
"""Characters of a request for tools."""
AGENTS, AGENT_TOOLS = 3, 10
"""Agents that one search finds, and tools that are named of each."""
MAX_SEARCHES = 32
"""Searches at once: those of one client fill a batch of the encoder, and no more."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        view: the release as the client sees it; gives the hits' call names.
        result: the hits, best first, all of them visible to the client.
        reason: why there are none, or why those there are may not fit; else "".
    """

    view: View
    result: FindResult
    reason: str = ""


class Finder:
    """Searches the views of a board, and records each search.

    Args:
        strategy: that answers where a request names none; the release's own if None.
    """

    def __init__(
        self, access: AccessControl, metrics: Metrics, strategy: str | None = None
    ) -> None:
        self._access = access
        self.metrics = metrics
        self._strategy = strategy
        self._limit = ConcurrencyLimit(MAX_SEARCHES)

    async def find(
        self,
        client: Client,
        query: str,
        k: int = 5,
        *,
        session: str = "",
        callable_only: bool = False,
        **options: Any,
    ) -> Found:
        """Return at most `k` tools for a request, of the current release.

        A tool that the request names exactly, by id, call name or true name, comes first.

        Args:
            session: the client's session, for the request log; "" outside one.
            callable_only: as in `AccessControl.view`.
            options: those of `Board.find`, such as `strategy` and `where`.

        Raises as `Board.find` does, and QueryError for a longer request than `MAX_QUERY`.
        """
        _check_query(query)
        start = time.perf_counter()
        options["strategy"] = options.get("strategy") or self._strategy
        async with self._limit.place(client):
            view = await self._access.view(client, callable_only=callable_only)
            result = await view.board.find(query, k, **options)
            if not options.get("where"):
                result = await _named_first(view, query, k, result)
        found = Found(view, result, _reason(view, query, result))
        ms = (time.perf_counter() - start) * 1_000
        self.metrics.record_search(client, session, query, result, ms)
        return found

    async def find_agents(self, client: Client, query: str) -> list[dict[str, Any]]:
        """Return the agents for a request, best first: name, description, and the call names of
        those of their tools that fit best. Raises as `find` does.
        """
        _check_query(query)
        async with self._limit.place(client):
            view = await self._access.view(client, callable_only=True)
            agents = await view.board.search_agents(query, AGENTS, decompose=True)
            tools = [
                await view.board.find(query, AGENT_TOOLS, where={"agent": hit.agent.id}, llm=False)
                for hit in agents
            ]
        return [
            {
                "name": hit.agent.id,
                "description": hit.agent.description,
                "tools": [view.call_name(one.tool.id) for one in own],
            }
            for hit, own in zip(agents, tools, strict=True)
        ]


def _check_query(query: str) -> None:
    if len(query) > MAX_QUERY:
        raise QueryError(
            f"The request has {len(query):,} characters; expected at most {MAX_QUERY:,}. Say "
            f"shortly what a tool should do."
        )
    try:
        query.encode()
    except UnicodeEncodeError:
        raise QueryError("The request has half of a character. Send valid Unicode.") from None


async def _named_first(view: View, query: str, k: int, result: FindResult) -> FindResult:
    """Return the result with the tools that the query names in front."""
    named = view.names.named_in(query)[:k]
    if not named or [hit.tool.id for hit in result.hits[: len(named)]] == named:
        return result
    best = max((hit.score for hit in result.hits), default=0.0)
    hits = {hit.tool.id: hit for hit in result.hits}
    agents = {agent.id: agent for agent in await view.board.list_agents()}
    first: list[Hit] = []
    for identity in named:
        hit, tool = hits.pop(identity, None), await view.board.tool(identity)
        if hit is None and tool is not None:
            why = {"name": {"rank": 1, "score": 1.0}}
            hit = Hit(tool, agents[tool.agent], best, why, result.release)
        if hit is not None:
            first.append(replace(hit, score=max(hit.score, best)))
    return replace(result, hits=(*first, *hits.values())[:k], nothing_fits=False)


def _reason(view: View, query: str, result: FindResult) -> str:
    if not view.entries:
        return "There are no tools that you may use."
    if not query.strip():
        return "The query is empty. Say in plain words what a tool should do."
    if not result.hits:
        return "No tool was found. Say in other words what a tool should do."
    if result.nothing_fits:
        return "Probably none of these tools fits. Check their descriptions before a call."
    return ""
