"""The vectors of an index's tools, from memory or from the table of a large release."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.search.lance_index import LanceIndex
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import MemoryIndex
from pegboard.store.database import sql_literals

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

READ_AT_ONCE = 1_000
"""Tools that one condition names."""


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
