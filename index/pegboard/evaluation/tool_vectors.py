"""The vectors of an index's tools, from memory or from the table of a large release."""

from typing import TYPE_CHECKING

from pegboard.search.lance_index import LanceIndex
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import MemoryIndex

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


def tool_vectors(
    loaded: LoadedRelease, name: str
) -> "tuple[list[str], NDArray[np.int64], NDArray[np.float32]]":
    """The ids of an index's tools in order, the first row of each, and the unit vectors.

    Returns: ids, rows, and vectors of shape (rows, dimensions).
    """
    import numpy as np

    rows = _vector_rows(loaded.index(name))
    tools = np.array(rows.column("tool").to_pylist(), dtype=np.str_)
    column = rows.column("vector").combine_chunks()
    flat = column.flatten().to_numpy(zero_copy_only=False)
    matrix = flat.reshape(rows.num_rows, column.type.list_size).astype(np.float32, copy=False)
    order = np.argsort(tools, kind="stable")
    ids, starts = np.unique(tools[order], return_index=True)
    return ids.tolist(), starts.astype(np.int64), matrix[order]


def _vector_rows(index: MemoryIndex | LanceIndex) -> "pa.Table":
    return index.rows if isinstance(index, MemoryIndex) else index.table.read(["tool", "vector"])
