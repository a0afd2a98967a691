"""Step 4: the vectors of texts that no run has encoded yet, shard by shard, each durable in the
lake when it is done.
"""

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pegboard.encoders import Encoder, load_encoder, runs_here
from tasks.compose import Documents
from tasks.enrichment.vectors import SHARD_TEXTS, encode_texts, store_vectors
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.vectors import known_texts, merge_small_files
from tasks.settings.configuration import IndexSettings

if TYPE_CHECKING:
    import polars as pl

MOST_SHARDS = 200
"""Each shard is a file that later runs open. Many texts make larger shards; then a kill costs this
part of the work.
"""
_missing_texts: "dict[tuple[str, str, str], pl.DataFrame]" = {}
"""What `shards_of` found missing last, so that its shards need not look through all documents
again. Where they are encoded in another process, each looks for itself."""
MOST_REMEMBERED = 4


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of an index's documents: the texts whose digests lie between two bounds, and how many
    are to be encoded.
    """

    index: str
    path: str
    number: int
    first: str
    last: str
    texts: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """How many texts were encoded, and how many of them were longer than the encoder reads: their
    ends are in no vector.
    """

    texts: int = 0
    truncated: int = 0

    def __add__(self, other: "Encoded") -> "Encoded":
        return Encoded(self.texts + other.texts, self.truncated + other.truncated)


def at_once(settings: IndexSettings) -> int:
    """How many shards of an index to encode at the same time: one for each core, or one if the
    encoder runs elsewhere.

    A batch tokenises and pools on one core while the model runs on others, so one shard alone
    leaves cores idle. An encoder that is a service sends several requests at a time by itself.
    """
    return usable_cores() if runs_here(settings.encoder) else 1


def shards_of(
    uri: str, documents: Documents, settings: IndexSettings, encoder: Encoder | None = None
) -> list[Shard]:
    """The shards with texts that are not in the lake. The bounds hold whatever another run encodes
    meanwhile.

    Args:
        encoder: stands in for the one that is configured.
    """
    lake, fingerprint = Lake(uri), (encoder or encoder_for(settings)).fingerprint
    merge_small_files(lake, fingerprint)
    texts = _missing(lake, documents.path, fingerprint)
    while len(_missing_texts) >= MOST_REMEMBERED:
        del _missing_texts[next(iter(_missing_texts))]
    _missing_texts[uri, documents.path, fingerprint] = texts
    missing: list[str] = texts.get_column("text_digest").to_list()
    size = max(SHARD_TEXTS, -(-len(missing) // MOST_SHARDS))
    pieces = [missing[start : start + size] for start in range(0, len(missing), size)]
    return [
        Shard(settings.name, documents.path, number, piece[0], piece[-1], len(piece))
        for number, piece in enumerate(pieces, start=1)
    ]


def embed_shard(
    uri: str, shard: Shard, settings: IndexSettings, encoder: Encoder | None = None
) -> Encoded:
    """Encode what is still missing of a shard and store it.

    Args:
        encoder: stands in for the one that is configured.
    """
    import polars as pl

    lake, encoder = Lake(uri), encoder or encoder_for(settings)
    texts = _missing_texts.get((uri, shard.path, encoder.fingerprint))
    if texts is None:
        texts = _missing(lake, shard.path, encoder.fingerprint)
    texts = texts.filter(pl.col("text_digest").is_between(pl.lit(shard.first), pl.lit(shard.last)))
    # Another run may have encoded some since the shards were made.
    missing = texts.join(known_texts(lake, encoder.fingerprint), on="text_digest", how="anti").sort(
        "text_digest"
    )
    if not missing.height:
        return Encoded()
    digests: list[str] = missing.get_column("text_digest").to_list()
    before: int = getattr(encoder, "truncated", 0)
    vectors = encode_texts(encoder, missing.get_column("text").to_list(), "embed")
    store_vectors(lake, encoder, digests, vectors)
    return Encoded(len(digests), getattr(encoder, "truncated", 0) - before)


def _missing(lake: Lake, path: str, fingerprint: str) -> "pl.DataFrame":
    """The texts of documents whose vectors are not in the lake as (text_digest, text), each once,
    ordered by their digests.
    """
    digests = (
        read_rows(lake, path, ["key", "text_digests"])
        .explode("text_digests")
        .rename({"text_digests": "text_digest"})
    )
    new = digests.join(known_texts(lake, fingerprint), on="text_digest", how="anti")
    keys: list[str] = new.get_column("key").unique().to_list()
    lists = read_rows(lake, path, ["text_digests", "texts"], keys).rename(
        {"text_digests": "text_digest", "texts": "text"}
    )
    texts = lists.explode("text_digest", "text").join(new, on="text_digest", how="semi")
    return texts.unique("text_digest").sort("text_digest")


def encoder_for(settings: IndexSettings) -> Encoder:
    """The encoder of an index. Raises EncoderError if it cannot load; nothing else is ever used in
    its place.
    """
    return _encoder(settings.encoder, tuple(sorted(settings.options.items())))


@cache
def _encoder(name: str, options: tuple[tuple[str, Any], ...]) -> Encoder:
    return load_encoder(name, **dict(options))


def usable_cores() -> int:
    """How many cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
