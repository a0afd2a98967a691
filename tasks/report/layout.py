"""Where the landmarks of a map were placed, in the lake: a map changes no more than its tools do.

maps/<digest>    tool, vector (a digest of it, to two digits), x, y; `maps/latest` names the newest

While most landmarks of the newest map are still there with the same vectors, they keep their
places, and nothing is laid out."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from tasks.lake.files import Lake
from tasks.lake.row_sets import latest_rows, point_to, readable, write_rows
from tasks.report.vectors import choose_evenly

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Project = Callable[[NDArray[np.float32]], NDArray[np.float64]]

POINTER = "maps/latest"
MOST = 0.8
"""Of the landmarks: as long as so many are left, none is chosen anew."""
FEW = 10
"""Fewer points are shown by their two principal components, which take no time."""


def landmarks_of(
    lake: Lake,
    ids: Sequence[str],
    vectors: "NDArray[np.float32]",
    count: int,
    project: "Project",
    *,
    store: bool,
) -> "tuple[list[int], NDArray[np.float64]]":
    """Return which tools are landmarks, as sorted places in `ids`, and their coordinates.

    Args:
        vectors: of the tools, shape (tools, dimensions).
        count: how many landmarks there are to be, evenly over the agents.
        project: lays out vectors in the plane.
        store: remember a new layout for the next map.
    """
    import polars as pl

    chosen = sorted(choose_evenly(ids, count))
    if len(chosen) < FEW:
        return chosen, project(vectors[chosen])
    known = _known(lake, ids, vectors)
    if known.height >= MOST * len(chosen):
        return known.get_column("place").to_list(), known.select("x", "y").to_numpy()
    places = project(vectors[chosen])
    rows = _rows(ids, vectors, chosen).with_columns(
        pl.Series("x", places[:, 0]), pl.Series("y", places[:, 1])
    )
    if store:
        path = f"maps/{digest(rows.rows())}"
        point_to(lake, POINTER, write_rows(lake, path, "tool", rows.drop("place")).path)
    return chosen, places


def _known(lake: Lake, ids: Sequence[str], vectors: "NDArray[np.float32]") -> "pl.DataFrame":
    """The tools whose vectors are as on the newest map, in order: place, x, y."""
    import polars as pl

    newest = latest_rows(lake, POINTER)
    stored = readable(lake, newest, ["tool", "vector", "x", "y"]) if newest else None
    if stored is None:
        return pl.DataFrame(schema={"place": pl.Int64, "x": pl.Float64, "y": pl.Float64})
    landmarks = frozenset(stored.get_column("tool"))
    own = _rows(ids, vectors, [at for at, tool in enumerate(ids) if tool in landmarks])
    return own.join(stored, on=["tool", "vector"]).sort("place")


def _rows(
    ids: Sequence[str], vectors: "NDArray[np.float32]", places: Sequence[int]
) -> "pl.DataFrame":
    import numpy as np
    import polars as pl

    rounded = np.round(vectors[list(places)] * 100).astype(np.int8)
    digests = [hashlib.sha256(row.tobytes()).hexdigest() for row in rounded]
    columns = {"place": list(places), "tool": [ids[at] for at in places], "vector": digests}
    schema = {"place": pl.Int64, "tool": pl.String, "vector": pl.String}
    return pl.DataFrame(columns, schema=schema)
