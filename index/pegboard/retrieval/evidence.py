"""What speaks for each tool that a search found, in measures that can be compared between requests.

The score of a ranking cannot: the best of a hybrid ranking has about 1 whatever was asked, and BM25
grows with the length of the request. A cosine can. So can BM25 divided by the root of the number of
the request's different words: on three boards, against requests of three other benchmarks, both
together let through 32 % of what has no answer where the cosine alone lets through 44 %, at 95 % of
what has one (`benchmarks/performance/abstention.py`). The length of the request as a measure of its
own says more, but only where requests with and without an answer differ in length, which is no
reason to refuse one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from pegboard.search.ranking import Ranked
from pegboard.search.text import tokenize

NOT_NEAR = -1.0
"""The least cosine there is."""


def searched_as(modes: Collection[str]) -> str:
    """How a search in those modes, or with rankings of those names, is calibrated: `hybrid`,
    `vector` or `text`.
    """
    return next(iter(modes)) if len(modes) == 1 else "hybrid"


@dataclass(frozen=True, slots=True)
class Measures:
    """A tool's cosine, and its BM25 divided by the root of the number of different words; 0.0 where
    nothing was searched that way.
    """

    cosine: float
    words: float


@dataclass(frozen=True, slots=True)
class SearchEvidence:
    """What one query found in one index.

    Attributes:
        vector: the ranking by cosine, best first; None if vectors were not searched.
        text: the ranking by BM25, best first; None if words were not searched.
        words: how many different words the query has (see `text.tokenize`).
    """

    vector: Sequence[Ranked] | None
    text: Sequence[Ranked] | None
    words: int

    @classmethod
    def of(cls, query: str, rankings: Mapping[str, Sequence[Ranked]]) -> "SearchEvidence":
        """What the rankings by `vector`, by `text` or by both say of a query."""
        return cls(rankings.get("vector"), rankings.get("text"), len(set(tokenize(query))))

    @property
    def mode(self) -> str:
        """How it was searched: `hybrid`, `vector` or `text`."""
        return "text" if self.vector is None else "vector" if self.text is None else "hybrid"

    def searched_by(self, mode: str) -> "SearchEvidence":
        """What of this a search in one mode would have."""
        return replace(
            self,
            vector=None if mode == "text" else self.vector,
            text=None if mode == "vector" else self.text,
        )

    def without(self, tools: Collection[str]) -> "SearchEvidence":
        """What the query would find if those tools were not there."""

        def left(ranking: Sequence[Ranked] | None) -> list[Ranked] | None:
            return None if ranking is None else [row for row in ranking if row.tool not in tools]

        return replace(self, vector=left(self.vector), text=left(self.text))

    def measures(self) -> Mapping[str, Measures]:
        """The measures of every tool that was found, in no order.

        A tool that only its words found gets the cosine of the last that the vectors found, which
        its own does not exceed."""
        length = sqrt(max(self.words, 1))
        bm25 = {row.tool: row.score / length for row in self.text or ()}
        cosines = {row.tool: row.score for row in self.vector or ()}
        unseen = 0.0 if self.vector is None else min(cosines.values(), default=NOT_NEAR)
        return {
            tool: Measures(cosines.get(tool, unseen), bm25.get(tool, 0.0))
            for tool in dict.fromkeys((*cosines, *bm25))
        }
