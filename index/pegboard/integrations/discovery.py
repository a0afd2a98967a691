"""The tools that one conversation found, under stable names and in order of discovery."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, ClassVar

from pegboard.async_board import AsyncBoard
from pegboard.board import Board
from pegboard.errors import QueryError, did_you_mean
from pegboard.hits import Hit
from pegboard.integrations.board_search import (
    BoardSearch,
    Findings,
    Selected,
    narrowed,
    query_of,
)
from pegboard.naming import CallNames
from pegboard.records import Agent, Tool

GONE = "This tool is no longer available."


class Discovery:
    """The tools that a conversation found on a board. Create one for each conversation.

    A tool keeps its name and its position: `found` only grows at its end, so that a provider's
    cached prompt prefix stays valid. A definition also survives promotions, unless the tool is
    found again after it changed. Threads may share a discovery.

    Args:
        search: the search, which conversations may share; a board is searched with the defaults.

    Attributes:
        found: hits by the names under which the model calls them, in order of discovery. For
            definitions, use `as_openai_tools(discovery.found)` and its siblings.
    """

    def __init__(self, search: BoardSearch | Board | AsyncBoard) -> None:
        self.options = search if isinstance(search, BoardSearch) else BoardSearch(search)
        self.found: dict[str, Hit] = {}
        self._names: dict[str, str] = {}
        self._lock = Lock()

    def search(self, query: str) -> Selected:
        """Search the board, and add the tools found. Raises as `Board.find` does."""
        return self._add(self.options.find(query))

    async def search_async(self, query: str) -> Selected:
        """Do what `search` does without blocking the event loop."""
        return await asyncio.to_thread(self.search, query)

    def called(self, name: str) -> Hit:
        """Return the tool that a model calls by a name.

        Raises:
            QueryError: the conversation has not found such a tool, or the current release lacks
                it, or it may no longer be searched. The message is written for the model.
        """
        hit = self.found.get(name)
        if hit is None:
            raise QueryError(
                f"No tool of this conversation is called {name!r:.80}"
                f"{did_you_mean(name, self.found)}. Search for it first."
            )
        if not self._permitted([hit.tool.id]):
            raise QueryError(f"The tool {name!r:.80} is no longer available. Search for another.")
        return hit

    def to_dict(self) -> dict[str, str]:
        """Return the ids of the tools by name, in order of discovery, for storage with the
        conversation.
        """
        return {name: hit.tool.id for name, hit in self.found.items()}

    def restore(self, stored: Mapping[str, str]) -> None:
        """Add the tools of a stored conversation under their stored names.

        A tool that the release lacks, or that may no longer be searched, keeps its position with an
        empty definition, since the conversation may refer to it. Reserved names, which belong to
        the application's own tools, are skipped.
        """
        stored = {name: stored[name] for name in stored if name not in self.options.reserved}
        agents = {agent.id: agent for agent in self.options.board.list_agents()}
        permitted = self._permitted(list(stored.values()))
        for name, identity in stored.items():
            tool = permitted.get(identity)
            if tool is None:
                hit = _gone(identity)
            else:
                hit = Hit(tool, agents.get(tool.agent, _agent(tool.agent)), 0.0, {})
            with self._lock:
                self.found[name] = hit
                self._names[identity] = name

    def _permitted(self, ids: Sequence[str]) -> dict[str, Tool]:
        """Return the tools among ids that the current release has and the search may find."""
        where = narrowed(self.options.where, ids)
        tools = [] if where is None else self.options.board.list_tools(where)
        return {tool.id: tool for tool in tools}

    def _add(self, findings: Findings) -> Selected:
        with self._lock:
            names: list[str] = []
            for hit in findings.hits:
                name = self._names.get(hit.tool.id)
                if name is None:
                    name = self._names[hit.tool.id] = self._name(hit, findings.names)
                    self.found[name] = hit
                elif self.found[name].tool.digest != hit.tool.digest:
                    self.found[name] = hit
                names.append(name)
        return Selected(tuple(names), findings.reason)

    def _name(self, hit: Hit, names: CallNames) -> str:
        """Return the tool's name in its release, or another if this conversation uses that name."""
        name = names.names[hit.tool.id]
        if name not in self.found:
            return name
        taken = {*self.options.reserved, *self.found}
        unused_names = CallNames([(hit.tool.id, hit.tool.name, hit.agent.name)], taken)
        return unused_names.names[hit.tool.id]


class ProviderToolSearch(ABC):
    """Answers the searches of one conversation in the form of a provider's API.

    Args:
        discovery: the tools that the conversation found.
    """

    _arguments: ClassVar[str]
    """Name of the field with a search's arguments."""

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery

    def answers(self, output: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the answers to the searches among the items of a reply, in their order.

        The answer to a search that found nothing has no tools, and a text with the reason.
        """
        return [
            answer
            for item in map(_fields, output)
            if self._is_search(item)
            for answer in self._answer(
                item, self.discovery.search(query_of(item.get(self._arguments)))
            )
        ]

    async def answers_async(self, output: Iterable[Any]) -> list[dict[str, Any]]:
        """Do what `answers` does without blocking the event loop."""
        return await asyncio.to_thread(self.answers, output)

    def called(self, item: Any) -> Hit:
        """Return the tool that an item of a reply calls. Raises as `Discovery.called` does."""
        return self.discovery.called(str(_fields(item).get("name", "")))

    @abstractmethod
    def _is_search(self, item: Mapping[str, Any]) -> bool: ...

    @abstractmethod
    def _answer(self, item: Mapping[str, Any], selected: Selected) -> list[dict[str, Any]]: ...


def _fields(item: Any) -> Mapping[str, Any]:
    """Return the fields of a reply's item, which is a mapping or an object of the client."""
    return item if isinstance(item, Mapping) else item.model_dump()


def _agent(identity: str) -> Agent:
    catalog, _, name = identity.partition("/")
    return Agent(identity, catalog, name)


def _gone(identity: str) -> Hit:
    owner, _, name = identity.rpartition("/")
    agent = _agent(owner)
    return Hit(Tool(identity, agent.catalog, owner, name, GONE), agent, 0.0, {})
