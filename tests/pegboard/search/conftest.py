"""Random rows and vectors of an index."""

import random

import numpy as np
import pyarrow as pa
import pytest

from pegboard.store.contract import table_schema

DIMENSIONS = 8


def unit_vectors(count, seed):
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def queries():
    """Unit vectors for requests: `queries(count, seed)`."""
    return unit_vectors


@pytest.fixture(scope="session")
def table_of():
    """Makes an index's table from rows as dicts."""
    return lambda rows: pa.Table.from_pylist(rows, schema=table_schema("emb_full", DIMENSIONS))


@pytest.fixture(scope="session")
def documents():
    """Makes random rows of tools with several parts each: unit vectors, frequent and rare words."""

    def make(tools, parts=1, *, seed=0, words=40):
        generator = random.Random(seed)
        vectors = unit_vectors(tools * parts, seed).tolist()
        summaries = unit_vectors(tools, seed + 1).tolist()

        def row(number):
            tool, part = divmod(number, parts)
            size = generator.randint(1, 12)
            tokens = " ".join(f"w{int(words * generator.random() ** 2)}" for _ in range(size))
            return {
                "key": f"c/a/{tool:06}#part{part}#0",
                "tool": f"c/a/{tool:06}",
                "part": f"part{part}",
                "catalog": f"c{number % 2}",
                "agent": f"c/a{tool % 7}",
                "kind": "library",
                "tags": [f"t{number % 5}", "o'clock"] if number % 3 else [],
                "text": tokens,
                "tokens": tokens,
                "vector": vectors[number],
                "name_tokens": f"w{tool % words} w{tool % 3}",
                "actions": ("", "get", "create update", "delete")[tool % 4],
                "summary": "",
                "summary_vector": summaries[tool],
                "digest": "",
                "checksum": "",
            }

        return [row(number) for number in range(tools * parts)]

    return make
