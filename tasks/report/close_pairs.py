"""The pairs of tools that an index can hardly tell apart, kept in the lake: after a change only the
tools that changed are compared with all.

collisions/tools-<digest>   tool, vectors (a digest of them)
collisions/pairs-<digest>   first, second, cosine

Both are named by the index's tools and vectors, and `collisions/latest` names the newest tools."""

import hashlib
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.evaluation.collisions import Collision, Collisions, collisions, tool_vectors
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import COSINE_DIGITS
from tasks.lake.files import Lake
from tasks.lake.row_sets import latest_rows, readable, store_latest

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

MOST_PAIRS = 100_000
"""Pairs that are kept; of an index with more, all tools are compared each time."""
MOST_CHANGED = 0.2
"""Of the tools: above, all are compared."""
BLOCK = 4_000_000
"""Cosines that are in memory at once, 4 bytes each."""
POINTER = "collisions/latest"


def close_pairs(
    lake: Lake, loaded: LoadedRelease, index: str, *, least: float, shown: int, store: bool
) -> Collisions:
    """Return the result of `pegboard.evaluation.collisions.collisions`.

    Args:
        store: keep the pairs for the next report.
    """
    import polars as pl

    ids, starts, matrix = tool_vectors(loaded, index)
    if not ids:
        return Collisions(least, 0, (), 0)
    rows = pl.DataFrame({"tool": ids, "vectors": _digests(starts, matrix)}, _TOOLS)
    pairs = _updated(lake, rows, starts, matrix, least)
    if pairs is None:
        found = collisions(loaded, index, least=least, shown=MOST_PAIRS)
        if found.total > MOST_PAIRS or not store:
            return _first(found, shown)
        pairs = _frame(found)
    if store:
        _store(lake, rows, pairs, least)
    pairs = pairs.sort(["cosine", "first", "second"], descending=[True, False, False])
    listed = tuple(Collision(*row) for row in pairs.head(shown).rows())
    colliding = frozenset([*pairs.get_column("first"), *pairs.get_column("second")])
    return Collisions(least, len(ids), listed, pairs.height, colliding)


_TOOLS = ("tool", "vectors")


def _first(found: Collisions, shown: int) -> Collisions:
    return Collisions(found.least, found.tools, found.pairs[:shown], found.total, found.colliding)


def _digests(starts: "NDArray[np.int64]", matrix: "NDArray[np.float32]") -> list[str]:
    """A digest of the vectors of each tool, whatever their order."""
    ends = [*starts[1:].tolist(), len(matrix)]
    spans = zip(starts.tolist(), ends, strict=True)
    texts = (b"".join(sorted(row.tobytes() for row in matrix[low:high])) for low, high in spans)
    return [hashlib.sha256(text).hexdigest() for text in texts]


def _updated(
    lake: Lake,
    rows: "pl.DataFrame",
    starts: "NDArray[np.int64]",
    matrix: "NDArray[np.float32]",
    least: float,
) -> "pl.DataFrame | None":
    """The pairs of the newest report, brought up to date; None without, or if much changed."""
    import polars as pl

    base = latest_rows(lake, f"{POINTER}-{least}")
    before = readable(lake, base, _TOOLS) if base else None
    stored = latest_rows(lake, f"{POINTER}-pairs-{least}")
    pairs = readable(lake, stored, ["first", "second", "cosine"]) if stored else None
    if base is None or stored is None or before is None or pairs is None:
        return None
    if _name(base.path) != _name(stored.path):
        return None  # a killed run stored one of the two
    same = rows.join(before, on=_TOOLS, how="semi").select("tool")
    if max(rows.height, before.height) - same.height > MOST_CHANGED * rows.height:
        return None
    fresh = rows.with_row_index("place").join(same, on="tool", how="anti").get_column("place")
    pairs = pairs.join(same, left_on="first", right_on="tool", how="semi")
    pairs = pairs.join(same, left_on="second", right_on="tool", how="semi")
    found = _pairs_with(fresh.to_list(), rows.get_column("tool").to_list(), starts, matrix, least)
    return None if pairs.height + found.height > MOST_PAIRS else pl.concat([pairs, found])


def _pairs_with(
    places: list[int],
    ids: list[str],
    starts: "NDArray[np.int64]",
    matrix: "NDArray[np.float32]",
    least: float,
) -> "pl.DataFrame":
    """The pairs of some tools, by their places, with all others."""
    import numpy as np

    ends = [*starts[1:].tolist(), len(matrix)]
    rows: dict[tuple[str, str], float] = {}
    for start in range(0, len(places), step := max(1, BLOCK // max(1, len(matrix)))):
        block = places[start : start + step]
        own = [matrix[starts[place] : ends[place]] for place in block]
        firsts = np.cumsum([0, *(len(several) for several in own)])[:-1]
        cosines = np.maximum.reduceat(np.concatenate(own) @ matrix.T, firsts, axis=0)
        cosines = np.maximum.reduceat(cosines, starts, axis=1).astype(np.float64)
        cosines = np.round(cosines, COSINE_DIGITS)
        for at, other in np.argwhere(cosines >= least).tolist():
            if other != block[at]:
                first, second = sorted((block[at], other))
                rows[ids[first], ids[second]] = float(cosines[at, other])
        if len(rows) > MOST_PAIRS:
            break
    return _pair_rows([(*pair, cosine) for pair, cosine in rows.items()])


def _frame(found: Collisions) -> "pl.DataFrame":
    return _pair_rows([(pair.first, pair.second, pair.cosine) for pair in found.pairs])


def _pair_rows(rows: list[tuple[str, str, float]]) -> "pl.DataFrame":
    import polars as pl

    schema = {"first": pl.String, "second": pl.String, "cosine": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _store(lake: Lake, rows: "pl.DataFrame", pairs: "pl.DataFrame", least: float) -> None:
    import polars as pl

    name = digest(least, rows.rows())
    keyed = pairs.with_columns(
        pl.concat_str("first", "second", separator="\n").alias("key"),
        pl.col("cosine").cast(pl.String).alias("digest"),
    )
    store_latest(
        lake,
        f"collisions/pairs-{name}",
        f"{POINTER}-pairs-{least}",
        "key",
        keyed,
        ["digest"],
    )
    store_latest(lake, f"collisions/tools-{name}", f"{POINTER}-{least}", "tool", rows, ["vectors"])


def _name(path: str) -> str:
    return path.rpartition("-")[2]
