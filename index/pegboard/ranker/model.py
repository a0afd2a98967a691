"""The ranker: a linear model over the features of a candidate. Scores can be compared between
requests, and give a probability.

The weights that ship with the library (`default.json`), by encoder, are fitted by `python -m
benchmarks train_ranker` on the development halves of public benchmarks and on real catalogs. Those
that a release is searched with are in its manifest, under `indexes.<name>.ranker`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import exp
from typing import Any

from pegboard.errors import ContractMismatch
from pegboard.ranker.actions import request_actions
from pegboard.ranker.features import FEATURES, Measures, feature_matrix
from pegboard.ranking import ScoredTool

RANKER_VERSION = 1
"""Changes when a feature of the same name means something else; others are known by name."""
NOTHING_FITS = "nothing_fits"
"""The threshold below which no tool fits."""
OTHERS = "local/all-MiniLM-L6-v2"
"""The encoder whose ranker serves encoders that have none of their own."""
DIGITS = 5
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Ranker:
    """Weights by feature, and the logistic curve that makes a score a probability.

    Attributes:
        weights: in the order of `FEATURES`.
        slope, bias: a tool fits with the probability 1 / (1 + e^-(slope * score + bias)).
        thresholds: probabilities by name: `accept_95` is reached by the best hit of 95 % of the
            requests with an answer that it was fitted on; below `nothing_fits` nothing fits.
    """

    weights: tuple[float, ...]
    slope: float
    bias: float
    thresholds: Mapping[str, float]

    def rank(self, request: str, found: Measures) -> list[ScoredTool]:
        """Return all candidates, best first; equal scores by id. A score is the weighted sum of the
        features, rounded.
        """
        if not found.tools:
            return []
        scores = feature_matrix(found, request_actions(request)) @ self.weights
        rows = zip(found.tools, scores.tolist(), strict=True)
        ranked = [ScoredTool(tool, round(score, DIGITS)) for tool, score in rows]
        return sorted(ranked, key=lambda row: (-row.score, row.tool))

    def probability(self, score: float) -> float:
        """Return the probability that a tool of that score fits, rounded."""
        return logistic(self.slope * score + self.bias)

    def contributions(self, request: str, found: Measures) -> dict[str, dict[str, float]]:
        """Return what each feature adds to the score of each candidate, by tool and feature."""
        added = feature_matrix(found, request_actions(request)) * self.weights
        return {
            tool: {name: round(value, DIGITS) for name, value in zip(FEATURES, row, strict=True)}
            for tool, row in zip(found.tools, added.tolist(), strict=True)
        }

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, as a manifest holds them."""
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
        """Return the ranker of such JSON values; features that came after it weigh nothing. Raises
        ContractMismatch for features that this version does not know.
        """
        if values.get("version") != RANKER_VERSION or not set(values["weights"]) <= set(FEATURES):
            raise ContractMismatch(
                f"The index's ranker is of version {values.get('version')}; this library reads "
                f"{RANKER_VERSION}. Use the pegboard version that the release was made with, or "
                "build the release again."
            )
        weights = tuple(float(values["weights"].get(name, 0.0)) for name in FEATURES)
        curve = float(values["slope"]), float(values["bias"])
        return cls(weights, *curve, dict(values["thresholds"]))


def default_ranker(encoder: str = "", legible: float = 1.0) -> Ranker:
    """Return the ranker that ships with the library.

    Args:
        encoder: the name of the index's encoder. One without a ranker of its own gets that of
            `OTHERS`, a general encoder.
        legible: the share of an index's texts that its encoder can read. Below a half, the ranker
            goes by words alone.
    """
    shipped = _shipped()
    return shipped["words"] if legible < HALF else shipped.get(encoder, shipped[OTHERS])


@cache
def _shipped() -> dict[str, Ranker]:
    text = resources.files("pegboard.ranker").joinpath("default.json").read_text("utf-8")
    return {name: Ranker.from_dict(values) for name, values in json.loads(text).items()}


def logistic(odds: float) -> float:
    """Return 1 / (1 + e^-odds), rounded."""
    small = exp(-abs(odds))
    return round((1 if odds >= 0 else small) / (1 + small), DIGITS)
