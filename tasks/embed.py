"""Step 4: the vectors of texts that no run has encoded yet, shard by shard, each durable in the lake when it is done."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.compose import Documents
from tasks.configuration import IndexSettings, load_configuration
from tasks.encoders import encoder_for
from tasks.enrichment.vectors import SHARD_TEXTS, encode_texts, store_vectors
from tasks.lake import Lake

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SHARD_TEXTS", "Encoded", "Shard", "embed", "embed_shard", "shards_of"]

MOST_SHARDS = 200
"""Each shard looks through all that the lake has. Many texts make larger shards; then a kill costs this part of the work."""


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
    lake = Lake(uri)
    texts = _missing(lake, _texts(lake, documents.path), encoder_for(settings).fingerprint)
    missing: list[str] = texts.get_column("text_digest").to_list()
    size = max(SHARD_TEXTS, -(-len(missing) // MOST_SHARDS))
    pieces = [missing[start : start + size] for start in range(0, len(missing), size)]
    return [
        Shard(settings.name, documents.path, number, piece[0], piece[-1], len(piece))
        for number, piece in enumerate(pieces, start=1)
    ]


def embed_shard(uri: str, shard: Shard, settings: IndexSettings) -> Encoded:
    """Encode what is still missing of a shard and store it."""
    import polars as pl

    lake, encoder = Lake(uri), encoder_for(settings)
    texts = _texts(lake, shard.path).filter(pl.col("text_digest").is_between(pl.lit(shard.first), pl.lit(shard.last)))
    missing = _missing(lake, texts, encoder.fingerprint)
    if not missing.height:
        return Encoded()
    digests: list[str] = missing.get_column("text_digest").to_list()
    before: int = getattr(encoder, "truncated", 0)
    vectors = encode_texts(encoder, missing.get_column("text").to_list(), "embed")
    store_vectors(lake, encoder, digests, vectors)
    return Encoded(len(digests), getattr(encoder, "truncated", 0) - before)


def _texts(lake: Lake, path: str) -> "pl.DataFrame":
    """The texts of a file of documents as (text_digest, text); some several times."""
    lists = lake.read(path, ["text_digests", "texts"]).rename({"text_digests": "text_digest", "texts": "text"})
    return lists.explode("text_digest", "text")


def _missing(lake: Lake, texts: "pl.DataFrame", fingerprint: str) -> "pl.DataFrame":
    """Those of the texts whose vectors are not in the lake, each once, in the order of their digests."""
    import polars as pl

    known = pl.Series("text_digest", list(lake.known_texts(fingerprint)), dtype=pl.String)
    return texts.unique("text_digest").filter(~pl.col("text_digest").is_in(known.implode())).sort("text_digest")
