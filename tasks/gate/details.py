"""The details of a gate, a JSON file of the lake: for reports and the command line.

lake/gates/<release>-<digest>.json   named in the manifest of the release, under `gate.details`
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pegboard.canonical import digest
from pegboard.errors import StoreError
from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.measures import Measure
from pegboard.store.releases import Release
from tasks.lake.files import Lake

FOLDER = "gates"
DEPTH = 20
"""At least so many tools are retrieved, which tell how far behind a lost tool is."""
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


def worst_queries(evaluation: Evaluation, measure: Measure) -> list[dict[str, Any]]:
    """Return the queries with the lowest values of a measure, without those that have 1."""
    return [row for row in evaluation.worst(MAX_WORST, measure) if row["value"] < 1]
