"""What a score means: the probability that a request has an answer on this board, and when to say
that nothing fits.

A calibration is made for one index of one release (`tasks/calibrate.py`), from requests that the
board answers and requests that it does not, and stands in the manifest under
`indexes.<name>.calibration`. For each mode of searching it is one logistic curve over the measures
of a tool (`evidence.py`): the probability that a request whose best tool looks like this one has an
answer (Platt, "Probabilistic outputs for support vector machines", 1999). The probability of a
request is that of its best tool. No weight is negative: a tool that is nearer is never less
probable.

A probability is as good as the requests it was made from are like those to come. Where those
without an answer were made by leaving out the right tools of those with one, what is next best is
often nearly right, so that unrelated requests are less probable than it says."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp
from typing import Any

from pegboard.errors import ContractMismatch, QueryError
from pegboard.retrieval.evidence import Measures, SearchEvidence, searched_as
from pegboard.search.ranking import Ranked

CALIBRATION_VERSION = 1
"""Changes when the measures do: a curve over other measures means something else."""
MIN_REQUESTS = 30
"""Requests of either kind below which a calibration is chance: of 30, the worst two decide which
threshold lets 95 % through."""
DIGITS = 5


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
    words)), see `Measures`.

    `thresholds` are by name: `accept_95` lets 95 % of the requests with an answer through.
    """

    bias: float
    cosine: float
    words: float
    thresholds: Mapping[str, Threshold]

    def probability(self, measures: Measures) -> float:
        """The probability that a request whose best tool has these measures has an answer."""
        odds = self.bias + self.cosine * measures.cosine + self.words * measures.words
        return round(1 / (1 + exp(-odds)) if odds >= 0 else 1 - 1 / (1 + exp(odds)), DIGITS)


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
        """Whether it says what a search in these modes means."""
        return searched_as(modes) in self.curves

    def probabilities(
        self, query: str, rankings: Mapping[str, Sequence[Ranked]]
    ) -> dict[str, float]:
        """The probability of every tool that was found, most probable first; the first is that of
        the request as a whole.

        Args:
            query: what was searched for.
            rankings: what was found by `vector`, by `text` or by both.

        Raises:
            QueryError: there is no curve for how it was searched.
        """
        found = SearchEvidence.of(query, rankings)
        curve = self._curve(found.mode)
        scored = {tool: curve.probability(measures) for tool, measures in found.measures().items()}
        return dict(sorted(scored.items(), key=lambda pair: (-pair[1], pair[0])))

    def answers(self, query: str, rankings: Mapping[str, Sequence[Ranked]]) -> float:
        """The probability that the request has an answer on this board; 0.0 if nothing was
        found.
        """
        return max(self.probabilities(query, rankings).values(), default=0.0)

    def thresholds(self, modes: Collection[str]) -> dict[str, float]:
        """The probability of every threshold of a search in these modes, by name. Raises QueryError
        if there is no curve for it.
        """
        return {
            name: one.probability
            for name, one in self._curve(searched_as(modes)).thresholds.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, as a manifest holds them."""
        return {"version": CALIBRATION_VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibration":
        """The calibration of such JSON values. Raises ContractMismatch if it is over other measures
        than this version's.
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
                {name: Threshold(**one) for name, one in curve["thresholds"].items()},
            )
            for mode, curve in values["curves"].items()
        }
        counts = {
            name: values[name] for name in ("answerable", "unanswerable", "left_out", "share")
        }
        return cls(curves=curves, **counts)

    def _curve(self, mode: str) -> Curve:
        if mode not in self.curves:
            known = ", ".join(sorted(self.curves)) or "none"
            raise QueryError(
                f"The index is not calibrated for mode '{mode}', but for: {known}. Search in one "
                f"of those."
            )
        return self.curves[mode]
