"""The ranker: a linear model over the features of a candidate, whose score is the log-odds that the
tool fits the request.

The weights that ship with the library (`default.json`) are fitted by `python -m
benchmarks.train_ranker` on the development halves of public benchmarks and on real catalogs. A
release may have its own, in its manifest under `indexes.<name>.ranker`.
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
from pegboard.ranker.features import FEATURES, Candidates, feature_matrix
from pegboard.search.ranking import Ranked

RANKER_VERSION = 1
"""Changes when the features do."""
DIGITS = 5


@dataclass(frozen=True, slots=True)
class Ranker:
    """Weights by feature, and a bias.

    Attributes:
        weights: in the order of `FEATURES`.
        bias: makes the score a log-odds: 0 is as likely as not.
        thresholds: probabilities by name: `accept_95` is reached by the best hit of 95 % of the
            requests with an answer that it was fitted on; below `nothing_fits` nothing fits.
    """

    weights: tuple[float, ...]
    bias: float
    thresholds: Mapping[str, float]

    def rank(self, request: str, found: Candidates) -> list[Ranked]:
        """Return all candidates, best first; equal scores by id. A score is the log-odds that the
        tool fits, rounded.
        """
        if not found.tools:
            return []
        scores = feature_matrix(found, request_actions(request)) @ self.weights + self.bias
        rows = zip(found.tools, scores.tolist(), strict=True)
        ranked = [Ranked(tool, round(score, DIGITS), "") for tool, score in rows]
        return sorted(ranked, key=lambda row: (-row.score, row.tool))

    def contributions(self, request: str, found: Candidates) -> dict[str, dict[str, float]]:
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
            "bias": self.bias,
            "thresholds": thresholds,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Ranker":
        """Return the ranker of such JSON values. Raises ContractMismatch for other features than
        this version's.
        """
        if values.get("version") != RANKER_VERSION or set(values["weights"]) != set(FEATURES):
            raise ContractMismatch(
                f"The index's ranker is of version {values.get('version')}; this library reads "
                f"{RANKER_VERSION}. Use the pegboard version that the release was made with, or "
                "build the release again."
            )
        weights = tuple(float(values["weights"][name]) for name in FEATURES)
        return cls(weights, float(values["bias"]), dict(values["thresholds"]))


@cache
def default_ranker() -> Ranker:
    """Return the ranker that ships with the library."""
    text = resources.files("pegboard.ranker").joinpath("default.json").read_text("utf-8")
    return Ranker.from_dict(json.loads(text))


def logistic(log_odds: float) -> float:
    """Return the probability of a log-odds, rounded."""
    small = exp(-abs(log_odds))
    return round(1 / (1 + small) if log_odds >= 0 else small / (1 + small), DIGITS)
