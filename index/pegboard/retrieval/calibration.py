"""Calibration: the probability that a request has an answer on this board.

A calibration is fitted for one index of one release (`tasks/calibrate.py`), from requests that the
board answers and requests that it does not, and is stored in the manifest under
`indexes.<name>.calibration`. For each search mode it is one logistic curve over the similarities
of a tool: the probability that a request whose best tool looks like this one has an answer (Platt,
"Probabilistic outputs for support vector machines", 1999). The probability of a request is that of
its best tool. No weight is negative: a nearer tool is never less probable.

A probability is as good as the calibration requests resemble later ones. Where those without an
answer were made by leaving out the right tools of those with one, the next best tool is often
nearly right, so unrelated requests are less probable than it says.

The score of a ranking cannot be compared between requests: the best of a hybrid ranking has about 1
whatever was asked, and BM25 grows with the length of the request. A cosine can. So can BM25 divided
by the root of the number of the request's distinct words: on three boards, against requests of
three other benchmarks, both together let through 32 % of what has no answer where the cosine alone
lets through 44 %, at 95 % of what has one; docs/results.md has what whole releases let through on
more boards, which is more. The length of the request as a measure of its own separates better, but
only where requests with and without an answer differ in length, which is no reason to refuse one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any

from pegboard.errors import ContractMismatch, QueryError
from pegboard.ranker.model import logistic
from pegboard.search.ranking import Ranked
from pegboard.search.text import DEFAULT_LANGUAGE, query_words

CALIBRATION_VERSION = 1
"""Changes when the measures do: a curve over other measures means something else."""
MIN_REQUESTS = 30
"""Requests of either kind below which a calibration is chance: of 30, the worst two decide which
threshold lets 95 % through."""
MIN_COSINE = -1.0


def searched_as(modes: Collection[str]) -> str:
    """Return how a search in those modes, or with rankings of those names, is calibrated: `hybrid`,
    `vector` or `text`.
    """
    return next(iter(modes)) if len(modes) == 1 else "hybrid"


@dataclass(frozen=True, slots=True)
class Similarity:
    """A tool's cosine, its BM25 divided by the root of the number of different words, and the
    ranker's log-odds; 0.0 where nothing was searched that way.
    """

    cosine: float
    words: float
    odds: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchEvidence:
    """What one query found in one index.

    Attributes:
        vector: the ranking by cosine, best first; None if vectors were not searched.
        text: the ranking by BM25, best first; None if words were not searched.
        words: how many different words were searched (see `text.query_words`).
        ranker: the ranking of a hybrid search, by log-odds; empty for other searches.
    """

    vector: Sequence[Ranked] | None
    text: Sequence[Ranked] | None
    words: int
    ranker: Sequence[Ranked] = ()

    @classmethod
    def of(
        cls,
        query: str,
        rankings: Mapping[str, Sequence[Ranked]],
        language: str = DEFAULT_LANGUAGE,
    ) -> "SearchEvidence":
        """Return what the rankings by `vector`, by `text` or by both say of a query, searched in an
        index of that language.
        """
        words = len(query_words(query, language))
        return cls(rankings.get("vector"), rankings.get("text"), words, rankings.get("ranker", ()))

    @property
    def mode(self) -> str:
        """How it was searched: `hybrid`, `vector` or `text`."""
        return "text" if self.vector is None else "vector" if self.text is None else "hybrid"

    def searched_by(self, mode: str) -> "SearchEvidence":
        """Return what of this a search in one mode would have."""
        return replace(
            self,
            vector=None if mode == "text" else self.vector,
            text=None if mode == "vector" else self.text,
            ranker=self.ranker if mode == "hybrid" else (),
        )

    def without(self, tools: Collection[str]) -> "SearchEvidence":
        """Return what the query would find if those tools were not there."""

        def left(ranking: Sequence[Ranked] | None) -> list[Ranked] | None:
            return None if ranking is None else [row for row in ranking if row.tool not in tools]

        return replace(
            self, vector=left(self.vector), text=left(self.text), ranker=left(self.ranker) or ()
        )

    def similarities(self) -> Mapping[str, Similarity]:
        """Return the measures of every tool that was found, in no order.

        A tool that only its words found gets the cosine of the last that the vectors found, which
        its own does not exceed.
        """
        length = sqrt(max(self.words, 1))
        bm25 = {row.tool: row.score / length for row in self.text or ()}
        cosines = {row.tool: row.score for row in self.vector or ()}
        unseen = 0.0 if self.vector is None else min(cosines.values(), default=MIN_COSINE)
        odds = {row.tool: row.score for row in self.ranker}
        return {
            tool: Similarity(cosines.get(tool, unseen), bm25.get(tool, 0.0), odds.get(tool, 0.0))
            for tool in dict.fromkeys((*cosines, *bm25))
        }


@dataclass(frozen=True, slots=True)
class Threshold:
    """A probability from which on a request counts as answerable, and the share that is let through
    of those it was made from.

    Attributes:
        probability: 0 to 1.
        answerable: the share of the requests with an answer that reach it.
        unanswerable: the share of those without one that reach it, wrongly.
    """

    probability: float
    answerable: float
    unanswerable: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The logistic curve of one mode: 1 / (1 + e^-(bias + cosine * a tool's cosine + words * its
    words + odds * its log-odds)), see `Similarity`.

    `thresholds` are by name: `accept_95` lets 95 % of the requests with an answer through.
    """

    bias: float
    cosine: float
    words: float
    thresholds: Mapping[str, Threshold]
    odds: float = 0.0

    def probability(self, similarity: Similarity) -> float:
        """Return the probability that a request whose best tool measures so has an answer."""
        measured = self.cosine * similarity.cosine + self.words * similarity.words
        return logistic(self.bias + measured + self.odds * similarity.odds)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of one index, by mode.

    Attributes:
        curves: by `hybrid`, `vector`, `text`.
        answerable: the number of requests with an answer that it was made from.
        unanswerable: the number of those without one.
        left_out: whether those without one are those with one, their right tools left out.
        share: the share of all requests that is taken to have an answer.
    """

    curves: Mapping[str, Curve]
    answerable: int
    unanswerable: int
    left_out: bool
    share: float

    def knows(self, modes: Collection[str]) -> bool:
        """Return whether it says what a search in these modes means."""
        return searched_as(modes) in self.curves

    def probabilities(
        self,
        query: str,
        rankings: Mapping[str, Sequence[Ranked]],
        language: str = DEFAULT_LANGUAGE,
    ) -> dict[str, float]:
        """Return the probability of every tool that was found, most probable first; the first is
        that of the request as a whole.

        Args:
            query: what was searched for.
            rankings: what was found by `vector`, by `text` or by both.
            language: of the index.

        Raises:
            QueryError: there is no curve for how it was searched.
        """
        evidence = SearchEvidence.of(query, rankings, language)
        curve = self._curve(evidence.mode)
        scored = {tool: curve.probability(own) for tool, own in evidence.similarities().items()}
        return dict(sorted(scored.items(), key=lambda pair: (-pair[1], pair[0])))

    def answers(self, query: str, rankings: Mapping[str, Sequence[Ranked]]) -> float:
        """Return the probability that the request has an answer on this board; 0.0 if nothing was
        evidence.
        """
        return max(self.probabilities(query, rankings).values(), default=0.0)

    def thresholds(self, modes: Collection[str]) -> dict[str, float]:
        """Return the probability of every threshold of a search in these modes, by name. Raises
        QueryError if there is no curve for it.
        """
        return {
            name: threshold.probability
            for name, threshold in self._curve(searched_as(modes)).thresholds.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, as a manifest holds them."""
        return {"version": CALIBRATION_VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibration":
        """Return the calibration of such JSON values. Raises ContractMismatch if it is over other
        measures than this version's.
        """
        if values.get("version") != CALIBRATION_VERSION:
            raise ContractMismatch(
                f"The index's calibration is of version {values.get('version')}; this library "
                f"reads {CALIBRATION_VERSION}. "
                "Use the pegboard version that the release was made with, or build the release "
                "again."
            )
        curves = {
            mode: Curve(
                float(curve["bias"]),
                float(curve["cosine"]),
                float(curve["words"]),
                {name: Threshold(**threshold) for name, threshold in curve["thresholds"].items()},
                float(curve["odds"]),
            )
            for mode, curve in values["curves"].items()
        }
        counts = {
            name: values[name] for name in ("answerable", "unanswerable", "left_out", "share")
        }
        return cls(curves=curves, **counts)

    def _curve(self, mode: str) -> Curve:
        if mode not in self.curves:
            modes = ", ".join(sorted(self.curves)) or "none"
            raise QueryError(
                f"The index is not calibrated for mode '{mode}', but for: {modes}. Search in one "
                f"of those."
            )
        return self.curves[mode]
