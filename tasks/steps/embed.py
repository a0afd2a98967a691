"""Encode the texts that no run has encoded yet, shard by shard. A finished shard is durable in the
lake. A shard that is encoded again after its worker was killed leaves no duplicates.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pegboard.encoders import runs_here
from pegboard.encoders.batching import processors
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.vectors import (
    SHARD_TEXTS,
    encode_texts,
    known_texts,
    merge_small_files,
    store_vectors,
)
from tasks.runtime import progress
from tasks.runtime.workers import Workers
from tasks.settings.configuration import IndexSettings
from tasks.settings.encoders import encoder_for
from tasks.steps.compose import Documents

if TYPE_CHECKING:
    import polars as pl

MAX_SHARDS = 200
"""Largest number of shards of a table, each of which is a file that later runs open. With more
texts the shards are larger. A killed run loses at most the shards that it was encoding.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A part of a table's texts.

    Attributes:
        table: the table of the documents, `emb_<index>` or `agents_<index>`.
        number: position among the shards of the table, from 1.
        texts: distinct rows (text_digest, text), sorted by digest.
    """

    table: str
    number: int
    texts: "pl.DataFrame"


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """Number of texts that were encoded, and of those that the encoder truncated."""

    texts: int = 0
    truncated: int = 0

    def __add__(self, other: "EmbedResult") -> "EmbedResult":
        return EmbedResult(self.texts + other.texts, self.truncated + other.truncated)


def at_once(settings: IndexSettings) -> int:
    """Return how many shards of an index to encode at once: one per core, or one if hosted.

    A batch is tokenised and pooled on one core while the model runs on others, so a single shard
    leaves cores idle. A hosted encoder sends concurrent requests itself.
    """
    return processors() if runs_here(settings.encoder) else 1


def shards_of(uri: str, documents: Documents, settings: IndexSettings) -> list[Shard]:
    """Return the shards of the texts that are not in the lake."""
    lake = Lake(uri)
    fingerprint = encoder_for(settings).fingerprint
    merge_small_files(lake, fingerprint)
    missing = _missing(lake, documents.path, fingerprint)
    size = max(SHARD_TEXTS, -(-missing.height // MAX_SHARDS))
    return [
        Shard(documents.table, number, texts)
        for number, texts in enumerate(missing.iter_slices(size), start=1)
        if texts.height
    ]


def embed_shard(
    uri: str, shard: Shard, settings: IndexSettings, workers: Workers | None = None
) -> EmbedResult:
    """Encode the texts of a shard in this process, or on workers if there are any."""
    if workers is None:
        return encode_missing(uri, shard.texts, settings)
    settings = for_worker(settings, workers.threads)
    result = workers.run(partial(encode_missing, uri, shard.texts, settings))
    progress.advance("embed", shard.texts.height)  # A worker's own progress is not shown.
    return result


def encode_missing(uri: str, texts: "pl.DataFrame", settings: IndexSettings) -> EmbedResult:
    """Encode the texts that are not in the lake, and store their vectors. Another table, or another
    run, may have encoded some since the shards were made.

    Args:
        texts: rows (text_digest, text).
    """
    lake = Lake(uri)
    encoder = encoder_for(settings)
    encoded = known_texts(lake, encoder.fingerprint)
    missing = texts.join(encoded, on="text_digest", how="anti").sort("text_digest")
    if not missing.height:
        return EmbedResult()
    truncated_before: int = getattr(encoder, "truncated", 0)
    vectors = encode_texts(encoder, missing.get_column("text").to_list(), "embed")
    store_vectors(lake, encoder, missing.get_column("text_digest").to_list(), vectors)
    return EmbedResult(missing.height, getattr(encoder, "truncated", 0) - truncated_before)


def for_worker(settings: IndexSettings, threads: int) -> IndexSettings:
    """Return the settings for an encoder that shares its machine with others: it uses `threads`
    threads, unless its options set another number. Vectors do not depend on it.
    """
    if not runs_here(settings.encoder) or settings.encoder.startswith("hashing"):
        return settings
    return settings.model_copy(update={"options": {"threads": threads, **settings.options}})


def _missing(lake: Lake, path: str, fingerprint: str) -> "pl.DataFrame":
    """Return the distinct texts of documents without a vector in the lake, as rows (text_digest,
    text) sorted by digest.
    """
    digests = (
        read_rows(lake, path, ["key", "text_digests"])
        .explode("text_digests")
        .rename({"text_digests": "text_digest"})
    )
    missing = digests.join(known_texts(lake, fingerprint), on="text_digest", how="anti")
    keys: list[str] = missing.get_column("key").unique().to_list()
    documents = read_rows(lake, path, ["text_digests", "texts"], keys).rename(
        {"text_digests": "text_digest", "texts": "text"}
    )
    texts = documents.explode("text_digest", "text").join(missing, on="text_digest", how="semi")
    return texts.unique("text_digest").sort("text_digest")
