"""The searches of a strategy: all queries at once, in every index and mode that the strategy
names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.retrieval.parts import Fusion, Scored
from pegboard.search.filters import Filter
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.ranking import Mode, Ranked, convex_combination, hybrid_depth
from pegboard.search.text import tokenize


@dataclass(frozen=True, slots=True)
class Seen:
    """What the search of one query in one index found: by cosine under `vector`, by BM25 under
    `text`.
    """

    query: str
    index: str
    rankings: Mapping[str, Sequence[Ranked]]


@dataclass(frozen=True, slots=True)
class Searches:
    """How the queries of one strategy are searched in one release.

    Attributes:
        indexes: names of the release's indexes, one or more.
        modes: each gives a ranking for every query and index.
        fusion: makes one ranking of those, where there are several.
        k: the number of tools that the caller wants.
    """

    loaded: LoadedRelease
    vectors: QueryVectors
    indexes: Sequence[str]
    modes: Sequence[Mode]
    fusion: Fusion
    where: Filter | None
    k: int

    @property
    def ways(self) -> list[str]:
        """What the modes search by: `vector`, `text` or both."""
        modes = set(self.modes)
        return [way for way in ("vector", "text") if modes & {"hybrid", way}]

    def search(self, texts: Sequence[str], depth: int) -> list[list[Seen]]:
        """What every index finds for each text; each encoder is called once, and each index
        searched once in each way.

        Raises as `Board.search` does.
        """
        by_vector, by_text = "vector" in self.ways, "text" in self.ways
        n = max(depth, self.k, hybrid_depth(self.k) if "hybrid" in self.modes else 0)
        tokens = [tokenize(text) for text in texts] if by_text else []
        seen: list[list[Seen]] = [[] for _ in texts]
        if not texts:
            return seen
        for index in self.indexes:
            searched = self.loaded.index(index)
            rankings: dict[str, list[list[Ranked]]] = {}
            if by_vector:
                rankings["vector"] = searched.vectors(
                    self.vectors.units(self.loaded, index, texts), n, self.where
                )
            if by_text:
                rankings["text"] = searched.texts(tokens, n, self.where)
            for place, text in enumerate(texts):
                seen[place].append(
                    Seen(text, index, {way: found[place] for way, found in rankings.items()})
                )
        return seen

    def ranking(self, seen: Sequence[Seen], depth: int) -> list[Scored]:
        """One ranking of what was found for one query, of at most `depth` tools."""
        rankings = [_by_mode(one, mode) for one in seen for mode in self.modes]
        if len(rankings) == 1:
            return rankings[0][:depth]
        return self.fusion.fuse(rankings, [1.0] * len(rankings))[:depth]


def _by_mode(seen: Seen, mode: Mode) -> list[Scored]:
    if mode == "hybrid":
        pairs = convex_combination(seen.rankings["vector"], seen.rankings["text"])
    else:
        pairs = [(row.tool, row.score) for row in seen.rankings[mode]]
    return [Scored(tool, score) for tool, score in pairs]
