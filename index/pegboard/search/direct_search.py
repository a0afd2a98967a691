"""One search of one index, as `Board.search` makes it: a request in words, or a vector that the
caller encoded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import QueryError
from pegboard.hits import Hit
from pegboard.search.filters import Filter
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.ranking import MODES, Mode, Ranked, convex_combination, hybrid_depth
from pegboard.search.text import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Direct:
    """What a caller of `Board.search` asked for: see there."""

    query: "str | Sequence[float] | NDArray[np.floating]"
    k: int
    mode: Mode
    index: str | None
    where: Mapping[str, str | Sequence[str]] | None
    vector: "Sequence[float] | NDArray[np.floating] | None"


def search_directly(loaded: LoadedRelease, asked: Direct, vectors: QueryVectors) -> list[Hit]:
    """The hits of one search. Raises as `Board.search` does."""
    query, k, mode = asked.query, asked.k, asked.mode
    words = query if isinstance(query, str) else ""
    given = asked.vector if isinstance(query, str) else query
    if not isinstance(query, str) and mode == "hybrid":
        mode = "vector"
    if mode not in MODES:
        raise QueryError(f"There is no mode '{mode}'. Expected one of: {', '.join(MODES)}.")
    if k < 1:
        raise QueryError(f"k is {k}; expected the number of tools wanted, 1 or more.")
    if mode == "text" and not isinstance(query, str):
        raise QueryError(
            "Mode 'text' searches words, but the query is a vector. Give the request as text."
        )
    name = loaded.index_name(asked.index)
    narrowed = loaded.filter(asked.where)
    if given is None and not words.strip():
        return []
    depth = hybrid_depth(k) if mode == "hybrid" else k
    return _hits(loaded, _rankings(loaded, name, mode, words, given, depth, narrowed, vectors), k)


def _rankings(
    loaded: LoadedRelease,
    index: str,
    mode: Mode,
    words: str,
    given: "Sequence[float] | NDArray[np.floating] | None",
    depth: int,
    where: Filter | None,
    vectors: QueryVectors,
) -> dict[str, list[Ranked]]:
    searched = loaded.index(index)
    if mode == "text":
        return {"text": searched.text(tokenize(words), depth, where)}
    unit = vectors.unit(loaded, index, words, given)
    if mode == "vector":
        return {"vector": searched.vector(unit, depth, where)}
    vector, text = searched.both(unit, tokenize(words), depth, where)
    return {"vector": vector, "text": text}


def _hits(loaded: LoadedRelease, rankings: Mapping[str, Sequence[Ranked]], k: int) -> list[Hit]:
    if len(rankings) == 1:
        (ranking,) = rankings.values()
        best = [(row.tool, row.score) for row in ranking[:k]]
    else:
        best = convex_combination(rankings["vector"], rankings["text"])[:k]
    why: dict[str, dict[str, dict[str, Any]]] = {}
    for name, ranking in rankings.items():
        for rank, row in enumerate(ranking, start=1):
            why.setdefault(row.tool, {})[name] = {
                "rank": rank,
                "score": row.score,
                "part": row.part,
            }
    tools = loaded.tools([tool for tool, _ in best])
    release = loaded.release.id
    return [
        Hit(tools[tool], loaded.agents[tools[tool].agent], score, why[tool], release)
        for tool, score in best
        if tool in tools
    ]
