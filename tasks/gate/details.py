"""The details of a gate, a JSON file of the lake: for reports and the command line.

lake/gates/<release>-<digest>.json   named in the manifest of the release, under `gate.details`
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pegboard.canonical import digest
from pegboard.errors import StoreError
from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.intervals import interval
from pegboard.evaluation.measures import Measure, per_query
from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import Release
from pegboard.tokens import prompt_tokens
from tasks.lake.files import Lake

FOLDER = "gates"
MAX_K = 20
"""The largest k of the curve of recall over k; at least so many tools are retrieved."""
MAX_WORST = 20


def read_details(uri: str, release: Release) -> dict[str, Any] | None:
    """Return what the gate of a release measured; None without a gate, or if it was pruned.

    Args:
        uri: the board.
    """
    path = release.manifest.get("gate", {}).get("details")
    return Lake(uri).read_json(path) if path else None


def write_details(lake: Lake, release: str, details: Mapping[str, Any]) -> tuple[str, str]:
    """Store the details, and return their path and their time.

    Details that were stored before are not written again, and keep their time.
    """
    path = f"{FOLDER}/{release}-{digest(details)}.json"
    try:
        stored = lake.read_json(path)
    except StoreError:
        stored = None
    if isinstance(stored, dict) and "at" in stored:
        return path, str(stored["at"])  # pyright: ignore[reportUnknownArgumentType]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    lake.write_json(path, {**details, "at": at, "details": path})
    return path, at


def recall_curve(evaluation: Evaluation, loaded: LoadedRelease) -> list[dict[str, Any]]:
    """Return one row for each k up to `MAX_K`: recall, and the mean prompt tokens of k tools."""
    measures = [Measure("Recall", k) for k in range(1, MAX_K + 1)]
    needed = [result.needed.labels for result in evaluation.results]
    recall = per_query(measures, needed, [result.ranking() for result in evaluation.results])
    tokens = _mean_tokens(evaluation, loaded)
    return [
        {
            "strategy": evaluation.strategy,
            "index": evaluation.index,
            "k": k,
            "measure": "Recall",
            **interval(recall[measure]).to_dict(),
            "tokens": tokens[k - 1],
        }
        for k, measure in enumerate(measures, start=1)
    ]


def worst_queries(evaluation: Evaluation, measure: Measure) -> list[dict[str, Any]]:
    """Return the queries with the lowest values of a measure, without those that have 1."""
    return [row for row in evaluation.worst(MAX_WORST, measure) if row["value"] < 1]


def _mean_tokens(evaluation: Evaluation, loaded: LoadedRelease) -> list[float]:
    """The mean prompt tokens of the first k tools, for each k."""
    import numpy as np

    retrieved = [[tool.id for tool in result.retrieved[:MAX_K]] for result in evaluation.results]
    sizes = prompt_tokens(loaded, {tool for tools in retrieved for tool in tools})
    table = np.zeros((len(retrieved), MAX_K))
    for row, tools in enumerate(retrieved):
        table[row, : len(tools)] = [sizes.get(tool, 0) for tool in tools]
    return [round(float(mean), 1) for mean in table.cumsum(axis=1).mean(axis=0)]
