"""The vectors of an encoder in the lake: which texts they cover, reading some, encoding the others,
merging small files, and the vector of every row of an index.

Every file has the columns `text_digest` and `vector`, and never changes. So the digests of a file
are read once in a process; after that only the folder is listed, which finds files of other runs. A
file that another run merged may be gone between listing and reading: then the folder is listed once
more.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.errors import PublishError, StoreError
from pegboard.store.database import public_uri
from tasks.lake.files import Lake
from tasks.runtime import progress

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

TIERS = ((1_000, 64), (16_000, 512))
"""(texts, files): files with fewer than `texts` texts are merged once there are more than `files`.
The limit for small files is low, so that a nightly run merges only its own; the one for larger
files bounds how many files each run opens."""
SHARD_TEXTS = 1_000
"""Texts in a shard. A killed run loses at most one, about two seconds of the embedded encoder."""
BATCH_TEXTS = 64
"""Texts between two advances of the progress display."""
MIN_LENGTH = 1e-6
"""Smallest norm of a sum of unit vectors that has a direction; in a shorter one the texts cancel
out.
"""
_cache: dict[tuple[str, str], "dict[str, pl.DataFrame]"] = {}
"""The digests of the texts in each file, by the lake and the encoder's folder. A text takes 64
bytes of memory.
"""


def known_texts(lake: Lake, fingerprint: str) -> "pl.DataFrame":
    """Return the digests of all texts that the encoder encoded, in `text_digest`; some twice."""
    import polars as pl

    files = _digests_by_file(lake, fingerprint).values()
    return pl.concat([pl.DataFrame(schema={"text_digest": pl.String}), *files])


def vector_pieces(lake: Lake, fingerprint: str, digests: "pl.Series") -> "Iterator[pl.DataFrame]":
    """Yield the rows (text_digest, vector) of these texts, file by file, each text once.

    Raises:
        StoreError: a file cannot be read.
    """
    import polars as pl

    missing = pl.DataFrame({"text_digest": digests}, schema={"text_digest": pl.String}).unique()
    for retry in (False, True):
        for path, texts in _digests_by_file(lake, fingerprint).items():
            hits = texts.join(missing, on="text_digest", how="semi")
            if not hits.height:
                continue
            try:
                rows = (
                    lake.read(path)
                    .join(hits, on="text_digest", how="semi")
                    .unique("text_digest", maintain_order=True)
                )
            except StoreError:
                if retry or lake.exists(path):
                    raise
                continue  # merged into another one meanwhile, which the second listing shows
            missing = missing.join(hits, on="text_digest", how="anti")
            yield rows
        if not missing.height:
            return


def vectors_of(
    lake: Lake, encoder: Encoder, texts: Sequence[str], *, step: str | None = "vectors"
) -> "NDArray[np.float32]":
    """Return the vectors of the texts, shape (len(texts), dimensions), in their order.

    Missing ones are encoded now, shard by shard, each durable in the lake when it is done.

    Args:
        texts: any; equal ones are encoded once.
        step: the name of the progress display, which appears only if a text has to be encoded;
            None for none.
    """
    import numpy as np

    rows: dict[str, int] = {}
    firsts = np.array(
        [rows.setdefault(digest(text), row) for row, text in enumerate(texts)], np.int64
    )
    vectors = np.empty((len(texts), encoder.dimensions), np.float32)
    missing = _fill_known(lake, encoder, rows, vectors)
    if missing and step:
        progress.start(step, len(missing))
    digests = list(missing)
    for start in range(0, len(digests), SHARD_TEXTS):
        shard = digests[start : start + SHARD_TEXTS]
        places = [missing[text] for text in shard]
        vectors[places] = encode_texts(encoder, [texts[place] for place in places], step)
        store_vectors(lake, encoder, shard, vectors[places])
    copies = np.flatnonzero(firsts != np.arange(len(texts)))
    vectors[copies] = vectors[firsts[copies]]
    return vectors


def encode_texts(encoder: Encoder, texts: Sequence[str], step: str | None) -> "NDArray[np.float32]":
    """Return the vectors of the texts in their order, encoded in batches of similar length."""
    import numpy as np

    vectors = np.empty((len(texts), encoder.dimensions), np.float32)
    by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for start in range(0, len(texts), BATCH_TEXTS):
        places = by_length[start : start + BATCH_TEXTS]
        vectors[places] = encoder.encode([texts[place] for place in places])
        if step:
            progress.advance(step, len(places))
    return vectors


def store_vectors(
    lake: Lake, encoder: Encoder, digests: Sequence[str], vectors: "NDArray[np.float32]"
) -> None:
    """Store the vectors of texts (by their digests) as one file of the lake."""
    import polars as pl

    frame = pl.DataFrame(
        {"text_digest": digests, "vector": vectors},
        schema={"text_digest": pl.String, "vector": pl.Array(pl.Float32, encoder.dimensions)},
    )
    lake.write(
        f"{lake.vector_folder(encoder.fingerprint)}/{digest(encoder.fingerprint, digests)}.parquet",
        frame,
    )


def merge_small_files(lake: Lake, fingerprint: str) -> None:
    """Merge small files if there are many; they are deleted once the merged file is written."""
    for max_texts, max_files in TIERS:
        small = {
            path: texts.height
            for path, texts in _digests_by_file(lake, fingerprint).items()
            if texts.height < max_texts
        }
        if len(small) > max_files:
            for group in _groups(small, TIERS[-1][0]):
                _merge(lake, fingerprint, group)


def row_vectors(
    uri: str, fingerprint: str, rows: "pl.DataFrame", dimensions: int
) -> "NDArray[np.float32]":
    """Return the vectors of the rows, shape (rows, dimensions), in their order.

    A row of one text has exactly that text's vector; a row of several has their normalised sum.
    Where they cancel out, the row has the vector of the first, its head document.

    Args:
        rows: with the column `text_digests`. All their texts are in memory at once, and
            all files that have some of them are read.

    Raises:
        PublishError: a vector is not in the lake.
    """
    text_vectors, missing = _text_vectors(Lake(uri), fingerprint, rows, dimensions)
    if missing:
        raise PublishError(
            f"{missing} of {len(text_vectors)} vectors are not in the lake at "
            f"{public_uri(uri)}/lake, although they were encoded. Nothing was published. Was the "
            f"lake changed by hand? Run again: what is missing is encoded again."
        )
    return _normalised_sums(text_vectors, rows)


def _fill_known(
    lake: Lake, encoder: Encoder, rows: dict[str, int], vectors: "NDArray[np.float32]"
) -> dict[str, int]:
    """Fill in the vectors that the lake has, file by file; returns the missing rows."""
    import polars as pl

    missing = dict(rows)
    for frame in vector_pieces(lake, encoder.fingerprint, pl.Series(list(rows), dtype=pl.String)):
        text_digests = frame.get_column("text_digest").to_list()
        places = [missing.pop(text_digest) for text_digest in text_digests]
        vectors[places] = (
            frame.get_column("vector").cast(pl.Array(pl.Float32, encoder.dimensions)).to_numpy()
        )
    return missing


def _groups(sizes: dict[str, int], limit: int) -> Iterator[list[str]]:
    """The files in groups of at most so many texts."""
    group: list[str] = []
    total = 0
    for path, texts in sizes.items():
        if group and total + texts > limit:
            yield group
            group = []
            total = 0
        group.append(path)
        total += texts
    yield group


def _merge(lake: Lake, fingerprint: str, paths: list[str]) -> None:
    import polars as pl

    merged = pl.concat([lake.read(path) for path in paths])
    merged = merged.unique("text_digest", keep="first", maintain_order=True).sort("text_digest")
    identity = digest(fingerprint, merged.get_column("text_digest").to_list())
    target = f"{lake.vector_folder(fingerprint)}/{identity}.parquet"
    lake.write(target, merged)
    lake.delete(*(path for path in paths if path != target))


def _digests_by_file(lake: Lake, fingerprint: str) -> "dict[str, pl.DataFrame]":
    """The texts of every file that exists now, by its path."""
    folder = lake.vector_folder(fingerprint)
    cached = _cache.get((lake.uri, folder), {})
    digests_by_file: dict[str, pl.DataFrame] = {}
    for path in lake.files(folder):
        try:
            digests_by_file[path] = (
                cached[path] if path in cached else lake.read(path, ["text_digest"])
            )
        except StoreError:
            if lake.exists(path):
                raise
    _cache[lake.uri, folder] = digests_by_file
    return digests_by_file


def _text_vectors(
    lake: Lake, fingerprint: str, rows: "pl.DataFrame", dimensions: int
) -> "tuple[NDArray[np.float32], int]":
    """The vectors of all texts of the rows, in order, and how many are not in the lake."""
    import numpy as np

    texts = rows.select(text_digest="text_digests").explode("text_digest").with_row_index("row")
    vectors = np.empty((texts.height, dimensions), np.float32)
    filled = 0
    for stored in vector_pieces(lake, fingerprint, texts.get_column("text_digest")):
        numbered = stored.select("text_digest").with_row_index("position")
        joined = texts.join(numbered, on="text_digest")
        matrix = stored.get_column("vector").explode().to_numpy().reshape(-1, dimensions)
        vectors[joined.get_column("row").to_numpy()] = matrix[
            joined.get_column("position").to_numpy()
        ]
        filled += joined.height
    return vectors, texts.height - filled


def _normalised_sums(
    text_vectors: "NDArray[np.float32]", rows: "pl.DataFrame"
) -> "NDArray[np.float32]":
    import numpy as np

    counts = rows.get_column("text_digests").list.len().to_numpy().astype(np.int64)
    starts = np.cumsum(counts) - counts
    vectors = text_vectors[starts]
    several = np.flatnonzero(counts > 1)
    # In double precision and in the order of the texts, so that every run has the same last bit.
    sums = vectors[several].astype(np.float64)
    for nth in range(1, counts.max(initial=0)):
        longer = np.flatnonzero(counts[several] > nth)
        sums[longer] += text_vectors[starts[several[longer]] + nth]
    lengths = np.linalg.norm(sums, axis=1)
    valid = lengths > MIN_LENGTH
    vectors[several[valid]] = sums[valid] / lengths[valid, np.newaxis]
    return vectors
