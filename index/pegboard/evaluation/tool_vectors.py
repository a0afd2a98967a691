"""The vectors of an index's tools, from memory or from the table of a large release; near tools."""

from typing import TYPE_CHECKING

from pegboard.search.cosine import cosines_with_group
from pegboard.search.lance_index import LanceIndex
from pegboard.search.loaded import LoadedRelease
from pegboard.search.memory import COSINE_DIGITS, MemoryIndex

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


class NearTools:
    """The tools near a tool by the vectors of an index; of several vectors of two tools the closest
    count.
    """

    def __init__(self, loaded: LoadedRelease, index: str) -> None:
        self._ids, self._starts, self._matrix = tool_vectors(loaded, index)
        self._places = {tool: place for place, tool in enumerate(self._ids)}

    def nearest(self, tool: str, count: int) -> list[str]:
        """Return the ids of the other tools that are nearest, the nearest first; equals by id."""
        import numpy as np

        place = self._places[tool]
        cosines = cosines_with_group(self._matrix, self._starts, place).astype(np.float64)
        order = np.argsort(-np.round(cosines, COSINE_DIGITS), kind="stable")
        return [self._ids[at] for at in order[: count + 1].tolist() if at != place][:count]


def _vector_rows(index: MemoryIndex | LanceIndex) -> "pa.Table":
    return index.rows if isinstance(index, MemoryIndex) else index.table.read(["tool", "vector"])
