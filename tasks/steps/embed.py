"""The vectors of texts that no run has encoded yet, shard by shard, each durable in the
lake when it is done. A shard that is encoded again after its worker was killed leaves nothing
twice.
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
"""Each shard is a file that later runs open. With more texts the shards are larger, and a kill
costs one shard.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A part of a table's texts.

    Attributes:
        table: the table of the documents, `emb_<index>` or `agents_<index>`.
        number: counts from 1.
        texts: (text_digest, text), each once, in the order of their digests.
    """

    table: str
    number: int
    texts: "pl.DataFrame"


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """How many texts were encoded, and how many of them the encoder truncated."""

    texts: int = 0
    truncated: int = 0

    def __add__(self, other: "EmbedResult") -> "EmbedResult":
        return EmbedResult(self.texts + other.texts, self.truncated + other.truncated)


def at_once(settings: IndexSettings) -> int:
    """Return how many shards of an index to encode at once: one per core, or one if hosted.

    A batch is tokenised and pooled on one core while the model runs on others, so a single shard
    leaves cores idle. A hosted encoder sends several requests at a time by itself.
    """
    return processors() if runs_here(settings.encoder) else 1


def shards_of(uri: str, documents: Documents, settings: IndexSettings) -> list[Shard]:
    """Return the shards of the texts that are not in the lake."""
    lake, fingerprint = Lake(uri), encoder_for(settings).fingerprint
    merge_small_files(lake, fingerprint)
    texts = _missing(lake, documents.path, fingerprint)
    size = max(SHARD_TEXTS, -(-texts.height // MAX_SHARDS))
    return [
        Shard(documents.table, number, part)
        for number, part in enumerate(texts.iter_slices(size), start=1)
        if part.height
    ]


def embed_shard(
    uri: str, shard: Shard, settings: IndexSettings, workers: Workers | None = None
) -> EmbedResult:
    """Encode the texts of a shard in this process, or on workers if they are given."""
    if workers is None:
        return encode_missing(uri, shard.texts, settings)
    settings = for_worker(settings, workers.threads)
    result = workers.run(partial(encode_missing, uri, shard.texts, settings))
    progress.advance("embed", shard.texts.height)  # a worker's own progress is not seen here
    return result


def encode_missing(uri: str, texts: "pl.DataFrame", settings: IndexSettings) -> EmbedResult:
    """Encode those of the texts (text_digest, text) that are not in the lake, and store their
    vectors. Another table, or another run, may have encoded some since they were looked for.
    """
    lake, encoder = Lake(uri), encoder_for(settings)
    known = known_texts(lake, encoder.fingerprint)
    missing = texts.join(known, on="text_digest", how="anti").sort("text_digest")
    if not missing.height:
        return EmbedResult()
    before: int = getattr(encoder, "truncated", 0)
    vectors = encode_texts(encoder, missing.get_column("text").to_list(), "embed")
    store_vectors(lake, encoder, missing.get_column("text_digest").to_list(), vectors)
    return EmbedResult(missing.height, getattr(encoder, "truncated", 0) - before)


def for_worker(settings: IndexSettings, threads: int) -> IndexSettings:
    """Return the settings for an encoder that shares its machine with others: it uses
    `threads`, unless its options say how many. No vector depends on it.
    """
    if not runs_here(settings.encoder) or settings.encoder.startswith("hashing"):
        return settings
    return settings.model_copy(update={"options": {"threads": threads, **settings.options}})


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
