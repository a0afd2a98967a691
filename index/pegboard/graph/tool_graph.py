"""The dependencies between the tools of a release: who needs whom, and what a tool needs in all.

Lumer et al., "Graph RAG-Tool Fusion", 2025: tools are nodes, and an edge says that its source
depends on its target, in one of four ways (section 3.1.3). Search takes what a tool needs by a
depth-first traversal (section 3.2, algorithm 1)."""

from collections.abc import Callable, Collection, Iterable
from typing import get_args

from pegboard.records import DependencyType, Edge, EdgeOrigin

ORIGINS: tuple[EdgeOrigin, ...] = get_args(EdgeOrigin)
DIRECT: frozenset[DependencyType] = frozenset(
    {"tool-directly-depends-on", "parameter-directly-depends-on"}
)

DEPENDENCY_LIMIT = 10
"""Dependencies of one tool that a traversal gives, unless it is told otherwise."""


class ToolGraph:
    """Who depends on whom. Immutable; threads may share one.

    Args:
        edges: in the order in which catalogs declare them; inferred ones come behind, direct ones
            first, then the most certain. An edge of a tool to itself is left out.
            Targets that no release has stay.

    Example:
        >>> need = "tool-directly-depends-on"
        >>> graph = ToolGraph([Edge("price", "ticker", need), Edge("ticker", "wifi", need)])
        >>> [edge.target for edge in graph.dependencies("price")]
        ['ticker', 'wifi']
    """

    __slots__ = ("_from", "_to", "edges")

    def __init__(self, edges: Iterable[Edge]) -> None:
        self.edges: tuple[Edge, ...] = tuple(
            sorted((edge for edge in edges if edge.source != edge.target), key=_place)
        )
        self._from = _by(self.edges, [edge.source for edge in self.edges])
        self._to = _by(self.edges, [edge.target for edge in self.edges])

    def __len__(self) -> int:
        """How many edges there are."""
        return len(self.edges)

    def __contains__(self, tool: object) -> bool:
        """Whether a tool depends on another, or another on it."""
        return tool in self._from or tool in self._to

    def __repr__(self) -> str:
        return f"ToolGraph({len(self)} edges)"

    def edges_from(self, tool: str) -> tuple[Edge, ...]:
        """What a tool depends on by itself."""
        return self._from.get(tool, ())

    def edges_to(self, tool: str) -> tuple[Edge, ...]:
        """What depends on a tool by itself."""
        return self._to.get(tool, ())

    def dependencies(
        self,
        tool: str,
        limit: int | None = DEPENDENCY_LIMIT,
        origins: Collection[EdgeOrigin] = ORIGINS,
        passes: Callable[[str], bool] | None = None,
    ) -> list[Edge]:
        """What a tool needs, and what that needs in turn, depth first: for each tool the edge by
        which it was reached.

        That is `DFS(t, KG) up to d_limit` in line 15 of algorithm 1, before anything that is needed
        later is looked at. No tool comes twice, and the tool itself never; cycles end where they
        began.

        Args:
            limit: the most dependencies given; None for all of them.
            origins: which edges count.
            passes: asked about the id of every dependency; one that does not pass is left out, and
                so is what only it needs.
        """
        reached: list[Edge] = []
        seen = {tool}
        walk = [iter(self._from.get(tool, ()))]
        while walk and (limit is None or len(reached) < limit):
            edge = next(walk[-1], None)
            if edge is None:
                walk.pop()
                continue
            if edge.target in seen or edge.origin not in origins:
                continue
            if passes is not None and not passes(edge.target):
                continue
            seen.add(edge.target)
            reached.append(edge)
            walk.append(iter(self._from.get(edge.target, ())))
        return reached


def _place(edge: Edge) -> tuple[bool, bool, float]:
    return (
        (True, edge.type not in DIRECT, -edge.confidence)
        if edge.origin != "declared"
        else (False, False, 0.0)
    )


def _by(edges: Iterable[Edge], keys: Iterable[str]) -> dict[str, tuple[Edge, ...]]:
    groups: dict[str, list[Edge]] = {}
    for key, edge in zip(keys, edges, strict=True):
        groups.setdefault(key, []).append(edge)
    return {key: tuple(group) for key, group in groups.items()}
