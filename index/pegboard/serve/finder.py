"""Search for tools and agents, among those that a client may see."""

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
"""Most characters of a query."""
AGENTS = 3
"""Number of agents that `find_agents` returns."""
AGENT_TOOLS = 10
"""Number of tools that `find_agents` names of each agent."""
MAX_SEARCHES = 32
"""Most concurrent searches. Half of them, the share of one client, fill a batch of the encoder."""


@dataclass(frozen=True, slots=True)
class ClientResult:
    """The result of a search for a client.

    Attributes:
        view: the release as the client sees it, which has the hits' call names.
        result: the hits, best first, all of them visible to the client.
        reason: why there are no hits, or why they may not fit; "" otherwise.
    """

    view: View
    result: FindResult
    reason: str = ""


class Finder:
    """Searches the views of a board, and records each search.

    Args:
        strategy: the default strategy; None for the release's.
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
    ) -> ClientResult:
        """Return at most `k` tools of the current release for a query.

        Tools that the query names exactly, by id, call name or name, come first.

        Args:
            session: the client's session, for the request log; "" outside one.
            callable_only: as in `AccessControl.view`.
            options: passed to `Board.find`, such as `strategy` and `where`.

        Raises:
            QueryError: the query has more than `MAX_QUERY` characters, or is not valid Unicode.
            PegboardError: `Board.find` fails.
        """
        _check_query(query)
        start = time.perf_counter()
        options["strategy"] = options.get("strategy") or self._strategy
        async with self._limit.place(client):
            view = await self._access.view(client, callable_only=callable_only)
            result = await view.board.find(query, k, **options)
            if not options.get("where"):
                result = await _named_first(view, query, k, result)
        ms = (time.perf_counter() - start) * 1_000
        self.metrics.record_search(client, session, query, result, ms)
        return ClientResult(view, result, _reason(view, query, result))

    async def find_agents(self, client: Client, query: str) -> list[dict[str, Any]]:
        """Return the agents for a query, best first: name, description, and the call names of
        their best tools. Raises as `find` does.
        """
        _check_query(query)
        async with self._limit.place(client):
            view = await self._access.view(client, callable_only=True)
            agents = await view.board.search_agents(query, AGENTS, decompose=True)
            agent_tools = [
                await view.board.find(query, AGENT_TOOLS, where={"agent": hit.agent.id}, llm=False)
                for hit in agents
            ]
        return [
            {
                "name": hit.agent.id,
                "description": hit.agent.description,
                "tools": [view.call_name(tool_hit.tool.id) for tool_hit in tool_hits],
            }
            for hit, tool_hits in zip(agents, agent_tools, strict=True)
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
        raise QueryError("The request has a lone surrogate. Send valid Unicode.") from None


async def _named_first(view: View, query: str, k: int, result: FindResult) -> FindResult:
    """Return the result with the tools that the query names first."""
    named = view.names.named_in(query)[:k]
    if not named or [hit.tool.id for hit in result.hits[: len(named)]] == named:
        return result
    best_score = max((hit.score for hit in result.hits), default=0.0)
    hits = {hit.tool.id: hit for hit in result.hits}
    agents = {agent.id: agent for agent in await view.board.list_agents()}
    named_hits: list[Hit] = []
    for identity in named:
        hit = hits.pop(identity, None)
        tool = await view.board.tool(identity)
        if hit is None and tool is not None:
            why = {"name": {"rank": 1, "score": 1.0}}
            hit = Hit(tool, agents[tool.agent], best_score, why, result.release)
        if hit is not None:
            named_hits.append(replace(hit, score=max(hit.score, best_score)))
    return replace(result, hits=(*named_hits, *hits.values())[:k], nothing_fits=False)


def _reason(view: View, query: str, result: FindResult) -> str:
    """Return why a search has no hits, or why they may not fit; "" otherwise."""
    if not view.entries:
        return "There are no tools that you may use."
    if not query.strip():
        return "The query is empty. Say in plain words what a tool should do."
    if not result.hits:
        return "No tool was found. Say in other words what a tool should do."
    if result.nothing_fits and result.judged_by == "llm":
        return "None of these tools fits, as an LLM judged. Check their descriptions before a call."
    if result.nothing_fits:
        return "Probably none of these tools fits. Check their descriptions before a call."
    return ""
