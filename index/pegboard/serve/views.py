"""The board's release as each client sees it: only its tools, under the names by which it calls
them.

A client's view is a board of its own that holds nothing else, so that neither ranks and scores nor
counts, agents or dependencies tell of a tool that it may not see."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pegboard.async_board import AsyncBoard
from pegboard.board import Board
from pegboard.hits import Hit
from pegboard.naming import CallNames
from pegboard.records import READ_KINDS, Agent, Tool
from pegboard.serve.access import Client
from pegboard.serve.settings import Rule
from pegboard.tokens import definition_tokens

MAX_VIEWS = 64
"""Views of a release that are held; the one that was made longest ago goes first."""
Key = tuple[tuple[Rule, ...] | None, tuple[Rule, ...], bool]
"""What a client may see: its rules, and whether tools that cannot be called are left out. Clients
of equal rules share a view."""
RESERVED = ("search_tools", "call_tool", "search_agents", "get_tool")
"""The gateway's own tools, whose names no other takes."""


@dataclass(frozen=True, slots=True)
class Entry(Tool):
    """A tool as the views keep it: without what is read from the board when it is needed.

    Attributes:
        kind: of its agent.
        text: id, name and description, by which lists are filtered.
        tokens: that its definition takes in a prompt, about.
        problem: why the gateway cannot call it; "" if it can.
    """

    kind: str = ""
    text: str = ""
    tokens: float = 0.0
    problem: str = ""

    @property
    def is_read(self) -> bool:
        """Whether it is a skill, a prompt or a resource, which nothing calls."""
        return self.kind in READ_KINDS


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The release as one client sees it.

    Attributes:
        release: its id.
        board: has the visible tools and no others, and stays at this release.
        entries: the visible tools by id.
        agents: names of the agents that have visible tools, those with most tools first.
        names: by which the client calls them; what it may not see takes none of them.
        tokens: that the definitions of all visible tools take in a prompt, about.
    """

    release: str
    board: AsyncBoard
    entries: Mapping[str, Entry]
    agents: tuple[str, ...]
    names: CallNames
    tokens: float

    def call_name(self, identity: str) -> str:
        """Return the name by which a visible tool is called, from its id."""
        return self.names.names[identity]

    def id_of(self, name: str) -> str | None:
        """Return the id of the visible tool with that call name or id, exactly; else None."""
        return self.names.ids.get(name) or (name if name in self.entries else None)


class Views:
    """The views of a board's current release.

    Args:
        board: its channel is followed: a promotion gives new views, and no restart is needed.
        can_call: says why the gateway cannot call a tool of an agent of that kind; "" if it can.
    """

    def __init__(self, board: Board, can_call: Callable[[Tool, str], str] = lambda *_: "") -> None:
        self.board, self._can_call = board, can_call
        self._whole: tuple[Board, dict[str, Entry]] | None = None
        self._views: dict[Key, View] = {}
        self._building = asyncio.Lock()

    async def of(self, client: Client, *, callable_only: bool = False) -> View:
        """Return the current release as a client sees it.

        While one request waits for a new release, others are answered from the one before.

        Args:
            callable_only: leave out tools that the gateway cannot call, if it can call any. What is
                read stays.
        """
        key = (client.allow, client.deny, callable_only)
        current = await asyncio.to_thread(lambda: self.board.release.id)
        held = self._views.get(key)
        if held is not None and (held.release == current or self._building.locked()):
            return held
        async with self._building:
            return await asyncio.to_thread(self._build, client, key)

    async def entries(self) -> tuple[str, Mapping[str, Entry]]:
        """Return the id of the current release, and all its tools by id."""
        async with self._building:
            board, entries = await asyncio.to_thread(self._loaded)
        return board.release.id, entries

    def forget(self) -> None:
        """Drop what is held: other settings reach other tools."""
        self._whole = None
        self._views = {}

    def _build(self, client: Client, key: Key) -> View:
        board, entries = self._loaded()
        release = board.release.id
        views = {key: view for key, view in self._views.items() if view.release == release}
        if key not in views:
            views[key] = _view(board, entries, client, callable_only=key[2])
        self._views = dict(list(views.items())[-MAX_VIEWS:])
        return views[key]

    def _loaded(self) -> tuple[Board, dict[str, Entry]]:
        """Return the current release with all its tools; views of the one before stay until there
        is one of this.
        """
        if self._whole is None or self._whole[0].release.id != self.board.release.id:
            board = self.board.at_current_release()
            agents = {agent.id: agent for agent in board.list_agents()}
            entries = {
                tool.id: _entry(tool, agents[tool.agent], self._can_call)
                for tool in board.list_tools()
            }
            self._whole = board, entries
        return self._whole


def _entry(tool: Tool, agent: Agent, can_call: Callable[[Tool, str], str]) -> Entry:
    return Entry(
        *(tool.id, tool.catalog, tool.agent, tool.name),
        tags=tool.tags,
        kind=agent.kind,
        text=f"{tool.id} {tool.name} {tool.description}".casefold(),
        tokens=definition_tokens(Hit(tool, agent, 0.0, {})),
        problem=can_call(tool, agent.kind),
    )


def _view(whole: Board, tools: Mapping[str, Entry], client: Client, *, callable_only: bool) -> View:
    # A gateway that can call nothing is there to search.
    callable_only &= not all(entry.problem for entry in tools.values())
    entries = {
        one: entry
        for one, entry in tools.items()
        if client.permits(entry) and (not callable_only or not entry.problem or entry.is_read)
    }
    board = whole if len(entries) == len(tools) else whole.restricted(entries)
    agents = {agent.id: agent.name for agent in board.list_agents()}
    named = [(entry.id, entry.name, agents[entry.agent]) for entry in entries.values()]
    sizes = Counter(entry.agent for entry in entries.values())
    return View(
        board.release.id,
        AsyncBoard(board),
        entries,
        tuple(agents[one] for one, _ in sorted(sizes.items(), key=lambda own: (-own[1], own[0]))),
        CallNames(named, RESERVED),
        sum(entry.tokens for entry in entries.values()),
    )
