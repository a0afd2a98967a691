"""The public benchmarks beside a checkout, for the benchmarks that measure parts of retrieval.

Nothing of them is in this repository. `python -m benchmarks` measures whole boards on them.
"""

import hashlib
import json
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.papers.loading import load_benchmark
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.boilerplate import boilerplate
from pegboard.documents import documents_of
from pegboard.encoders import Encoder, load_encoder
from pegboard.search.memory import MemoryIndex
from pegboard.search.text import tokenize
from tasks.settings.configuration import DEFAULT_ENCODER, IndexSettings

BENCHMARKS = Path(__file__).parents[3] / "shared" / "benchmarks"
BATCH = 128


def require_benchmarks() -> None:
    """Exit with a message if the benchmarks are missing."""
    if not BENCHMARKS.is_dir():
        sys.exit(f"The benchmarks are not at {BENCHMARKS}.")


def lines(name: str) -> list[Any]:
    """The JSON values of a benchmark's file of JSON lines."""
    text = (BENCHMARKS / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def listing_of(name: str) -> Listing:
    """What the catalog of a benchmark's first board lists."""
    catalog = load_benchmark(name, BENCHMARKS / name).boards[0].catalog
    (options,) = tomllib.loads(catalog)["catalogs"].values()
    kind = source_kind(options["type"])
    builder = ListingBuilder(name, BENCHMARKS)
    kind.read(builder, kind.options.model_validate(options))
    return builder.build()


def encode(texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts by the embedded encoder, of shape (texts, dimensions)."""
    encoder = embedded_encoder()
    starts = range(0, len(texts), BATCH)
    return np.concatenate([encoder.encode(list(texts[at : at + BATCH])) for at in starts])


@cache
def embedded_encoder() -> Encoder:
    """The embedded encoder, loaded once."""
    return load_encoder(DEFAULT_ENCODER)


@dataclass(frozen=True, slots=True)
class CachingEncoder:
    """The embedded encoder; with a folder, vectors of earlier runs are read from there."""

    cache: Path | None
    name: str = DEFAULT_ENCODER

    @property
    def dimensions(self) -> int:
        """Of a vector."""
        return embedded_encoder().dimensions

    @property
    def fingerprint(self) -> str:
        """Of the encoder."""
        return embedded_encoder().fingerprint

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts."""
        if self.cache is None:
            return encode(texts)
        self.cache.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:24]
        file = self.cache / f"{digest}.npy"
        if not file.exists():
            np.save(file, encode(texts))
        return np.load(file)


@dataclass(frozen=True, slots=True)
class MemoryBoard:
    """The default index of a catalog in memory, without publishing."""

    listing: Listing
    tools: MemoryIndex

    def ids(self, names: Iterable[str]) -> frozenset[str]:
        """The ids of all tools of those true names."""
        distinct = set(names)
        return frozenset(tool.id for tool in self.listing.tools if tool.name in distinct)


def memory_board(name: str, encoder: CachingEncoder) -> MemoryBoard:
    """Compose and encode a benchmark's catalog as a build does."""
    listing, settings = listing_of(name), IndexSettings()
    owners = {agent.id: agent for agent in listing.agents}
    shared = boilerplate(listing.tools)
    rows = [
        (tool.id, part, texts)
        for tool in listing.tools
        for part, _, texts in documents_of(tool, owners[tool.agent], settings, boilerplate=shared)
    ]
    return MemoryBoard(listing, _index(rows, encoder))


def _index(rows: Sequence[tuple[str, str, Sequence[str]]], encoder: CachingEncoder) -> MemoryIndex:
    vectors = encoder.encode([text for _, _, texts in rows for text in texts])
    starts = np.cumsum([0, *(len(texts) for _, _, texts in rows[:-1])])
    sums = np.add.reduceat(vectors, starts, axis=0)
    units = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)
    return MemoryIndex(
        pa.table(
            {
                "tool": [row[0] for row in rows],
                "part": [row[1] for row in rows],
                "tokens": [" ".join(tokenize("\n".join(row[2]))) for row in rows],
                "vector": pa.FixedSizeListArray.from_arrays(
                    pa.array(units.ravel()), units.shape[1]
                ),
            }
        )
    )
