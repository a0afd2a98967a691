"""Ranking tools that an application holds itself, such as a framework's tool objects, by a board.

A tool of the application is one of the board's if it has its true name, its name for calls,
`agent__name`, `agent_name` or `agent-name`. Tools that the release does not know yet are found by
their words, behind the others. Tools of the board that the application does not hold are never
found.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from pegboard.async_board import AsyncBoard
from pegboard.board import Board
from pegboard.integrations.board_search import NO_MATCH, NO_TOOL, BoardSearch, Selected
from pegboard.naming import CallNames, valid_name

WORDS_ONLY = "hashing/16"
"""Encoder of boards that are searched by words alone; its vectors are not used."""
MATCHES = 16
"""Sets of tools whose match with a release is remembered: one for each kind of user, say."""


@dataclass(frozen=True, slots=True)
class _Match:
    """How the application's tools and those of a release belong together.

    Attributes:
        names: the application's name of a tool, by its id on the board.
        unknown: a board of the others; None if there are none.
        unknown_names: the application's names of those, by their names there.
    """

    names: Mapping[str, str]
    unknown: Board | None
    unknown_names: Mapping[str, str]


class OwnTools:
    """Finds tools among those that an application holds; conversations and threads may share it.

    Args:
        search: how to search; a board alone is searched by default.
    """

    def __init__(self, search: BoardSearch | Board | AsyncBoard) -> None:
        self.search = search if isinstance(search, BoardSearch) else BoardSearch(search)
        self._matched = lru_cache(MATCHES)(_matched)

    def find(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Return the best tools for a query among those given.

        Args:
            tools: the descriptions of the tools that may be found, by their names.
        """
        match, k = self._matched(self.search.names(), tuple(tools.items())), self.search.k
        findings = self.search.find(query, match.names)
        names = list(dict.fromkeys(match.names[hit.tool.id] for hit in findings.hits))
        if match.unknown is None or not query.strip():
            return Selected(tuple(names), findings.reason if not names else "")
        # A third of the places, and those that are free: what is new has no other way to be found.
        room = max(k // 3, k - len(names), 1)
        unknown = [hit.tool.name for hit in match.unknown.search(query, room, mode="text")]
        others = [match.unknown_names[name] for name in unknown]
        names = list(dict.fromkeys([*names[: k - len(others)], *others]))
        reason = findings.reason if findings.reason != NO_TOOL else NO_MATCH
        return Selected(tuple(names), "" if names else reason)

    async def find_async(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Return what `find` does; the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.find, query, tools)


class OwnDiscovery:
    """The tools that one conversation found among the application's own, in order of discovery.

    Args:
        search: how to search; conversations share an `OwnTools`.
    """

    def __init__(self, search: "Search") -> None:
        self.tools = own_tools(search)
        self.found: dict[str, None] = {}
        self._lock = Lock()

    def search(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Search the tools given, and add what is found."""
        selected = self.tools.find(query, tools)
        with self._lock:
            self.found.update(dict.fromkeys(selected.names))
        return selected

    async def search_async(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Return what `search` does; the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.search, query, tools)


Search = OwnTools | BoardSearch | Board | AsyncBoard
"""How an adapter searches."""


def own_tools(search: Search) -> OwnTools:
    """Return a search among the application's tools; itself if it is one."""
    return search if isinstance(search, OwnTools) else OwnTools(search)


def _matched(names: CallNames, items: tuple[tuple[str, str], ...]) -> _Match:
    tools = dict(items)
    own = {valid_name(name): name for name in reversed(list(tools))} | {
        name: name for name in tools
    }
    matched: dict[str, str] = {}
    for identity, name, agent in names.tools:
        qualified = (f"{agent}{mark}{name}" for mark in ("__", "_", "-"))
        for each in (*qualified, names.names[identity], name):
            held = own.get(each) or own.get(valid_name(each))
            if held is not None:
                matched[identity] = held
                break
    known = set(matched.values())
    # Blanks around a name do not count on a board, and a blank name is none.
    unknown = {name.strip(): name for name in tools if name not in known and name.strip()}
    declared = [
        {"name": name, "description": tools[held], "parameters": {}}
        for name, held in unknown.items()
    ]
    board = Board.from_tools(declared, encoder=WORDS_ONLY) if declared else None
    return _Match(matched, board, unknown)
