"""How one tool depends on another through others, and which tools need each other in a circle."""

from collections.abc import Iterator, Mapping
from itertools import islice

from pegboard.graph.components import strong_components
from pegboard.graph.tool_graph import ToolGraph
from pegboard.records import Edge

MOST_PATHS = 5


def explain_path(
    graph: ToolGraph, source: str, target: str, most: int = MOST_PATHS
) -> list[tuple[Edge, ...]]:
    """The shortest ways on which `source` depends on `target`, `most` of them at most; none if it
    does not.

    Returns:
        For each way its edges from `source` to `target`. Where a tool needs the next for several
        reasons, all of them follow one another. Ways are in the order in which the tools name their
        dependencies.
    """
    # Distances are counted from the target, so that every step from the source that lessens them is
    # on a shortest way.
    far = {target: 0}
    level = [target]
    distance = 0
    while level and source not in far:
        distance += 1
        above = (edge.source for tool in level for edge in graph.edges_to(tool))
        level = list(dict.fromkeys(tool for tool in above if tool not in far))
        far.update(dict.fromkeys(level, distance))
    return list(islice(_ways(graph, source, far), max(0, most))) if far.get(source) else []


def cycles(graph: ToolGraph) -> list[tuple[str, ...]]:
    """The groups of tools of which each needs all others, by itself or through others; the largest
    group first, each by id.

    These are the strongly connected components of more than one tool.
    """
    components = strong_components(
        graph.tools, lambda tool: (edge.target for edge in graph.edges_from(tool))
    )
    groups = [tuple(sorted(group)) for group in components if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), group))


def _ways(graph: ToolGraph, source: str, far: Mapping[str, int]) -> Iterator[tuple[Edge, ...]]:
    """All shortest ways, one by one; each step goes nearer, so none ends before the target."""
    way: list[list[Edge]] = []
    walk = [iter(_nearer(graph, source, far))]
    while walk:
        step = next(walk[-1], None)
        if step is None:
            walk.pop()
            del way[len(walk) - 1 :]
            continue
        del way[len(walk) - 1 :]
        way.append(step)
        if far[step[0].target]:
            walk.append(iter(_nearer(graph, step[0].target, far)))
        else:
            yield tuple(edge for edges in way for edge in edges)


def _nearer(graph: ToolGraph, tool: str, far: Mapping[str, int]) -> list[list[Edge]]:
    """The edges of a tool that lead nearer, those to the same tool together."""
    steps: dict[str, list[Edge]] = {}
    for edge in graph.edges_from(tool):
        if far.get(edge.target) == far[tool] - 1:
            steps.setdefault(edge.target, []).append(edge)
    return list(steps.values())
