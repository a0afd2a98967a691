"""The dependencies that catalogs declare, as edges: which tool a declared name or id means."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pegboard.records import Edge, Tool

NAMED = 3
"""Tools that are named where a name may mean several."""


def declared_edges(tools: Iterable[Tool]) -> tuple[list[Edge], list[str]]:
    """The edges that the tools declare, in the order of the tools and then of their dependencies,
    and each dependency of which no edge was made, as the tool's id and the reason.

    A dependency gives another tool's true name or id. It means, whichever there is first: the tool
    of that name at the same agent; the tool of that id; the only tool of that name in the same
    catalog; the only tool of that name anywhere. A name that may mean several tools, none, or the
    tool itself makes no edge. Of equal edges (source, target, type, parameter) the first is kept.
    """
    every = tuple(tools)
    meanings = _Meanings.of(every)
    edges: dict[tuple[str, str, str, str | None], Edge] = {}
    unresolved: list[str] = []
    for tool in every:
        for dependency in tool.dependencies:
            name = dependency.tool.strip()
            ids = meanings.find(tool, name)
            if len(ids) == 1 and ids[0] != tool.id:
                edge = Edge(
                    tool.id,
                    ids[0],
                    dependency.type,
                    dependency.parameter or None,
                    dependency.reason,
                )
                edges.setdefault((edge.source, edge.target, edge.type, edge.parameter), edge)
            else:
                unresolved.append(f"{tool.id}: {_why(name, ids)}")
    return list(edges.values()), unresolved


@dataclass(frozen=True, slots=True)
class _Meanings:
    """Ids of tools by what a dependency may call them; a name within an agent, a catalog, or
    anywhere.
    """

    ids: frozenset[str]
    names: Mapping[tuple[str, ...], Sequence[str]]

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> "_Meanings":
        names: dict[tuple[str, ...], list[str]] = {}
        for tool in tools:
            for scope in ((tool.catalog, tool.agent), (tool.catalog,), ()):
                names.setdefault((*scope, tool.name), []).append(tool.id)
        return cls(frozenset(tool.id for tool in tools), names)

    def find(self, tool: Tool, name: str) -> Sequence[str]:
        """The ids of the tools that `name` may mean where `tool` says it."""
        if siblings := self.names.get((tool.catalog, tool.agent, name)):
            return siblings
        if name in self.ids:
            return (name,)
        return self.names.get((tool.catalog, name)) or self.names.get((name,), ())


def _why(name: str, ids: Sequence[str]) -> str:
    if not ids:
        return f"no tool has the name or id '{name}'"
    if len(ids) == 1:
        return "it names the tool itself"
    shown = ", ".join(ids[:NAMED]) + (", ..." if len(ids) > NAMED else "")
    return f"'{name}' may mean {len(ids)} tools: {shown}; declare the id of the one that is meant"
