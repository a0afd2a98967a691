"""Collisions of vectors (Kamiński and others, "Too Many Tools, Too Much Confusion?", 4.5): how near
the tools of a board lie to each other in each of its indexes. The paper shows them in pictures;
here they are counted.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.llm.boards import benchmarks_of, index_files
from benchmarks.llm.measured import Experiment, Measured, MoreTable, Places
from benchmarks.run import open_boards
from pegboard.encoders import DEFAULT_ENCODER, load_encoder
from pegboard.evaluation.pools import vectors_of_tools
from pegboard.evaluation.searcher import Searcher
from pegboard.llm.recorded import ReplyFolder

NEAR = (0.8, 0.9, 0.95)
"""Cosines above which the nearest other tool counts as near."""
COLLISION = 0.95
"""Cosine above which two tools count as colliding."""


def measure_collisions(experiment: Experiment, places: Places) -> Measured:
    """Return a line for each board and index; nothing where replies are missing."""
    encoder = load_encoder(DEFAULT_ENCODER)
    lines: list[list[str]] = []
    for benchmark in benchmarks_of(experiment, places):
        for file in index_files(experiment, places):
            folder = places.boards / f"{benchmark.name}@{file.name}"
            for name, board in open_boards(file.applied_to(benchmark), folder, encoder).items():
                title = name if benchmark.name == "real" else benchmark.name
                lines += ([title, *cells] for cells in _lines(board, file.names))
    if places.missing == "write" and ReplyFolder(places.replies).open_requests():
        return Measured()
    header = [
        *("tools of", "texts", "tools", "cosine of the nearest other, mean"),
        *(f"above {cosine:g}" for cosine in NEAR),
        f"pairs above {COLLISION:g}",
    ]
    return Measured(more=[MoreTable(header, lines)])


def _lines(board: Searcher, indexes: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of each index of a board."""
    tools = sorted(board.names.catalogs)
    for index in indexes:
        vectors = vectors_of_tools(board.loaded, index, tools)
        nearest, pairs = collisions(np.concatenate([vectors[tool][:1] for tool in tools]))
        yield [
            "none" if index == "nothing" else index,
            str(len(tools)),
            f"{nearest.mean():.3f}",
            *(f"{(nearest > cosine).mean():.3f}" for cosine in NEAR),
            str(pairs),
        ]


def collisions(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], int]:
    """Return the cosine of each tool's nearest other, and the number of pairs above `COLLISION`.

    Args:
        vectors: one unit vector for each tool, of shape (tools, dimensions).
    """
    wide = vectors.astype(np.float64)
    cosines = wide @ wide.T
    pairs = int((cosines[np.triu_indices(len(wide), 1)] > COLLISION).sum())
    np.fill_diagonal(cosines, -1.0)
    return cosines.max(axis=1), pairs
