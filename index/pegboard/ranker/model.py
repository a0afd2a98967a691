"""The ranker: a linear model over the features of a candidate. Scores are comparable between
requests and are mapped to probabilities.

`python -m benchmarks train_ranker` fits the weights that ship with the library (`default.json`) for
each encoder, on the development halves of public benchmarks and on real catalogs. A search uses
the weights in the release's manifest, under `indexes.<name>.ranker`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from math import exp
from typing import Any

from pegboard.errors import ContractMismatch
from pegboard.ranker.actions import request_actions
from pegboard.ranker.features import FEATURES, Measures, feature_matrix
from pegboard.ranking import ScoredTool

RANKER_VERSION = 1
"""Raised when a feature changes its meaning. New features need no new version, since weights are
stored by feature name.
"""
NOTHING_FITS = "nothing_fits"
"""The name of the threshold of probability below which no tool fits."""
OTHERS = "local/all-MiniLM-L6-v2"
"""The encoder whose ranker is used for encoders without a ranker of their own."""
DIGITS = 5
"""Decimal digits of scores, contributions and probabilities."""
HALF = 0.5
"""Minimum share of legible texts for a ranker that uses vectors."""
QUESTIONS_SHIFT = 1.2
"""By how much the log odds are lowered in an index with written questions. Every request, whether
it has an answer or not, is then near to some question. On three real catalogs a shift of 1.4 to 1.7
keeps 98 % of the answerable requests above `nothing_fits`; this is a little less.
"""


@dataclass(frozen=True, slots=True)
class Ranker:
    """The weights of the features, and the logistic curve that maps a score to a probability.

    Attributes:
        weights: one weight per feature, in the order of `FEATURES`.
        slope, bias: a tool fits with the probability 1 / (1 + e^-(slope * score + bias)).
        thresholds: probabilities by name. The best hit of 95 % of the answerable training requests
            reaches `accept_95`; if the best hit is below `nothing_fits`, no tool fits.
    """

    weights: tuple[float, ...]
    slope: float
    bias: float
    thresholds: Mapping[str, float]

    def rank(self, request: str, measures: Measures) -> list[ScoredTool]:
        """Return all candidates, best first; ties are ordered by id. A score is the rounded
        weighted sum of the features.
        """
        if not measures.tools:
            return []
        scores = feature_matrix(measures, request_actions(request)) @ self.weights
        rows = zip(measures.tools, scores.tolist(), strict=True)
        ranked = [ScoredTool(tool, round(score, DIGITS)) for tool, score in rows]
        return sorted(ranked, key=lambda row: (-row.score, row.tool))

    def probability(self, score: float) -> float:
        """Return the rounded probability that a tool with this score fits."""
        return logistic(self.slope * score + self.bias)

    def with_written_questions(self) -> "Ranker":
        """Return the ranker of an index most of whose tools have questions by an LLM."""
        return replace(self, bias=self.bias - QUESTIONS_SHIFT)

    def contributions(self, request: str, measures: Measures) -> dict[str, dict[str, float]]:
        """Return each feature's part of the score of each candidate, by tool and feature."""
        products = feature_matrix(measures, request_actions(request)) * self.weights
        return {
            tool: {name: round(value, DIGITS) for name, value in zip(FEATURES, row, strict=True)}
            for tool, row in zip(measures.tools, products.tolist(), strict=True)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the ranker as JSON values, as in a manifest."""
        weights = dict(zip(FEATURES, self.weights, strict=True))
        thresholds = dict(self.thresholds)
        return {
            "version": RANKER_VERSION,
            "weights": weights,
            "slope": self.slope,
            "bias": self.bias,
            "thresholds": thresholds,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Ranker":
        """Return the ranker of a manifest's JSON values; features without a weight get 0. Raises
        ContractMismatch for unknown features or another version.
        """
        if values.get("version") != RANKER_VERSION or not set(values["weights"]) <= set(FEATURES):
            raise ContractMismatch(
                f"The index's ranker is of version {values.get('version')}; this library reads "
                f"{RANKER_VERSION}. Use the pegboard version that the release was made with, or "
                "build the release again."
            )
        weights = tuple(float(values["weights"].get(name, 0.0)) for name in FEATURES)
        return cls(
            weights, float(values["slope"]), float(values["bias"]), dict(values["thresholds"])
        )


def default_ranker(encoder: str = "", legible: float = 1.0) -> Ranker:
    """Return the ranker that ships with the library.

    Args:
        encoder: the name of the index's encoder. An encoder without a ranker of its own gets that
            of `OTHERS`, a general encoder.
        legible: the share of an index's texts that its encoder can read. Below `HALF`, the ranker
            uses words alone.
    """
    shipped = _shipped()
    return shipped["words"] if legible < HALF else shipped.get(encoder, shipped[OTHERS])


@cache
def _shipped() -> dict[str, Ranker]:
    text = resources.files("pegboard.ranker").joinpath("default.json").read_text("utf-8")
    return {name: Ranker.from_dict(values) for name, values in json.loads(text).items()}


def logistic(odds: float) -> float:
    """Return 1 / (1 + e^-odds), rounded."""
    power = exp(-abs(odds))  # never overflows
    return round((1 if odds >= 0 else power) / (1 + power), DIGITS)
