"""The vectors of an encoder as files of the lake: which texts they hold, reading some of them,
merging many small ones.

Every file has the columns `text_digest` and `vector`, and never changes. So what texts a file holds
is read once in a process; after that only the folder is listed, and files that another run added
are found. A file that another run merged into a larger
one may go away between listing and reading: then the folder is listed once more.
"""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.errors import PublishError, StoreError
from pegboard.store.database import public_uri
from tasks.lake.files import Lake

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

TIERS = ((1_000, 64), (16_000, 512))
"""Files with fewer texts than the first number are merged when there are more of them than the
second. Few are kept small, so that a nightly run does not write again what others wrote; few
thousands, because each is opened by every run."""
_seen: dict[tuple[str, str], "dict[str, pl.DataFrame]"] = {}
"""The texts of each file, by the lake and the encoder's folder: 64 bytes for each text."""


def known_texts(lake: Lake, fingerprint: str) -> "pl.DataFrame":
    """The digests of all texts whose vectors of that encoder are in the lake, in the column
    `text_digest`; some twice.
    """
    import polars as pl

    held = _held(lake, fingerprint).values()
    return pl.concat([pl.DataFrame(schema={"text_digest": pl.String}), *held])


def vector_pieces(lake: Lake, fingerprint: str, wanted: "pl.Series") -> "Iterator[pl.DataFrame]":
    """The rows (text_digest, vector) of the wanted texts, file by file, one for each text that the
    lake has.

    Raises StoreError if a file cannot be read.
    """
    import polars as pl

    missing = pl.DataFrame({"text_digest": wanted}, schema={"text_digest": pl.String}).unique()
    for again in (False, True):
        for path, texts in _held(lake, fingerprint).items():
            found = texts.join(missing, on="text_digest", how="semi")
            if not found.height:
                continue
            try:
                rows = (
                    lake.read(path)
                    .join(found, on="text_digest", how="semi")
                    .unique("text_digest", maintain_order=True)
                )
            except StoreError:
                if again or lake.exists(path):
                    raise
                continue  # merged into another one meanwhile, which the second listing shows
            missing = missing.join(found, on="text_digest", how="anti")
            yield rows
        if not missing.height:
            return


def merge_small_files(lake: Lake, fingerprint: str) -> None:
    """Merge small files if there are many. Those that were merged are deleted when what replaces
    them is there.
    """
    for texts, most in TIERS:
        held = {
            path: found.height
            for path, found in _held(lake, fingerprint).items()
            if found.height < texts
        }
        if len(held) > most:
            for group in _groups(held, TIERS[-1][0]):
                _merge(lake, fingerprint, group)


def _groups(held: dict[str, int], most: int) -> Iterator[list[str]]:
    """The files in groups of so many texts at most."""
    group, size = list[str](), 0
    for path, texts in held.items():
        if group and size + texts > most:
            yield group
            group, size = [], 0
        group.append(path)
        size += texts
    yield group


def _merge(lake: Lake, fingerprint: str, paths: list[str]) -> None:
    import polars as pl

    merged = pl.concat([lake.read(path) for path in paths]).unique(
        "text_digest", keep="first", maintain_order=True
    )
    merged = merged.sort("text_digest")
    name = f"{lake.vector_folder(fingerprint)}/{digest(fingerprint, merged.get_column('text_digest').to_list())}.parquet"
    lake.write(name, merged)
    for path in paths:
        if path != name:
            lake.delete(path)


def _held(lake: Lake, fingerprint: str) -> "dict[str, pl.DataFrame]":
    """The texts of every file that is there now, by its path."""
    folder = lake.vector_folder(fingerprint)
    before, now = _seen.get((lake.uri, folder), {}), dict[str, "pl.DataFrame"]()
    for path in lake.files(folder):
        try:
            now[path] = before[path] if path in before else lake.read(path, ["text_digest"])
        except StoreError:
            if lake.exists(path):
                raise
    _seen[lake.uri, folder] = now
    return now


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
