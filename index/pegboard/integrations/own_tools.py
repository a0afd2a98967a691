"""Ranks an application's own tools, such as a framework's tool objects, by a board.

A tool of the application is matched with a tool of the board by its true name, its call name,
`agent__name`, `agent_name` or `agent-name`. Tools that the release lacks are found by their words,
after the others. Tools of the board that the application does not have are never found.
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
"""Encoder of boards that are searched by BM25 only; its vectors are not used."""
MATCHES = 16
"""Number of tool sets whose match with a release is cached, such as one for each kind of user."""


@dataclass(frozen=True, slots=True)
class _Match:
    """The application's tools, matched with those of a release.

    Attributes:
        names: the application's names of matched tools, by their ids on the board.
        unknown: a board of the unmatched tools; None if there are none.
        unknown_names: the application's names of unmatched tools, by their names on `unknown`.
    """

    names: Mapping[str, str]
    unknown: Board | None
    unknown_names: Mapping[str, str]


class OwnTools:
    """Finds tools among an application's own; conversations and threads may share it.

    Args:
        search: the search; a board is searched with the defaults.
    """

    def __init__(self, search: BoardSearch | Board | AsyncBoard) -> None:
        self.search = search if isinstance(search, BoardSearch) else BoardSearch(search)
        self._matched = lru_cache(MATCHES)(_matched)

    def find(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Return the best of the application's tools for a query.

        Args:
            tools: the descriptions of the tools that may be found, by their names.
        """
        k = self.search.k
        match = self._matched(self.search.names(), tuple(tools.items()))
        findings = self.search.find(query, match.names)
        names = list(dict.fromkeys(match.names[hit.tool.id] for hit in findings.hits))
        if match.unknown is None or not query.strip():
            return Selected(tuple(names), findings.reason if not names else "")
        # Unmatched tools get a third of the k positions and all that are free: nothing else finds
        # tools that are newer than the release.
        positions = max(k // 3, k - len(names), 1)
        hits = match.unknown.search(query, positions, mode="text")
        unmatched_names = [match.unknown_names[hit.tool.name] for hit in hits]
        names = list(dict.fromkeys([*names[: k - len(unmatched_names)], *unmatched_names]))
        reason = findings.reason if findings.reason != NO_TOOL else NO_MATCH
        return Selected(tuple(names), "" if names else reason)

    async def find_async(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Do what `find` does without blocking the event loop."""
        return await asyncio.to_thread(self.find, query, tools)


class OwnDiscovery:
    """The tools that one conversation found among the application's own, in order of discovery.

    Args:
        search: the search; conversations may share an `OwnTools`.
    """

    def __init__(self, search: "Search") -> None:
        self.tools = own_tools(search)
        self.found: dict[str, None] = {}
        self._lock = Lock()

    def search(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Search the given tools, and add those found."""
        selected = self.tools.find(query, tools)
        with self._lock:
            self.found.update(dict.fromkeys(selected.names))
        return selected

    async def search_async(self, query: str, tools: Mapping[str, str]) -> Selected:
        """Do what `search` does without blocking the event loop."""
        return await asyncio.to_thread(self.search, query, tools)


Search = OwnTools | BoardSearch | Board | AsyncBoard
"""What adapters accept as a search."""


def own_tools(search: Search) -> OwnTools:
    """Return a search of the application's tools; an `OwnTools` is returned as it is."""
    return search if isinstance(search, OwnTools) else OwnTools(search)


def _matched(names: CallNames, items: tuple[tuple[str, str], ...]) -> _Match:
    tools = dict(items)
    name_of = {valid_name(name): name for name in reversed(list(tools))}
    name_of |= {name: name for name in tools}
    matched: dict[str, str] = {}
    for identity, name, agent in names.tools:
        qualified = (f"{agent}{separator}{name}" for separator in ("__", "_", "-"))
        for candidate in (*qualified, names.names[identity], name):
            application_name = name_of.get(candidate) or name_of.get(valid_name(candidate))
            if application_name is not None:
                matched[identity] = application_name
                break
    matched_names = set(matched.values())
    # A board strips names, and has no blank ones.
    unknown = {name.strip(): name for name in tools if name not in matched_names and name.strip()}
    declared = [
        {"name": name, "description": tools[application_name], "parameters": {}}
        for name, application_name in unknown.items()
    ]
    board = Board.from_tools(declared, encoder=WORDS_ONLY) if declared else None
    return _Match(matched, board, unknown)
