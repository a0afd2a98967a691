"""A release as if it had only some of its tools: for samples of a catalog (tool-M), and for what a
client of the gateway may see.
"""

import sys
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.records import Agent
from pegboard.search.loaded import SEARCHED, Agents, LoadedRelease
from pegboard.search.memory import MemoryIndex
from pegboard.store.contract import EDGES, embedding_table

if TYPE_CHECKING:
    import pyarrow as pa


class RestrictedRelease(LoadedRelease):
    """The tools of those ids, the agents that have one of them, and the dependencies between them,
    searched in memory.

    Cosines are those of the whole release. BM25 is not: how rare a word is depends on the tools
    that are there.

    Args:
        whole: the release; its loaded indexes are shared, so that a hundred samples load it once.
        tools: ids; unknown ones are left out.
    """

    def __init__(self, whole: LoadedRelease, tools: Collection[str]) -> None:
        super().__init__(whole._store, whole.release, sys.maxsize)
        self._whole = whole
        self._kept = frozenset(tools)

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The agents that have one of the tools, by id."""
        kept = self._kept_agents
        return Agents({one: agent for one, agent in self._whole.agents.items() if one in kept})

    def _load_index(self, name: str) -> MemoryIndex:
        index = self._whole.index(name)
        rows = (
            index.rows
            if isinstance(index, MemoryIndex)
            else self._whole._read(embedding_table(name), SEARCHED)
        )
        return MemoryIndex(self._among(rows, "tool", self._kept))

    def _read(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        if name == "tools":
            wanted = ["id", *(one for one in columns if one != "id")] if columns else None
            known = self._whole._tool_rows
            rows = known if known is not None and not wanted else self._whole._read(name, wanted)
            return self._among(rows, "id", self._kept)
        if name == EDGES:
            rows = self._whole._read(name, columns)
            return self._among(self._among(rows, "source", self._kept), "target", self._kept)
        rows = self._whole._read(name, columns)
        return self._among(rows, "id" if name == "agents" else "agent", self._kept_agents)

    @property
    def _kept_agents(self) -> frozenset[str]:
        rows = self._tool_rows
        return frozenset(rows.column("agent").to_pylist()) if rows is not None else frozenset()

    @staticmethod
    def _among(rows: "pa.Table", column: str, kept: Collection[str]) -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        return rows.filter(compute.is_in(rows.column(column), pa.array(sorted(kept), pa.string())))
