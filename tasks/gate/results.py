"""What gates keep in the lake: their details, for reports and the command line, and the results of
golden queries, so that nothing is searched twice.

lake/gates/<release>-<digest>.json    named in the manifest of the release, under `gate.details`
lake/gates/answers/<digest>.parquet   for a release, a system and queries: the tools retrieved for
                                      each query"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import StoreError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.systems import Advance, QueryResult, ReleaseSystem, RetrievedTool
from pegboard.store.releases import Release
from tasks.lake.files import Lake

if TYPE_CHECKING:
    import polars as pl

FOLDER = "gates"
ANSWERS = f"{FOLDER}/answers"


def search_once(
    lake: Lake, system: ReleaseSystem, queries: Sequence[GoldenQuery], depth: int, advance: Advance
) -> tuple[Sequence[QueryResult], str]:
    """Return the results of golden queries, and their path in the lake, where they are stored.

    They are searched unless this version of the library has stored them, undamaged.
    """
    key = [query.to_dict() for query in queries]
    path = f"{ANSWERS}/{digest(version('pegboard'), depth, *system.key, key)}.parquet"
    try:
        rows = lake.read(path).rows()
    except StoreError:
        results = system.search(queries, depth, advance)
        lake.delete(path)  # a damaged one
        lake.write(path, _frame(results))
        return results, path
    advance(len(queries))
    resolve = system.searcher.names.resolve
    return [
        QueryResult(query, resolve(query.tools), tuple(map(RetrievedTool, *row)))
        for query, row in zip(queries, rows, strict=True)
    ], path


def _frame(results: Sequence[QueryResult]) -> "pl.DataFrame":
    import polars as pl

    numbers = pl.List(pl.Float64)
    schema = {"found": pl.List(pl.String), "scores": numbers, "probabilities": numbers}
    rows = [
        {
            "found": [tool.id for tool in result.retrieved],
            "scores": [tool.score for tool in result.retrieved],
            "probabilities": [tool.probability for tool in result.retrieved],
        }
        for result in results
    ]
    return pl.DataFrame(rows, schema=schema)


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
