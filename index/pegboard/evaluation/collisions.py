"""Tools that look alike to an index: pairs whose vectors lie so close together that a search can
hardly tell one from the other.

"Too Many Tools, Too Much Confusion?" (Kamiński et al., 2026) calls these collisions, and finds that
recall falls with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError
from pegboard.search.cosine import BLOCK_SCORES, group_cosines
from pegboard.search.lance_index import LanceIndex
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import COSINE_DIGITS, MemoryIndex
from pegboard.store.database import sql_literals

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

READ_AT_ONCE = 1_000
"""Tools that one condition names."""
SHOWN = 200
"""Pairs that are listed; all are counted."""


@dataclass(frozen=True, slots=True)
class Collisions:
    """The pairs of tools of an index whose cosine is `least` or more.

    Attributes:
        tools: how many tools the index has.
        pairs: the closest, two ids and a cosine, highest first; at most `SHOWN`.
        total: how many pairs there are in all.
        colliding: the ids of all tools that are in such a pair.
    """

    least: float
    tools: int
    pairs: tuple[tuple[str, str, float], ...]
    total: int
    colliding: frozenset[str] = frozenset()

    @property
    def density(self) -> float:
        """The share of all pairs of tools that collide; 0 for fewer than two tools."""
        possible = self.tools * (self.tools - 1) // 2
        return self.total / possible if possible else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; of the colliding tools only how many they are."""
        return {
            "least": self.least,
            "tools": self.tools,
            "total": self.total,
            "density": self.density,
            "colliding": len(self.colliding),
            "pairs": [
                {"first": first, "second": second, "cosine": cosine}
                for first, second, cosine in self.pairs
            ],
        }


def collisions(
    loaded: LoadedRelease,
    index: str | None = None,
    *,
    least: float = 0.9,
    block_scores: int = BLOCK_SCORES,
) -> Collisions:
    """The pairs of tools of an index whose vectors lie `least` or closer.

    Every pair is looked at, block by block: 20,000 tools with one vector each take seconds, and
    with six vectors each minutes.

    Args:
        index: the release's default if None.
        least: a cosine above 0, at most 1; cosines are rounded to five digits, as those of a
            search.
        block_scores: how many cosines are held at once, 4 bytes each.

    Raises:
        ConfigurationError: `least` is out of range.
        BoardNotFound: the release has no such index.
    """
    import numpy as np

    if not 0 < least <= 1:
        raise ConfigurationError(f"Expected a cosine above 0, at most 1 (got {least!r}).")
    ids, starts, matrix = tool_vectors(loaded, loaded.index_name(index))
    total, colliding = 0, np.zeros(len(ids), np.bool_)
    values, places = np.empty(0), np.empty((0, 2), np.int64)
    for at, cosines in group_cosines(matrix, starts, block_scores=block_scores):
        rows, columns = np.nonzero(cosines >= least - 10.0**-COSINE_DIGITS)
        near = np.round(cosines[rows, columns].astype(np.float64), COSINE_DIGITS)
        # Without a tool beside itself, and without each pair a second time.
        chosen = (near >= least) & (columns > rows)
        found = np.stack([rows[chosen], columns[chosen]], axis=1) + at
        total += len(found)
        colliding[found.ravel()] = True
        values, places = np.append(values, near[chosen]), np.concatenate([places, found])
        order = np.lexsort((places[:, 1], places[:, 0], -values))[:SHOWN]
        values, places = values[order], places[order]
    pairs = tuple(
        (ids[first], ids[second], cosine)
        for cosine, (first, second) in zip(values.tolist(), places.tolist(), strict=True)
    )
    alike = frozenset(ids[place] for place in np.flatnonzero(colliding).tolist())
    return Collisions(least, len(ids), pairs, total, alike)


def tool_vectors(
    loaded: LoadedRelease, name: str, chosen: Sequence[str] | None = None
) -> "tuple[list[str], NDArray[np.int64], NDArray[np.float32]]":
    """The ids of an index's tools in order, the first row of each, and the unit vectors.

    Args:
        chosen: only these tools; None for all.

    Returns: ids, rows, and vectors of shape (rows, dimensions).
    """
    import numpy as np

    rows = _vector_rows(loaded.index(name), chosen)
    tools = np.array(rows.column("tool").to_pylist(), dtype=np.str_)
    column = rows.column("vector").combine_chunks()
    flat = column.flatten().to_numpy(zero_copy_only=False)
    matrix = flat.reshape(rows.num_rows, column.type.list_size).astype(np.float32, copy=False)
    order = np.argsort(tools, kind="stable")
    ids, starts = np.unique(tools[order], return_index=True)
    return ids.tolist(), starts.astype(np.int64), matrix[order]


def _vector_rows(index: MemoryIndex | LanceIndex, chosen: Sequence[str] | None) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(index, MemoryIndex):
        return index.rows if chosen is None else index.rows.filter(pc.field("tool").isin(chosen))
    columns = ["tool", "vector"]
    if chosen is None:
        return index.table.read(columns)
    parts = (chosen[at : at + READ_AT_ONCE] for at in range(0, len(chosen), READ_AT_ONCE))
    wheres = (f"tool IN ({sql_literals(part) or 'NULL'})" for part in parts)
    return pa.concat_tables([index.table.read(columns, where) for where in wheres])
