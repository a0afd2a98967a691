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

MAX_SHARDS = 200
"""Each shard is a file that later runs open. With more texts the shards are larger, and a kill
costs one shard.
"""
MAX_CACHED = 4
_missing_cache: "dict[tuple[str, str, str], pl.DataFrame]" = {}
"""What `shards_of` found missing last, so that its shards need not read all documents again. In
another process each shard looks for itself."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a table's texts: those with digests between two bounds.

    Attributes:
        table: the table of the documents, `emb_<index>` or `agents_<index>`.
        path: their row set.
        texts: how many are to be encoded.
    """

    index: str
    table: str
    path: str
    number: int
    first: str
    last: str
    texts: int


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """How many texts were encoded, and how many of them the encoder truncated."""

    texts: int = 0
    truncated: int = 0

    def __add__(self, other: "EmbedResult") -> "EmbedResult":
        return EmbedResult(self.texts + other.texts, self.truncated + other.truncated)


def encoder_for(settings: IndexSettings) -> Encoder:
    """Return the encoder of an index, loaded once in a process.

    Raises:
        EncoderError: it cannot load; no other encoder is ever used instead.
    """
    return _encoder(settings.encoder, tuple(sorted(settings.options.items())))


def usable_cores() -> int:
    """Return how many cores this process may use; perhaps fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def at_once(settings: IndexSettings) -> int:
    """Return how many shards of an index to encode at once: one per core, or one if hosted.

    A batch is tokenised and pooled on one core while the model runs on others, so a single shard
    leaves cores idle. A hosted encoder sends several requests at a time by itself.
    """
    return usable_cores() if runs_here(settings.encoder) else 1


def shards_of(
    uri: str, documents: Documents, settings: IndexSettings, encoder: Encoder | None = None
) -> list[Shard]:
    """Return the shards of the texts that are not in the lake.

    Their bounds stay valid whatever another run encodes meanwhile.

    Args:
        encoder: replaces the configured one.
    """
    lake, fingerprint = Lake(uri), (encoder or encoder_for(settings)).fingerprint
    merge_small_files(lake, fingerprint)
    texts = _missing(lake, documents.path, fingerprint)
    while len(_missing_cache) >= MAX_CACHED:
        del _missing_cache[next(iter(_missing_cache))]
    _missing_cache[uri, documents.path, fingerprint] = texts
    digests: list[str] = texts.get_column("text_digest").to_list()
    size = max(SHARD_TEXTS, -(-len(digests) // MAX_SHARDS))
    parts = [digests[start : start + size] for start in range(0, len(digests), size)]
    return [
        Shard(settings.name, documents.table, documents.path, number, part[0], part[-1], len(part))
        for number, part in enumerate(parts, start=1)
    ]


def embed_shard(
    uri: str, shard: Shard, settings: IndexSettings, encoder: Encoder | None = None
) -> EmbedResult:
    """Encode the texts of a shard that are still missing, and store their vectors.

    Args:
        encoder: replaces the configured one.
    """
    import polars as pl

    lake, encoder = Lake(uri), encoder or encoder_for(settings)
    texts = _missing_cache.get((uri, shard.path, encoder.fingerprint))
    if texts is None:
        texts = _missing(lake, shard.path, encoder.fingerprint)
    texts = texts.filter(pl.col("text_digest").is_between(pl.lit(shard.first), pl.lit(shard.last)))
    # Another run may have encoded some since the shards were made.
    known = known_texts(lake, encoder.fingerprint)
    missing = texts.join(known, on="text_digest", how="anti").sort("text_digest")
    if not missing.height:
        return EmbedResult()
    digests: list[str] = missing.get_column("text_digest").to_list()
    before: int = getattr(encoder, "truncated", 0)
    vectors = encode_texts(encoder, missing.get_column("text").to_list(), "embed")
    store_vectors(lake, encoder, digests, vectors)
    return EmbedResult(len(digests), getattr(encoder, "truncated", 0) - before)


@cache
def _encoder(name: str, options: tuple[tuple[str, Any], ...]) -> Encoder:
    return load_encoder(name, **dict(options))


def _missing(lake: Lake, path: str, fingerprint: str) -> "pl.DataFrame":
    """The texts of documents without a vector in the lake as (text_digest, text), sorted, each
    once.
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
