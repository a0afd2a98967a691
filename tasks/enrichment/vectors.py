"""The vectors of texts, cached in the lake: no step encodes a text twice."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from tasks import progress
from tasks.lake.files import Lake
from tasks.lake.vectors import vector_pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHARD_TEXTS = 1_000
"""Texts in a shard: about two seconds of the embedded encoder, which is what a kill can cost."""
BATCH_TEXTS = 64
"""Texts between two advances of the progress display."""


def vectors_of(
    lake: Lake, encoder: Encoder, texts: Sequence[str], *, step: str = "vectors"
) -> "NDArray[np.float32]":
    """Return the vectors of the texts, shape (len(texts), dimensions), in their order.

    Missing ones are encoded now, shard by shard, each durable in the lake when it is done.

    Args:
        texts: any; equal ones are encoded once.
        step: the name of the progress display, which appears only if a text has to be encoded.
    """
    import numpy as np

    rows: dict[str, int] = {}
    firsts = np.array(
        [rows.setdefault(digest(text), row) for row, text in enumerate(texts)], np.int64
    )
    vectors = np.empty((len(texts), encoder.dimensions), np.float32)
    missing = _fill_known(lake, encoder, rows, vectors)
    if missing:
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


def encode_texts(encoder: Encoder, texts: Sequence[str], step: str) -> "NDArray[np.float32]":
    """Return the vectors of the texts in their order, encoded in batches of similar length."""
    import numpy as np

    vectors = np.empty((len(texts), encoder.dimensions), np.float32)
    by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for start in range(0, len(texts), BATCH_TEXTS):
        places = by_length[start : start + BATCH_TEXTS]
        vectors[places] = encoder.encode([texts[place] for place in places])
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


def _fill_known(
    lake: Lake, encoder: Encoder, rows: dict[str, int], vectors: "NDArray[np.float32]"
) -> dict[str, int]:
    """Fill in the vectors that the lake has, file by file; returns the missing rows."""
    import polars as pl

    missing = dict(rows)
    for frame in vector_pieces(lake, encoder.fingerprint, pl.Series(list(rows), dtype=pl.String)):
        places = [missing.pop(one) for one in frame.get_column("text_digest").to_list()]
        vectors[places] = (
            frame.get_column("vector").cast(pl.Array(pl.Float32, encoder.dimensions)).to_numpy()
        )
    return missing
