"""Several queries at once: in memory and through Lance, the same as one after the other."""

import pytest

import pegboard
from pegboard.search.loaded import LoadedRelease
from pegboard.search.query_vectors import QueryVectors
from pegboard.text.words import tokenize

QUERIES = [
    "convert an amount of dollars",
    "forecast for a city",
    "merge two branches",
    "東京の天気予報",
]


@pytest.fixture(params=[50_000, 0], ids=["memory", "lance"])
def loaded(request, board_uri):
    store = pegboard.ReleaseStore(board_uri)
    return LoadedRelease(store, store.get(store.channel().release), request.param)


def test_a_batch_finds_what_each_query_finds_alone(loaded, encoder):
    vectors = QueryVectors(encoder, None)
    units = vectors.units(loaded, "full", QUERIES)
    index = loaded.index("full")
    where = loaded.filter({"kind": "mcp-server"})
    for narrowed in (None, where):
        assert index.vectors(units, 5, narrowed) == [
            index.vectors(unit[None], 5, narrowed)[0] for unit in units
        ]
        words = [tokenize(query) for query in QUERIES]
        assert index.texts(words, 5, narrowed) == [
            index.texts([own], 5, narrowed)[0] for own in words
        ]


def test_what_the_release_before_had_loaded_is_loaded_before_a_swap(loaded, board_uri):
    store = pegboard.ReleaseStore(board_uri)
    after = LoadedRelease(store, loaded.release, 50_000)
    after.warm(loaded)
    assert not after._agent_indexes
    assert "graph" not in after.__dict__
    loaded.agent_index("full")
    assert len(loaded.graph) >= 0
    after.warm(loaded)
    assert set(after._agent_indexes) == {"full"}
    assert "graph" in after.__dict__


def test_vectors_of_requests_are_remembered_but_not_without_bound(loaded, encoder):
    class Counting:
        name = encoder.name
        fingerprint = encoder.fingerprint
        dimensions = encoder.dimensions
        encoded: list = []  # noqa: RUF012

        def encode(self, texts):
            self.encoded.extend(texts)
            return encoder.encode(texts)

    vectors = QueryVectors(Counting(), None, cached=2)
    first = vectors.units(loaded, "full", ["one", "two", "one"])
    assert Counting.encoded == ["one", "two"]
    assert (first[0] == first[2]).all()
    vectors.units(loaded, "fine", ["one"])  # the same encoder, another index
    assert Counting.encoded == ["one", "two"]
    vectors.units(loaded, "full", ["three"])
    vectors.units(loaded, "full", ["one"])
    vectors.units(loaded, "full", ["two"])
    assert Counting.encoded == [
        "one",
        "two",
        "three",
        "two",
    ]  # the one that was asked for least lately is forgotten
    QueryVectors(Counting(), None, cached=0).units(loaded, "full", ["one"])
    assert Counting.encoded[-1] == "one"
