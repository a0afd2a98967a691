"""Boards of the benchmarks in memory, for measuring how they are searched: composed and encoded as
a build does, without publishing.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.performance.data import BENCHMARKS, catalog_of
from catalogs.mcp import dump as mcp_dump
from catalogs.records import source as records
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.documents import agent_text, documents_of
from pegboard.encoders import Encoder, load_encoder
from pegboard.search.memory import MemoryIndex
from pegboard.search.text import tokenize
from tasks.settings.configuration import DEFAULT_ENCODER, IndexSettings

BATCH = 128


@dataclass(frozen=True, slots=True)
class Encoding:
    """The embedded encoder, as `Encoder` asks for it; with a folder, vectors made before are found
    there.
    """

    cache: Path | None
    name: str = DEFAULT_ENCODER

    @property
    def dimensions(self) -> int:
        return _encoder(self.name).dimensions

    @property
    def fingerprint(self) -> str:
        return _encoder(self.name).fingerprint

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        file = None
        if self.cache is not None:
            self.cache.mkdir(parents=True, exist_ok=True)
            file = (
                self.cache / f"{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:24]}.npy"
            )
            if file.exists():
                return np.load(file)
        encoder = _encoder(self.name)
        starts = range(0, len(texts), BATCH)
        vectors = np.concatenate([encoder.encode(list(texts[at : at + BATCH])) for at in starts])
        if file is not None:
            np.save(file, vectors)
        return vectors


@dataclass(frozen=True, slots=True)
class BenchBoard:
    """A catalog, its tools as an index, and its agents as another."""

    listing: Listing
    tools: MemoryIndex
    agents: MemoryIndex

    def ids(self, names: Iterable[str]) -> frozenset[str]:
        """The ids of all tools of those true names."""
        wanted = set(names)
        return frozenset(tool.id for tool in self.listing.tools if tool.name in wanted)


def load_board(name: str, encoding: Encoding) -> BenchBoard:
    """The default index of a benchmark's catalog."""
    (options,) = tomllib.loads(catalog_of(name))["catalogs"].values()
    source = {"records": records, "mcp-dump": mcp_dump}[options["type"]].source
    builder = ListingBuilder(name, BENCHMARKS)
    source.read(builder, source.options.model_validate(options))
    listing = builder.build()
    settings = IndexSettings()
    owners = {agent.id: agent for agent in listing.agents}
    rows = [
        (tool.id, part, texts)
        for tool in listing.tools
        for part, _, texts in documents_of(tool, owners[tool.agent], settings)
    ]
    agents = [(agent.id, "document", (agent_text(agent),)) for agent in listing.agents]
    return BenchBoard(listing, _index(rows, encoding), _index(agents, encoding))


@cache
def _encoder(name: str) -> Encoder:
    return load_encoder(name)


def _index(rows: Sequence[tuple[str, str, Sequence[str]]], encoding: Encoding) -> MemoryIndex:
    vectors = encoding.encode([text for _, _, texts in rows for text in texts])
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
