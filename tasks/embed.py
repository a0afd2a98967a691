"""Step 4: the vectors of texts that no run has encoded yet, shard by shard, each durable in the lake when it is done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from tasks import progress
from tasks.compose import Documents
from tasks.configuration import IndexSettings, load_configuration
from tasks.encoders import encoder_for
from tasks.lake import Lake

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SHARD_TEXTS", "Encoded", "Shard", "embed", "embed_shard", "shards_of"]

SHARD_TEXTS = 1_000
"""Texts in a shard: about two seconds of the embedded encoder, which is what a kill can cost."""
BATCH_TEXTS = 64
"""Texts between two advances of the progress display."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of an index's documents: the texts whose digests lie between two bounds, and how many are to be encoded."""

    index: str
    path: str
    number: int
    first: str
    last: str
    texts: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """How many texts were encoded, and how many of them were longer than the encoder reads: their ends are in no vector."""

    texts: int = 0
    truncated: int = 0

    def __add__(self, other: "Encoded") -> "Encoded":
        return Encoded(self.texts + other.texts, self.truncated + other.truncated)


@task(name="embed", task_run_name="embed {shard.index} {shard.number}", cache_policy=NO_CACHE)
def embed(config: str, shard: Shard) -> "Encoded":
    """The Prefect skin of `embed_shard`."""
    configuration = load_configuration(config)
    return embed_shard(configuration.uri, shard, configuration.index(shard.index))


def shards_of(uri: str, documents: Documents, settings: IndexSettings) -> list[Shard]:
    """The shards with texts that are not in the lake. The bounds hold whatever another run encodes meanwhile."""
    missing = sorted(_missing(Lake(uri), documents.path, encoder_for(settings).fingerprint))
    pieces = [missing[start : start + SHARD_TEXTS] for start in range(0, len(missing), SHARD_TEXTS)]
    return [
        Shard(settings.name, documents.path, number, piece[0], piece[-1], len(piece))
        for number, piece in enumerate(pieces, start=1)
    ]


def embed_shard(uri: str, shard: Shard, settings: IndexSettings) -> Encoded:
    """Encode what is still missing of a shard and store it."""
    import polars as pl

    lake, encoder = Lake(uri), encoder_for(settings)
    missing = _missing(lake, shard.path, encoder.fingerprint)
    digests = sorted(one for one in missing if shard.first <= one <= shard.last)
    if not digests:
        return Encoded()
    before: int = getattr(encoder, "truncated", 0)
    vectors = _encode(encoder, [missing[one] for one in digests])
    frame = pl.DataFrame(
        {"text_digest": digests, "vector": vectors},
        schema={"text_digest": pl.String, "vector": pl.Array(pl.Float32, encoder.dimensions)},
    )
    lake.write(f"{lake.vector_folder(encoder.fingerprint)}/{digest(encoder.fingerprint, digests)}.parquet", frame)
    return Encoded(len(digests), getattr(encoder, "truncated", 0) - before)


def _encode(encoder: Encoder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """The vectors of the texts in their order. Texts of like length go together: a batch costs what its longest does."""
    import numpy as np

    vectors = np.empty((len(texts), encoder.dimensions), np.float32)
    by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for start in range(0, len(texts), BATCH_TEXTS):
        places = by_length[start : start + BATCH_TEXTS]
        vectors[places] = encoder.encode([texts[place] for place in places])
        progress.advance("embed", len(places))
    return vectors


def _missing(lake: Lake, path: str, fingerprint: str) -> dict[str, str]:
    known = lake.known_texts(fingerprint)
    frame = lake.read(path, ["text_digest", "text"])
    pairs = zip(frame.get_column("text_digest").to_list(), frame.get_column("text").to_list(), strict=True)
    return {one: text for one, text in pairs if one not in known}
