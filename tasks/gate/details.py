"""All that a gate measured, as a JSON file of the lake: for reports, for the command line, and for
people who look closer.

lake/gates/<release>-<digest>.json   named in the manifest of the release, under `gate.details`
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pegboard.canonical import digest
from pegboard.errors import StoreError
from pegboard.evaluation.intervals import interval
from pegboard.evaluation.measures import Measure, per_query
from pegboard.evaluation.results import Evaluation, QueryResult
from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import Release
from pegboard.tokens import prompt_tokens
from tasks.gate.lost import Lost
from tasks.gate.verdict import places_by
from tasks.lake.files import Lake

FOLDER = "gates"
CURVE = 20
"""The largest k of the curve of recall over k; so many tools are asked for at least."""
WORST = 20
"""Queries that are told as the worst ones."""
SHOWN = 10


def read_details(uri: str, release: Release) -> dict[str, Any] | None:
    """All that the gate of a release of the board at `uri` measured; None without a gate, or if the
    file was pruned.
    """
    path = release.manifest.get("gate", {}).get("details")
    return Lake(uri).read_json(path) if path else None


def write_details(lake: Lake, release: str, details: Mapping[str, Any]) -> tuple[str, str]:
    """Store the details, and return their path and since when they are so.

    What was measured and decided before in the same way is not written again, and keeps its time.
    """
    path = f"{FOLDER}/{release}-{digest(details)}.json"
    try:
        known = lake.read_json(path)
    except (StoreError, ValueError):
        known = None
    if isinstance(known, dict) and "at" in known:
        return path, str(known["at"])  # pyright: ignore[reportUnknownArgumentType]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    lake.write_json(path, {**details, "at": at, "details": path})
    return path, at


def group_rows(
    ours: Evaluation, theirs: Evaluation | None, by: Literal["kind", "catalog"]
) -> list[dict[str, Any]]:
    """The measures of each kind of query, or of each catalog, with its name under `kind` or
    `catalog`.
    """
    groups = places_by(by, ours.results, theirs.results if theirs is not None else ())
    named = {"strategy": ours.strategy, "index": ours.index, "encoder": ours.encoder}
    return [
        {by: name, **named, "measure": str(measure), **interval(values[places]).to_dict()}
        for name, places in groups.items()
        for measure, values in ours.values.items()
    ]


def curve_of(ours: Evaluation, loaded: LoadedRelease) -> list[dict[str, Any]]:
    """Recall among the first k for k up to `CURVE`, each with the mean number of tokens that the
    first k tools are in a prompt, about.
    """
    measures = [Measure("Recall", k) for k in range(1, CURVE + 1)]
    needed = [one.needed.labels for one in ours.results]
    recall = per_query(measures, needed, [one.ranking() for one in ours.results])
    tokens = _tokens(ours.results, loaded)
    return [
        {
            "strategy": ours.strategy,
            "index": ours.index,
            "k": k,
            "measure": "Recall",
            **interval(recall[measure]).to_dict(),
            "tokens": tokens[k - 1],
        }
        for k, measure in enumerate(measures, start=1)
    ]


def worst_of(ours: Evaluation, by: Measure) -> list[dict[str, Any]]:
    """The queries with the least value of a measure, worst first; none that have the greatest."""
    values = [float(value) for value in ours.values[by]]
    order = sorted(range(len(values)), key=lambda at: (values[at], -_depth(ours.results[at]), at))
    return [
        {
            "query": one.query.query,
            "id": one.query.id,
            "needed": list(one.query.tools),
            "ranks": one.ranks(),
            "found": [tool.id for tool in one.retrieved[: by.k or 5]],
            "value": values[at],
        }
        for at in order[:WORST]
        if values[at] < 1
        for one in [ours.results[at]]
    ]


def won_values(won: Sequence[Lost]) -> dict[str, Any]:
    """How many queries were won, and the first of them."""
    return {"count": len(won), "first": [one.to_dict() for one in won[:SHOWN]]}


def _depth(answer: QueryResult) -> int:
    """The rank of the last tool that was found; a tool that was not counts as behind all others."""
    return max((10**6 if rank is None else rank for rank in answer.ranks().values()), default=0)


def _tokens(answers: Sequence[QueryResult], loaded: LoadedRelease) -> list[float]:
    import numpy as np

    ids = {tool.id for result in answers for tool in result.retrieved[:CURVE]}
    sizes = prompt_tokens(loaded, ids)
    table = np.zeros((len(answers), CURVE))
    for row, answer in enumerate(answers):
        for place, one in enumerate(answer.retrieved[:CURVE]):
            table[row, place] = sizes.get(one.id, 0)
    return [round(float(mean), 1) for mean in table.cumsum(axis=1).mean(axis=0)]
