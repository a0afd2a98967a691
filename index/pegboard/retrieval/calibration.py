"""Calibration: the probability that a request has an answer on this board.

A hybrid search has one without it: the ranker's own (`pegboard/ranker/model.py`), fitted on many
catalogs. A calibration is fitted for one index of one release (`tasks/calibrate.py`), from requests
that the board answers and requests that it does not, and is stored in the manifest under
`indexes.<name>.calibration`. For each search mode it is one logistic curve over the score of a
tool: the probability that a request whose best tool scores so has an answer (Platt, "Probabilistic
outputs for support vector machines", 1999). The probability of a request is that of its best tool.
No slope is negative: a tool that scores more is never less probable.

A probability is as good as the calibration requests resemble later ones. Where those without an
answer were made by leaving out the right tools of those with one, the next best tool is often
nearly right, so unrelated requests are less probable than it says.

The scores are those of the ranker (hybrid), the cosine (vector), and BM25 divided by the root of
the number of the request's different words (text), since BM25 grows with the length of the request.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from pegboard.errors import ContractMismatch, QueryError
from pegboard.ranker.model import NOTHING_FITS, logistic
from pegboard.search.ranking import ScoredTool, searched_as
from pegboard.search.text import DEFAULT_LANGUAGE, query_words

CALIBRATION_VERSION = 2
"""Changes when the scores do: a curve over others means something else."""
MIN_REQUESTS = 30
"""Requests of either kind below which a calibration is chance: of 30, the worst two decide which
threshold lets 95 % through."""
LEAST = "accept_99"
"""The threshold below which nothing fits."""
Scores = Mapping[str, float]
"""By tool."""


def scores_by_mode(
    query: str,
    rankings: Mapping[str, Sequence[ScoredTool]],
    language: str = DEFAULT_LANGUAGE,
) -> dict[str, Scores]:
    """Return the scores that are calibrated, by mode, of what a query found.

    Args:
        rankings: by `vector`, `text` and `ranker`, those that there are.
        language: of the index.
    """
    scores: dict[str, Scores] = {}
    if "ranker" in rankings:
        scores["hybrid"] = {row.tool: row.score for row in rankings["ranker"]}
    if "vector" in rankings:
        scores["vector"] = {row.tool: row.score for row in rankings["vector"]}
    if "text" in rankings:
        length = sqrt(max(len(query_words(query, language)), 1))
        scores["text"] = {row.tool: row.score / length for row in rankings["text"]}
    return scores


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
    """The logistic curve of one mode: 1 / (1 + e^-(slope * a tool's score + bias)).

    `thresholds` are by name: `accept_95` lets 95 % of the requests with an answer through.
    """

    slope: float
    bias: float
    thresholds: Mapping[str, Threshold]

    def probability(self, score: float) -> float:
        """Return the probability that a request whose best tool scores so has an answer."""
        return logistic(self.slope * score + self.bias)


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
        rankings: Mapping[str, Sequence[ScoredTool]],
        language: str = DEFAULT_LANGUAGE,
    ) -> dict[str, float]:
        """Return the probability of every tool that was found, most probable first; the first is
        that of the request as a whole.

        Args:
            query: what was searched for.
            rankings: as in `scores_by_mode`.
            language: of the index.

        Raises:
            QueryError: there is no curve for how it was searched.
        """
        mode = searched_as(rankings)
        curve = self._curve(mode)
        scores = scores_by_mode(query, rankings, language)[mode]
        scored = {tool: curve.probability(score) for tool, score in scores.items()}
        return dict(sorted(scored.items(), key=lambda pair: (-pair[1], pair[0])))

    def answers(self, query: str, rankings: Mapping[str, Sequence[ScoredTool]]) -> float:
        """Return the probability that the request has an answer on this board; 0.0 if nothing was
        evidence.
        """
        return max(self.probabilities(query, rankings).values(), default=0.0)

    def thresholds(self, modes: Collection[str]) -> dict[str, float]:
        """Return the probability of every threshold of a search in these modes, by name. Raises
        QueryError if there is no curve for it.
        """
        thresholds = self._curve(searched_as(modes)).thresholds
        own = {name: threshold.probability for name, threshold in thresholds.items()}
        return own | {NOTHING_FITS: own[LEAST]} if LEAST in own else own

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, as a manifest holds them."""
        return {"version": CALIBRATION_VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibration":
        """Return the calibration of such JSON values. Raises ContractMismatch if it is over other
        scores than this version's.
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
                float(curve["slope"]),
                float(curve["bias"]),
                {name: Threshold(**threshold) for name, threshold in curve["thresholds"].items()},
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
