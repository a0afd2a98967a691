"""A search for adapters: exact names first, within a token budget, with a reason for no hits."""

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
"""Names that no tool of a board is given, so that a catalog cannot impersonate the search."""

BLANK = "The query is blank. Say in a few words what the tool should do."
NO_TOOL = "No tool may be searched here: the board is empty, or its filter leaves none."
NO_MATCH = "No tool has words of the query. Say in other words what the tool should do."


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of one search.

    Attributes:
        hits: best first; tools that the query names exactly precede all others.
        names: the names of all tools of the release.
        reason: why there are no hits, for the model; it quotes neither the query nor a catalog.
    """

    hits: tuple[Hit, ...]
    names: CallNames
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """The names of the tools that one search found, as the model calls them.

    Attributes:
        names: best first.
        reason: why there are none, for the model.
    """

    names: tuple[str, ...]
    reason: str = ""

    @property
    def text(self) -> str:
        """The names or the reason as a sentence, for a model whose tools are listed elsewhere."""
        if not self.names:
            return self.reason
        return f"Found, and ready to be called: {', '.join(self.names)}."


def query_of(arguments: Any) -> str:
    """Return the query in a search's arguments, which a model writes as an object or as JSON text;
    "" if there is none, which the search answers with an explanation.
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
    """An application's search of a board; conversations and threads may share it.

    Skills, prompts and resources are not found, since a model would be given them as functions.

    Args:
        board: the board to search.
        k: the maximum number of tools that one search finds.
        max_tokens: the maximum of prompt tokens that their definitions take together.
        where, strategy, index: as in `Board.find`.
        descriptions: which descriptions a model is shown, as in `as_openai_tools`.
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
        self.k = k
        self.max_tokens = max_tokens
        self.where = dict(where or {})
        self.descriptions: Descriptions = descriptions
        self.reserved = frozenset((*RESERVED, *reserved))
        self._options: dict[str, Any] = {"strategy": strategy, "index": index}
        self._names: tuple[str, CallNames] = ("", CallNames(()))
        self._callable = self.where

    def find(self, query: str, among: Collection[str] | None = None) -> Findings:
        """Search the board. Raises as `Board.find` does.

        A query that consists of a name finds the tools of that name only.

        Args:
            among: ids of the tools that may be found; all that pass `where` by default.
        """
        names = self.names()
        query = query.encode("utf-8", "replace").decode()  # a model may write half a character
        if not query.strip():
            return Findings((), names, BLANK)
        where = self._callable if among is None else narrowed(self._callable, among)
        if where is None:
            return Findings((), names, NO_TOOL)
        where_named = narrowed(where, names.named_in(query))
        if where_named is None:
            filters = [where]
        elif len(query.split()) == 1:
            filters = [where_named]
        else:
            filters = [where_named, where]
        results = [
            self.board.find(query, self.k, where=where_filter, **self._options)
            for where_filter in filters
        ]
        return self._findings(results, has_named=where_named is not None)

    def names(self, release: str | None = None) -> CallNames:
        """Return the names of the tools of the current release, or of one that just answered."""
        release = release or self.board.release.id
        cached_release, names = self._names
        if cached_release != release:
            new_release, tools = self.board.tool_names()
            names = CallNames(tools, self.reserved)
            kinds = {agent.kind for agent in self.board.list_agents()}
            if kinds.isdisjoint(READ_KINDS):
                self._callable = self.where
            else:
                self._callable = {"kind": ("tool", "agent"), **self.where}
            self._names = new_release, names
        return names

    def _findings(self, results: Sequence[FindResult], *, has_named: bool) -> Findings:
        """Merge the results of searches; with `has_named`, the first is that of named tools."""
        names = self.names(results[-1].release)
        best: dict[str, Hit] = {}
        for position, result in enumerate(results):
            # A named tool fits, however little it resembles the rest of the request.
            is_named = has_named and position == 0
            if is_named or not result.nothing_fits:
                best |= {hit.tool.id: hit for hit in result if hit.tool.id not in best}
        hits = [
            hit
            for hit in best.values()
            if hit.tool.id in names.names and hit.agent.kind not in READ_KINDS
        ][: self.k]
        if not hits:
            return Findings((), names, self._reason(results[-1]))
        if self.max_tokens is None:
            return Findings(tuple(hits), names)
        fitting, omitted = within_tokens(hits, self.max_tokens, self.descriptions)
        if fitting:
            return Findings(tuple(fitting), names)
        return Findings(
            (),
            names,
            f"{len(omitted)} tools were found, but the definition of each is too long: "
            f"{self.max_tokens} tokens are allowed.",
        )

    def _reason(self, result: FindResult) -> str:
        if result.hits and result.judged_by == "llm":
            return (
                "No tool fits, as an LLM judged. Say in other words what the tool should do, or go "
                "on without one."
            )
        if result.hits:
            return (
                f"No tool fits: the best of them does with a probability of "
                f"{result.probability or 0:.0%}. Say in other words what the tool should do, or go "
                "on without one."
            )
        return NO_MATCH if not self.where else NO_TOOL


def narrowed(where: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any] | None:
    """Return the filter restricted to the given tools; None if none of them passes it."""
    allowed = where.get("tool")
    if allowed is not None:
        allowed = {allowed} if isinstance(allowed, str) else set(allowed)
        tools = [tool for tool in tools if tool in allowed]
    return {**where, "tool": list(tools)} if tools else None
