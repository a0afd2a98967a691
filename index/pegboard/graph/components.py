"""Strongly connected components of a directed graph."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node")


def strong_components(
    roots: Iterable[Node], successors: Callable[[Node], Iterable[Node]]
) -> Iterator[list[Node]]:
    """Yield the strongly connected components reachable from the roots, each after its successors.

    Tarjan, "Depth-first search and linear graph algorithms", 1972, without recursion, since paths
    may be long.
    """
    numbers: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    pending: dict[Node, None] = {}
    walk: list[tuple[Node, Iterator[Node]]] = []

    def enter(node: Node) -> None:
        numbers[node] = lowest[node] = len(numbers)
        pending[node] = None
        walk.append((node, iter(successors(node))))

    for root in roots:
        if root not in numbers:
            enter(root)
        while walk:
            node, targets = walk[-1]
            target = next(
                (item for item in targets if item not in numbers or item in pending), None
            )
            if target is None:
                walk.pop()
                if walk:
                    lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    yield _take_until(pending, node)
            elif target in numbers:
                lowest[node] = min(lowest[node], numbers[target])
            else:
                enter(target)


def _take_until(pending: dict[Node, None], first: Node) -> list[Node]:
    """Take the nodes that were entered since `first`, and it."""
    members: list[Node] = []
    while not members or members[-1] != first:
        members.append(pending.popitem()[0])
    return members
