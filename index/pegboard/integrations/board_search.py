"""One search for an adapter: exact names first, within a token budget, why nothing was found."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.async_board import AsyncBoard
from pegboard.board import Board
from pegboard.errors import QueryError
from pegboard.hits import Descriptions, Hit
from pegboard.naming import CallNames
from pegboard.records import READ_KINDS
from pegboard.retrieval.found import FindResult
from pegboard.tokens import within_tokens

SEARCH_TOOL = "search_tools"
SEARCH_PURPOSE = (
    "Find tools by what they should do. The tools at hand are only some of those there are: search "
    "before you say that something cannot be done."
)
SEARCH_DESCRIPTION = f"{SEARCH_PURPOSE} Tools that were found can be called by name."
QUERY_DESCRIPTION = "What the tool should do, in a few words, or the exact name of a tool."
QUERY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": QUERY_DESCRIPTION}},
    "required": ["query"],
    "additionalProperties": False,
}
RESERVED = (SEARCH_TOOL, "call_tool", "search_agents")
"""Names that no tool of a board gets: a catalog could otherwise stand in for the search."""

BLANK = "The query is blank. Say in a few words what the tool should do."
NO_TOOL = "No tool may be searched here: the board is empty, or its filter leaves none."
NO_MATCH = "No tool has words of the query. Say in other words what the tool should do."


@dataclass(frozen=True, slots=True)
class Findings:
    """What one search found.

    Attributes:
        hits: best first, those that the query names exactly before all others.
        names: the names of all tools of the release.
        reason: why there are no hits, for the model; it quotes neither the query nor a catalog.
    """

    hits: tuple[Hit, ...]
    names: CallNames
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """What one search found, by the names that the model calls.

    Attributes:
        names: best first.
        reason: why there are none, for the model.
    """

    names: tuple[str, ...]
    reason: str = ""

    @property
    def text(self) -> str:
        """What to tell a model whose tools are listed elsewhere: the names, or the reason."""
        if not self.names:
            return self.reason
        return f"Found, and ready to be called: {', '.join(self.names)}."


def query_of(arguments: Any) -> str:
    """Return the query of a search's arguments as a model wrote them, as an object or as JSON text;
    blank if there is none, which a search answers with what is expected.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return arguments
        except RecursionError:
            return ""
    query = arguments.get("query") if isinstance(arguments, Mapping) else arguments
    return query if isinstance(query, str) else ""


class BoardSearch:
    """How an application searches a board for tools; conversations and threads may share it.

    Skills, prompts and resources are not found: they would be given to a model as functions.

    Args:
        board: where to search.
        k: tools that one search finds, at most.
        max_tokens: prompt tokens that their definitions take together, at most.
        where, strategy, index: as in `Board.find`.
        descriptions: which a model is shown, as in `as_openai_tools`.
        reserved: names of the application's own tools, which no tool of the board may have.

    Raises:
        QueryError: `max_tokens` is below 1.
    """

    def __init__(
        self,
        board: Board | AsyncBoard,
        *,
        k: int = 5,
        max_tokens: int | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        strategy: Any = None,
        index: str | None = None,
        descriptions: Descriptions = "catalog",
        reserved: Collection[str] = (),
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise QueryError(f"max_tokens is {max_tokens}; expected at least 1, or None.")
        self.board = board.board if isinstance(board, AsyncBoard) else board
        self.k, self.max_tokens, self.where = k, max_tokens, dict(where or {})
        self.descriptions: Descriptions = descriptions
        self.reserved = frozenset((*RESERVED, *reserved))
        self._options: dict[str, Any] = {"strategy": strategy, "index": index}
        self._names: tuple[str, CallNames] = ("", CallNames(()))
        self._callable = self.where

    def find(self, query: str, among: Collection[str] | None = None) -> Findings:
        """Return what one search finds. Raises as `Board.find` does.

        A query of nothing but a name finds the tools of that name alone.

        Args:
            among: ids of the tools that may be found; all that pass `where` by default.
        """
        names = self.names()
        query = query.encode("utf-8", "replace").decode()  # a model may write half a character
        if not query.strip():
            return Findings((), names, BLANK)
        where = self._callable
        where = where if among is None else narrowed(where, among)
        if where is None:
            return Findings((), names, NO_TOOL)
        named = narrowed(where, names.named_in(query))
        alone = named is not None and len(query.split()) == 1
        filters = [each for each in (named, None if alone else where) if each is not None]
        found = [self.board.find(query, self.k, where=each, **self._options) for each in filters]
        return self._findings(found, int(named is not None))

    def names(self, release: str | None = None) -> CallNames:
        """Return the names of the tools of the current release, or of one that just answered."""
        release = release or self.board.release.id
        known, names = self._names
        if known != release:
            known, tools = self.board.tool_names()
            names = CallNames(tools, self.reserved)
            kinds = {agent.kind for agent in self.board.list_agents()}
            mixed = not kinds.isdisjoint(READ_KINDS)
            self._callable = {"kind": ("tool", "agent"), **self.where} if mixed else self.where
            self._names = known, names
        return names

    def _findings(self, found: Sequence[FindResult], exact: int) -> Findings:
        """What searches found together; the first `exact` of them are for named tools."""
        names = self.names(found[-1].release)
        best: dict[str, Hit] = {}
        for place, result in enumerate(found):
            # What is named fits, however little it resembles the rest of the request.
            if not result.nothing_fits or place < exact:
                best |= {hit.tool.id: hit for hit in result if hit.tool.id not in best}
        hits = [
            hit
            for hit in best.values()
            if hit.tool.id in names.names and hit.agent.kind not in READ_KINDS
        ][: self.k]
        if not hits:
            return Findings((), names, self._reason(found[-1]))
        if self.max_tokens is None:
            return Findings(tuple(hits), names)
        fitting, others = within_tokens(hits, self.max_tokens, self.descriptions)
        too_long = (
            f"{len(others)} tools were found, but the definition of each is too long: "
            f"{self.max_tokens} tokens are allowed."
        )
        return Findings(tuple(fitting), names, "" if fitting else too_long)

    def _reason(self, result: FindResult) -> str:
        if result.hits:
            return (
                f"No tool fits: the best of them does with a probability of "
                f"{result.probability or 0:.0%}. Say in other words what the tool should do, or go "
                "on without one."
            )
        return NO_MATCH if not self.where else NO_TOOL


def narrowed(where: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any] | None:
    """Return the filter for only those tools; None if it would leave none of them."""
    allowed = where.get("tool")
    if allowed is not None:
        allowed = {allowed} if isinstance(allowed, str) else set(allowed)
        tools = [tool for tool in tools if tool in allowed]
    return {**where, "tool": list(tools)} if tools else None
