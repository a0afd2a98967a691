"""A view of a release with only some of its tools: for samples of a catalog (tool-M), and for the
tools that a client of the gateway may see.
"""

import sys
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.ranker.model import Ranker
from pegboard.records import Agent
from pegboard.search.loaded import SEARCHED, Agents, LoadedRelease
from pegboard.search.memory import MemoryIndex
from pegboard.store.contract import embedding_table

if TYPE_CHECKING:
    import pyarrow as pa

    from pegboard.graph.tool_graph import ToolGraph


class RestrictedRelease(LoadedRelease):
    """The tools with the given ids, their agents, and the dependencies between them, searched in
    memory.

    Cosines equal those of the full release. BM25 scores do not, since they depend on how many of
    the tools have a word.

    Args:
        full: the release; its loaded indexes are shared, so that a hundred samples load it once.
        tools: ids of tools; unknown ids are ignored.
    """

    def __init__(self, full: LoadedRelease, tools: Collection[str]) -> None:
        super().__init__(full._store, full.release, sys.maxsize)
        self._full = full
        self._tool_ids = frozenset(tools)

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The agents of the tools, by id."""
        agent_ids = self._owner_ids
        return Agents({key: agent for key, agent in self._full.agents.items() if key in agent_ids})

    @cached_property
    def graph(self) -> "ToolGraph":
        """The dependencies between the tools."""
        from pegboard.graph.tool_graph import ToolGraph

        ids = self._tool_ids
        edges = self._full.graph.edges
        return ToolGraph(edge for edge in edges if edge.source in ids and edge.target in ids)

    def ranker(self, index: str) -> Ranker:
        """Return the ranker of the full release."""
        return self._full.ranker(index)

    def _load_index(self, name: str) -> MemoryIndex:
        index = self._full.index(name)
        rows = (
            index.rows
            if isinstance(index, MemoryIndex)
            else self._full._read(embedding_table(name), SEARCHED)
        )
        return MemoryIndex(_rows_with(rows, "tool", self._tool_ids))

    def _read(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        if name == "tools":
            return _rows_with(self._read_tools(columns), "id", self._tool_ids)
        rows = self._full._read(name, columns)
        return _rows_with(rows, "id" if name == "agents" else "agent", self._owner_ids)

    def _read_tools(self, columns: Sequence[str] | None) -> "pa.Table":
        if columns:
            with_id = ["id", *(column for column in columns if column != "id")]
            return self._full._read("tools", with_id)
        loaded_rows = self._full._tool_rows
        return loaded_rows if loaded_rows is not None else self._full._read("tools")

    @property
    def _owner_ids(self) -> frozenset[str]:
        rows = self._tool_rows
        return frozenset(rows.column("agent").to_pylist()) if rows is not None else frozenset()


def _rows_with(rows: "pa.Table", column: str, values: Collection[str]) -> "pa.Table":
    """Return the rows that have one of the values in a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    return rows.filter(compute.is_in(rows.column(column), pa.array(sorted(values), pa.string())))
