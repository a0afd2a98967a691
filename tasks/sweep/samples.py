"""Nested samples of a catalog: retrieval among 100, 500, 1,000, all tools (Toolshed, 4.2).

A small random sample would have all tools of hardly any query. So the tools are put in an order in
which tools of whole golden queries alternate with other tools, at a fixed share, and a sample is
the beginning of that order. In a small sample the tools that queries need are therefore denser than
in the catalog, and queries that need few tools are a little more frequent: to measure the effect of
size alone, compare the same queries in both samples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pegboard.canonical import digest
from pegboard.evaluation.golden import Needed

SIZES = (100, 500, 1_000, 5_000, 10_000)
MAX_SHARE = 0.8
"""A sample with more of the catalog than this is not worth measuring beside the whole."""


@dataclass(frozen=True, slots=True)
class CatalogSample:
    """Some tools of a catalog, and the golden queries all of whose tools are among them.

    Attributes:
        seed: 0 and up; that of the whole catalog is the first.
        tools: their ids, sorted.
        queries: places of the queries in the golden file, rising.
        share: how much of the sample are tools that golden queries need.
    """

    size: int
    seed: int
    tools: tuple[str, ...]
    queries: tuple[int, ...]
    share: float

    @property
    def digest(self) -> str:
        """Equal for the same tools."""
        return digest(self.tools)


def default_sizes(tools: int) -> list[int]:
    """Return the sizes of samples for a number of tools; the last is the whole catalog."""
    return [*(size for size in SIZES if size < MAX_SHARE * tools), tools]


def nested_samples(
    tools: Iterable[str], needed: Sequence[Needed], sizes: Iterable[int], seed: int, share: float
) -> list[CatalogSample]:
    """Return the samples of one seed, smallest first, each within the next.

    Args:
        tools: the ids of the whole catalog.
        needed: what each golden query needs of it.
        share: see `catalog_order`.
    """
    order = catalog_order(tools, needed, seed, share)
    golden = {tool for query in needed for ids in query.tools.values() for tool in ids}
    samples: list[CatalogSample] = []
    for size in sorted(set(sizes)):
        ids = frozenset(order[:size])
        queries = tuple(place for place, one in enumerate(needed) if _has_all(ids, one))
        share_of_golden = len(ids & golden) / max(len(ids), 1)
        samples.append(CatalogSample(size, seed, tuple(sorted(ids)), queries, share_of_golden))
    return samples


def catalog_order(
    tools: Iterable[str], needed: Sequence[Needed], seed: int, share: float
) -> list[str]:
    """Return all tools in the order in which samples take them.

    Args:
        seed: equal seeds give equal orders everywhere. A tool that is added or removed leaves the
            order of the others nearly as it is.
        share: of every beginning, the share of tools of golden queries, all tools of one query
            together, until there are none left.
    """
    shuffled = sorted(tools, key=lambda tool: digest(seed, tool))
    rank = {tool: place for place, tool in enumerate(shuffled)}
    queries = sorted(needed, key=lambda query: digest(seed, _names(query.tools)))
    golden = list(
        dict.fromkeys(
            _first(ids, rank) for query in queries for _, ids in sorted(query.tools.items())
        )
    )
    others = [tool for tool in shuffled if tool not in set(golden)]
    order: list[str] = []
    taken = 0
    while len(order) < len(shuffled):
        due = taken < share * (len(order) + 1)
        if (due and taken < len(golden)) or len(order) - taken >= len(others):
            order.append(golden[taken])
            taken += 1
        else:
            order.append(others[len(order) - taken])
    return order


def _first(ids: Iterable[str], rank: Mapping[str, int]) -> str:
    """Of several tools with one name the same one for all queries."""
    return min(ids, key=lambda tool: rank[tool])


def _has_all(sample: frozenset[str], needed: Needed) -> bool:
    answerable = bool(needed.tools) and not needed.unknown
    return answerable and all(ids & sample for ids in needed.tools.values())


def _names(tools: Mapping[str, frozenset[str]]) -> list[list[str]]:
    return sorted(sorted(ids) for ids in tools.values())
