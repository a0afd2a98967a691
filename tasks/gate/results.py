"""What gates keep in the lake: their details, for reports and the command line, and the results of
golden queries, so that nothing is searched twice.

lake/gates/<release>-<digest>.json    named in the manifest of the release, under `gate.details`
lake/gates/answers/<digest>.parquet   for a release, a system and queries: the tools retrieved for
                                      each query, and those it needs

Results of another version of the library are replaced by a new search; they serve where that
search fails, because an encoder is gone."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from pegboard.canonical import digest
from pegboard.errors import PegboardError, StoreError
from pegboard.evaluation.golden import GoldenQuery, Needed
from pegboard.evaluation.systems import Advance, QueryResult, RetrievedTool, System
from pegboard.store.releases import Release
from tasks.lake.files import Lake

FOLDER = "gates"
ANSWERS = f"{FOLDER}/answers"


class LakeResults:
    """Results in the lake, by system, queries and depth."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def path(self, system: System, queries: Sequence[GoldenQuery]) -> str:
        """Return the path in the lake of the results."""
        key = digest(*system.key, [query.to_dict() for query in queries])
        return f"{ANSWERS}/{key}.parquet"

    def search(
        self, system: System, queries: Sequence[GoldenQuery], depth: int, advance: Advance
    ) -> Sequence[QueryResult]:
        """Return the stored results, or search and store them.

        Results of another version of the library serve where the search fails, because an encoder
        is gone or a model cannot be reached; without any, its error is raised.
        """
        results = self.load(system, queries, depth)
        if results is None:
            try:
                results = system.search(queries, depth, advance)
            except PegboardError:
                results = self.load(system, queries, depth, stale=True)
                if results is None:
                    raise
            else:
                self.save(system, queries, depth, results)
                return results
        advance(len(queries))
        return results

    def load(
        self, system: System, queries: Sequence[GoldenQuery], depth: int, *, stale: bool = False
    ) -> Sequence[QueryResult] | None:
        """Return the results; None if there are none, or if they are damaged.

        Args:
            stale: accept results of another version of the library, and deeper ones.
        """
        try:
            rows = self._lake.read(self.path(system, queries)).rows(named=True)
        except StoreError:
            return None
        if len(rows) != len(queries):
            return None
        current = all((row["by"], row["depth"]) == (version("pegboard"), depth) for row in rows)
        if not (current or (stale and all(row["depth"] >= depth for row in rows))):
            return None
        return [_result(query, row) for query, row in zip(queries, rows, strict=True)]

    def save(
        self,
        system: System,
        queries: Sequence[GoldenQuery],
        depth: int,
        results: Sequence[QueryResult],
    ) -> None:
        """Keep the results, as those of this version of the library."""
        import polars as pl

        schema = {
            "found": pl.List(pl.String),
            "scores": pl.List(pl.Float64),
            "probabilities": pl.List(pl.Float64),
            "needed": pl.String,
            "by": pl.String,
            "depth": pl.Int32,
        }
        path, made = self.path(system, queries), {"by": version("pegboard"), "depth": depth}
        frame = pl.DataFrame([{**_row(result), **made} for result in results], schema=schema)
        self._lake.delete(path)  # those of another version or depth, or damaged ones
        self._lake.write(path, frame)


def _row(result: QueryResult) -> dict[str, Any]:
    tools = {name: sorted(ids) for name, ids in result.needed.tools.items()}
    needed = {"tools": tools, "unknown": list(result.needed.unknown)}
    return {
        "found": [tool.id for tool in result.retrieved],
        "scores": [tool.score for tool in result.retrieved],
        "probabilities": [tool.probability for tool in result.retrieved],
        "needed": json.dumps(needed, ensure_ascii=False),
    }


def _result(query: GoldenQuery, row: Mapping[str, Any]) -> QueryResult:
    needed = json.loads(row["needed"])
    tools = {name: frozenset(ids) for name, ids in needed["tools"].items()}
    retrieved = map(RetrievedTool, row["found"], row["scores"], row["probabilities"])
    return QueryResult(query, Needed(tools, tuple(needed["unknown"])), tuple(retrieved))


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
