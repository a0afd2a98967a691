"""Haystack 3: a toolset whose tools an agent searches on a board.

agent = Agent(chat_generator=generator, tools=BoardToolset(board, tools))
"""
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportInvalidTypeForm=false

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from haystack.tools import Tool, Toolset
from haystack.tools.utils import (
    close_tools,
    close_tools_async,
    flatten_tools_or_toolsets,
    warm_up_tools,
    warm_up_tools_async,
)

from pegboard.integrations.board_search import QUERY_SCHEMA, SEARCH_DESCRIPTION, SEARCH_TOOL
from pegboard.integrations.own_tools import OwnDiscovery, Search, own_tools


class BoardToolset(Toolset):
    """The search, and the tools that the run found, in order of discovery. Runs share nothing.

    Args:
        search: how to search.
        catalog: tools and toolsets whose tools may be found, with unique names.
    """

    def __init__(self, search: Search, catalog: Sequence[Tool | Toolset] | Toolset) -> None:
        super().__init__(tools=[])
        self._own = own_tools(search)
        self._catalog: Any = catalog if isinstance(catalog, Toolset) else list(catalog)
        self._held: dict[str, Tool] | None = None
        self._selected: set[str] | None = None
        self._begin()

    def warm_up(self) -> None:
        """Prepare the tools that may be found."""
        warm_up_tools(self._catalog)
        self._hold()

    async def warm_up_async(self) -> None:
        """Do what `warm_up` does without blocking the event loop."""
        await warm_up_tools_async(self._catalog)
        self._hold()

    def close(self) -> None:
        """Close the tools that may be found."""
        close_tools(self._catalog)
        self._held = None

    async def close_async(self) -> None:
        """Do what `close` does without blocking the event loop."""
        await close_tools_async(self._catalog)
        self._held = None

    def spawn(self, selected_tool_names: set[str] | None = None) -> "BoardToolset":
        """Return a toolset for one run, which has found nothing yet.

        Args:
            selected_tool_names: the only tools that the run may find.
        """
        self._ready()
        run = copy.copy(self)
        run._selected = None if selected_tool_names is None else set(selected_tool_names)
        run._begin()
        return run

    def get_selectable_tools(self) -> list[Tool]:
        """Return all tools that may be found."""
        return list(self._ready().values())

    def __iter__(self) -> Iterator[Tool]:
        yield self._search_tool
        held = self._ready()
        yield from (held[name] for name in self._discovery.found if name in held)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, index: int) -> Tool:
        return list(self)[index]

    def __contains__(self, item: str | Tool) -> bool:
        return any(item in (tool, tool.name) for tool in self)

    def add(self, tool: Any) -> None:
        """Raise NotImplementedError: the tools are fixed when the toolset is made."""
        raise NotImplementedError("Give all tools when the BoardToolset is made.")

    def to_dict(self) -> dict[str, Any]:
        """Raise NotImplementedError: a board is a connection and cannot be serialized."""
        raise NotImplementedError("A BoardToolset cannot be serialized. Add it when you load.")

    def _ready(self) -> dict[str, Tool]:
        if self._held is None:
            self.warm_up()
        assert self._held is not None
        return self._held

    def _hold(self) -> None:
        if self._held is None:
            self._held = {tool.name: tool for tool in flatten_tools_or_toolsets(self._catalog)}

    def _begin(self) -> None:
        self._discovery = OwnDiscovery(self._own)
        self._search_tool = Tool(
            name=SEARCH_TOOL,
            description=SEARCH_DESCRIPTION,
            parameters=dict(QUERY_SCHEMA),
            function=self._search,
        )

    def _search(self, query: str) -> str:
        descriptions = {
            name: tool.description
            for name, tool in self._ready().items()
            if self._selected is None or name in self._selected
        }
        return self._discovery.search(query, descriptions).text
