"""Boards in memory with several agents, and channels that move: no pipeline, store or model."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pegboard.board import Board
from pegboard.encoders import load_encoder
from pegboard.records import Agent, Tool
from pegboard.retrieval.llm.caller import open_caller
from pegboard.search.follower import ChannelFollower
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.tool_release import ToolRelease
from pegboard.store.releases import Channel

ENCODER = load_encoder("hashing/64")


def tool(name: str, description: str, agent: str = "desk", **properties: str) -> Tool:
    """A tool of the catalog `kit`; properties are descriptions of texts."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            key: {"type": "string", "description": text} for key, text in properties.items()
        },
    }
    return Tool(f"kit/{agent}/{name}", "kit", f"kit/{agent}", name, description, schema)


TOOLS = (
    tool("create_issue", "Reports a bug as an issue of a repository.", "git", title="the title"),
    tool("list_commits", "Lists the commits of a branch.", "git", branch="the branch"),
    tool("search", "Searches the code of a repository for a word.", "git", word="the word"),
    tool("search", "Searches employees of the company by department.", "desk", text="a text"),
    tool("book_room", "Books a meeting room in the office.", "desk", day="the day"),
    tool("order_lunch", "Orders lunch at the canteen.", "desk", dish="the dish"),
    tool("get_forecast", "Weather forecast: rain, wind and sun.", "weather", city="the city"),
    tool("convert_currency", "Converts an amount of money between currencies.", "bank", amount="1"),
)


class Release(ToolRelease):
    """A release in memory whose tools belong to agents of their own."""

    @cached_property
    def agents(self) -> dict[str, Agent]:
        return {
            tool.agent: Agent(
                tool.agent,
                tool.catalog,
                tool.agent.rpartition("/")[2],
                f"All about {tool.agent.rpartition('/')[2]}.",
            )
            for tool in self.all_tools()
        }

    def warm(self, before: Any) -> None:
        self.index("full")

    def tool_names(self) -> list[tuple[str, str, str]]:
        return [(tool.id, tool.name, self.agents[tool.agent].name) for tool in self.all_tools()]

    def _table(self, rows: Any, shared: Any = ()) -> Any:
        import pyarrow as pa

        table = super()._table(rows, shared)
        tools = [self._by_id[identity] for identity, *_ in rows if identity in self._by_id]
        if not tools:  # the row of the agents' index
            return table
        for column in ("catalog", "agent"):
            values = pa.array([getattr(tool, column) for tool in tools], pa.string())
            table = table.set_column(table.schema.get_field_index(column), column, values)
        return table


class Shelf:
    """A board whose channel can be moved: `promote` publishes another set of tools.

    Args:
        llm: the completer that strategies may ask.
    """

    def __init__(self, tools: Sequence[Tool] = TOOLS, llm: Any = None) -> None:
        self._releases: dict[str, Release] = {}
        self._channel: Channel | None = None
        self.promote(tools)
        self.board = Board(
            ChannelFollower(self._read, self._releases.__getitem__, lambda _: None, refresh=0.0),
            QueryVectors(ENCODER, None),
            caller=open_caller(llm),
        )

    def promote(self, tools: Sequence[Tool]) -> None:
        release = Release(tools, ENCODER)
        self._releases[release.release.id] = release
        generation = self._channel.generation + 1 if self._channel else 1
        self._channel = Channel("live", release.release.id, generation, datetime.now(UTC), ())

    def _read(self) -> Channel:
        assert self._channel is not None
        return self._channel


def changed(tools: Sequence[Tool], name: str, **values: Any) -> list[Tool]:
    """The tools, one of them with other values."""
    return [replace(tool, **values) if tool.name == name else tool for tool in tools]


def without(tools: Sequence[Tool], *names: str) -> list[Tool]:
    return [tool for tool in tools if tool.name not in names]


def many(count: int) -> list[Tool]:
    """Different tools of 50 agents."""
    return [
        tool(
            f"tool_{number}",
            f"Handles the case number{number} of kind{number % 97}.",
            f"a{number % 50}",
            x="x",
        )
        for number in range(count)
    ]
