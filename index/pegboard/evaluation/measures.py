"""Measures of retrieval by their names in the field: `Recall@5`, `nDCG@10`, `mAP@10`, `MRR`, ...

Computed by ir-measures; recall, nDCG, average precision, reciprocal rank and precision are those of
trec_eval. `str(measure)` is the same text in Python, on the command line, in JSON and on pages:
`F1@5`, `Recall`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.evaluation.intervals import evaluation_module

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ranking = Sequence[tuple[str, float]]
"""The ranking of a query: labels with scores, best first; no label twice."""

KINDS: dict[str, str] = {
    "Recall": "the share of the needed tools that is among the first k",
    "Complete": "1 where all needed tools are among the first k, else 0",
    "Hit": "1 where a needed tool is among the first k, else 0",
    "Precision": "the share of the first k that is needed; of k, even if fewer were found",
    "F1": "the harmonic mean of Precision and Recall",
    "nDCG": "the discounted gain of the first k over that of the best possible order; a needed "
    "tool gains 1",
    "mAP": "the precision at the rank of each needed tool among the first k, summed, over the "
    "number of needed tools",
    "MRR": "one over the rank of the first needed tool among the first k",
}
"""The meaning of each kind of measure for one query; a system's value is the mean over all queries.
"""
STANDARD = (
    "Recall@1",
    "Recall@5",
    "Recall@10",
    "Complete@5",
    "nDCG@5",
    "nDCG@10",
    "mAP@10",
    "MRR@10",
    "Precision@5",
    "F1@5",
)
"""The default measures."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of measure: of the first `k`, or of all."""

    kind: str
    k: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}@{self.k}" if self.k else self.kind


_NAME = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?:\s*@\s*(\d{1,6}))?")


def parse_measure(name: "str | Measure") -> Measure:
    """Return the measure of a name in upper or lower case: `recall@5` is `Recall@5`.

    Raises ConfigurationError with the valid kinds for any other name.
    """
    if isinstance(name, Measure):
        return name
    match = _NAME.fullmatch(name.strip())
    kinds = {kind.lower(): kind for kind in KINDS}
    kind = kinds.get(match[1].lower()) if match else None
    if match is None or kind is None or match[2] == "0":
        raise ConfigurationError(
            f"There is no measure '{name}'. Expected one of {', '.join(KINDS)}, optionally at a "
            f"cutoff, as in Recall@5."
        )
    return Measure(kind, int(match[2]) if match[2] else None)


def measures_of(names: "Sequence[str | Measure]") -> list[Measure]:
    """Parse the names of measures, each once. Raises ConfigurationError with all unknown names."""
    measures: dict[Measure, None] = {}
    problems: list[str] = []
    for name in names:
        try:
            measures[parse_measure(name)] = None
        except ConfigurationError as error:
            problems.append(str(error))
    if problems:
        raise ConfigurationError("\n".join(problems))
    return list(measures)


def per_query(
    measures: Sequence[Measure], needed: Sequence[Collection[str]], rankings: Sequence[Ranking]
) -> "dict[Measure, NDArray[np.float64]]":
    """Return each measure's value for each query, of shape (queries,).

    A query without results counts as 0.

    Args:
        needed: for each query the labels of the right tools; at least one.
        rankings: for each query the ranking, best first.

    Raises ConfigurationError if ir-measures is not installed.
    """
    library = evaluation_module("ir_measures", "ir-measures")
    if unanswerable := [index for index, labels in enumerate(needed) if not labels]:
        raise ConfigurationError(
            f"Queries {unanswerable[:5]} need no tool; retrieval measures are undefined for such "
            f"queries."
        )
    names = [str(index) for index in range(len(needed))]
    qrels = {name: dict.fromkeys(labels, 1) for name, labels in zip(names, needed, strict=True)}
    run = {
        name: {label: -float(rank) for rank, (label, _) in enumerate(ranking)}
        for name, ranking in zip(names, rankings, strict=True)
    }
    parts = {part: _of(library, part) for measure in measures for part in _parts(measure)}
    values = _calculated(library, parts, qrels, run)
    return {measure: _combined(measure, values) for measure in measures}


def _parts(measure: Measure) -> list[Measure]:
    """Return the measures of ir-measures that a measure is combined from."""
    kinds = {"F1": ("Precision", "Recall"), "Complete": ("Recall",)}.get(
        measure.kind, (measure.kind,)
    )
    return [Measure(kind, measure.k) for kind in kinds]


def _of(library: Any, measure: Measure) -> Any:
    unbounded = {
        "Recall": "SetR",
        "Precision": "SetP",
        "mAP": "AP",
        "MRR": "RR",
        "nDCG": "nDCG",
        "Hit": "Success",
    }
    at_cutoff = {**unbounded, "Recall": "R", "Precision": "P"}
    if measure.k is not None:
        return getattr(library, at_cutoff[measure.kind]) @ measure.k
    if measure.kind == "Hit":  # ir-measures has Success at a cutoff only
        return library.Success @ 1_000_000
    return getattr(library, unbounded[measure.kind])


def _calculated(
    library: Any,
    parts: Mapping[Measure, Any],
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
) -> "dict[Measure, NDArray[np.float64]]":
    import numpy as np

    values = {part: np.zeros(len(qrels)) for part in parts}
    by_measure = {str(measure): part for part, measure in parts.items()}
    for row in library.iter_calc(list(parts.values()), qrels, run) if qrels else ():
        values[by_measure[str(row.measure)]][int(row.query_id)] = row.value
    return values


def _combined(
    measure: Measure, parts: "Mapping[Measure, NDArray[np.float64]]"
) -> "NDArray[np.float64]":
    import numpy as np

    values = [parts[part] for part in _parts(measure)]
    if measure.kind == "Complete":
        recall = values[0]
        return (recall > 1 - 1e-9).astype(np.float64)
    if measure.kind == "F1":
        precision, recall = values
        total = precision + recall
        return np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    return values[0]
