"""One search of one index, as `Board.search` makes it, for a request in words or a vector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import QueryError
from pegboard.hits import Hit
from pegboard.search.arguments import check_arguments
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.ranking import Mode, ScoredTool, check_mode, hybrid_depth

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """The arguments of `Board.search`; see there."""

    query: "str | Sequence[float] | NDArray[np.floating]"
    k: int
    mode: Mode
    index: str | None
    where: Mapping[str, str | Sequence[str]] | None
    vector: "Sequence[float] | NDArray[np.floating] | None"

    def __post_init__(self) -> None:
        query: Any = self.query
        texts = (query,) if query is None or isinstance(query, str) else ()
        check_arguments(k=self.k, index=self.index, texts=texts)
        check_mode(self.mode)


def search_one(
    loaded: LoadedRelease, arguments: SearchArguments, vectors: QueryVectors
) -> list[Hit]:
    """Return the hits of one search. Raises as `Board.search` does."""
    query, k, mode = arguments.query, arguments.k, arguments.mode
    words = query if isinstance(query, str) else ""
    vector = arguments.vector if isinstance(query, str) else query
    if not isinstance(query, str) and mode == "hybrid":
        mode = "vector"
    if mode == "text" and not isinstance(query, str):
        raise QueryError("Mode 'text' searches words, but the query is a vector. Give it as text.")
    index, where = loaded.index_name(arguments.index), loaded.filter(arguments.where)
    if vector is None and not words.strip():
        return []
    searched = loaded.index(index)
    depth = hybrid_depth(k) if mode == "hybrid" else k
    rankings: dict[str, Sequence[ScoredTool]] = {}
    if mode == "text":
        rankings["text"] = searched.text(loaded.query_words(index, words), depth, where)
    else:
        unit = vectors.unit(loaded, index, words, vector)
        if mode == "vector":
            rankings["vector"] = searched.vector(unit, depth, where)
        else:
            both = searched.both(unit, loaded.query_words(index, words), depth, where)
            rankings["vector"], rankings["text"] = both.vector, both.text
            rankings["ranker"] = loaded.ranker(index).rank(words, both)
    return _hits(loaded, rankings, k, loaded.probabilities(index, words, rankings) or {})


def _hits(
    loaded: LoadedRelease,
    rankings: Mapping[str, Sequence[ScoredTool]],
    k: int,
    probabilities: Mapping[str, float],
) -> list[Hit]:
    """The best hits of the last ranking, with their ranks in all."""
    *_, last = rankings.values()
    best = [(row.tool, row.score) for row in last[:k]]
    why: dict[str, dict[str, dict[str, Any]]] = {}
    for scorer, ranking in rankings.items():
        for rank, row in enumerate(ranking, start=1):
            own = {"rank": rank, "score": row.score, "part": row.part}
            why.setdefault(row.tool, {})[scorer] = own
    tools = loaded.tools([tool for tool, _ in best])
    release = loaded.release.id
    return [
        Hit(
            tools[tool],
            loaded.agents[tools[tool].agent],
            score,
            why[tool],
            release,
            probabilities.get(tool),
        )
        for tool, score in best
        if tool in tools
    ]
