"""The public benchmarks beside a checkout, for the benchmarks that measure parts of retrieval.

Nothing of them is in this repository. `python -m benchmarks` measures whole boards on them.
"""

import json
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.loading import load_benchmark
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.encoders import Encoder, load_encoder
from tasks.settings.configuration import DEFAULT_ENCODER

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
