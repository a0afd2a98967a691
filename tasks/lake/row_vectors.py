"""The vector of every row of an index: that of its text, or the unit sum of those of its texts."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.errors import PublishError
from pegboard.store.database import public_uri
from tasks.lake.files import Lake
from tasks.lake.vector_files import vector_pieces

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

TEXTS_AT_ONCE = 100_000
"""Texts whose vectors are in memory at once: some 500 MB at 384 dimensions, where 60,000 tools with
10 questions have 1 GB.
"""
NO_LENGTH = 1e-6
"""A sum of unit vectors that is shorter has no direction: its texts say the opposite of each other.
"""


def row_vectors(
    uri: str,
    fingerprint: str,
    rows: "pl.DataFrame",
    dimensions: int,
    texts_at_once: int = TEXTS_AT_ONCE,
) -> "NDArray[np.float32]":
    """The vectors of the rows, shape (rows, dimensions), in their order.

    A row of one text has exactly that text's vector. Where the vectors of several cancel out, the
    row has that of the first, which is its head document, and a warning names the row.

    Args:
        rows: with the columns `key` and `text_digests`.
        texts_at_once: those whose vectors are in memory together; changes no result.

    Raises PublishError if a vector is not in the lake.
    """
    import numpy as np

    lake, vectors, lost = Lake(uri), np.empty((rows.height, dimensions), np.float32), 0
    lists = rows.get_column("text_digests")
    for start, end in _pieces(lists.list.len().to_numpy(), texts_at_once):
        piece = rows.slice(start, end - start)
        flat, missing = _of_texts(lake, fingerprint, piece, dimensions)
        lost += missing
        if not lost:
            vectors[start:end] = _sums(flat, piece)
    if lost:
        raise PublishError(
            f"{lost} of {lists.list.len().sum()} vectors are not in the lake at "
            f"{public_uri(uri)}/lake, although they were "
            "encoded. Nothing was published. Was the lake changed by hand? Run again: what is "
            "missing is encoded anew."
        )
    return vectors


def _pieces(counts: "NDArray[np.integer]", most: int) -> Iterator[tuple[int, int]]:
    """Spans of rows with at most so many texts together, but at least one row each."""
    import numpy as np

    ends, start = np.cumsum(counts, dtype=np.int64), 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, before + most, side="right")), start + 1)
        yield start, end
        start = end


def _of_texts(
    lake: Lake, fingerprint: str, rows: "pl.DataFrame", dimensions: int
) -> "tuple[NDArray[np.float32], int]":
    """The vectors of all texts of the rows one after another, and how many the lake does not
    have.
    """
    import numpy as np
    import polars as pl

    texts = rows.select(text_digest="text_digests").explode("text_digest")
    pieces = list(vector_pieces(lake, fingerprint, texts.get_column("text_digest")))
    if not pieces:
        return np.empty((0, dimensions), np.float32), texts.height
    found = pl.concat(pieces)
    numbered = found.select("text_digest").with_row_index("place")
    places = texts.join(numbered, on="text_digest", how="left", maintain_order="left").get_column(
        "place"
    )
    matrix = found.get_column("vector").explode().to_numpy().reshape(found.height, dimensions)
    return matrix[places.drop_nulls().to_numpy()], places.null_count()


def _sums(flat: "NDArray[np.float32]", rows: "pl.DataFrame") -> "NDArray[np.float32]":
    import numpy as np

    counts = rows.get_column("text_digests").list.len().to_numpy().astype(np.int64)
    starts = np.cumsum(counts) - counts
    vectors = flat[starts]
    several = np.flatnonzero(counts > 1)
    # In double precision and in the order of the texts, so that every run has the same last bit.
    sums = vectors[several].astype(np.float64)
    for nth in range(1, counts.max(initial=0)):
        more = np.flatnonzero(counts[several] > nth)
        sums[more] += flat[starts[several[more]] + nth]
    lengths = np.linalg.norm(sums, axis=1)
    sound = lengths > NO_LENGTH
    vectors[several[sound]] = sums[sound] / lengths[sound, np.newaxis]
    if not sound.all():
        keys = rows.get_column("key").gather(several[~sound]).to_list()
        logger.warning(
            "The texts of %s rows cancel out, so that these have the vector of the first text "
            "alone: %s%s",
            len(keys),
            ", ".join(keys[:5]),
            " ..." if len(keys) > 5 else "",
        )
    return vectors
