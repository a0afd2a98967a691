"""A large table that is searched through Lance ranks as it would in memory; the last digit of a
score may differ. The contract's vectors compare both on a small board.
"""

import random
from dataclasses import replace

import lancedb
import pytest

from pegboard.canonical import digest
from pegboard.search import lance_index
from pegboard.search.filters import Filter
from pegboard.search.lance_index import LanceIndex
from pegboard.search.memory import BM25_DIGITS, COSINE_DIGITS, MemoryIndex
from pegboard.store.reading import ReaderDatabase
from tasks.steps.maintain import fit_indices

TOLERANCE = {"vector": 2 * 10**-COSINE_DIGITS, "text": 2 * 10**-BM25_DIGITS}
LARGE = 50_002


def scores(ranking):
    return {row.tool: row.score for row in ranking}


@pytest.fixture(scope="module")
def large(tmp_path_factory, documents, table_of):
    """More rows than are searched in memory, with the indices that a build gives them: through
    Lance, and in memory.
    """
    rows = table_of(documents(LARGE // 2, 2, words=2_000))
    uri = str(tmp_path_factory.mktemp("large"))
    table = lancedb.connect(f"{uri}/tables").create_table("emb_full", rows)
    fit_indices(table, LARGE, changed=True)
    assert len(table.list_indices()) == 7
    opened = ReaderDatabase(uri).open_table("emb_full")
    return LanceIndex(opened, uri, LARGE, {"text": "fts"}), MemoryIndex(rows)


@pytest.mark.parametrize(
    "where",
    [
        None,
        {"agent": ["c/a1", "c/a2"]},
        {"tags": ["t1"], "catalog": "c1"},
        {"tags": "o'clock", "agent": "c/a0"},
        {"kind": "api"},
        {"agent": []},
    ],
)
def test_a_large_index_ranks_words_as_memory_does(large, where):
    lance, memory = large
    chosen, chance = Filter.parse(where), random.Random(1)
    for _ in range(20):
        words = [f"w{int(2000 * chance.random() ** 2)}" for _ in range(4)]
        (by_lance,), (by_memory,) = (
            lance.texts([words], 20, chosen),
            memory.texts([words], 200, chosen),
        )

        assert [row.score for row in by_lance] == pytest.approx(
            [row.score for row in by_memory[:20]], abs=TOLERANCE["text"]
        )
        deep = scores(by_memory)
        assert scores(by_lance) == pytest.approx(
            {row.tool: deep[row.tool] for row in by_lance}, abs=TOLERANCE["text"]
        )


@pytest.mark.parametrize(
    "where", [None, {"agent": ["c/a1", "c/a2"]}, {"tags": ["t1"], "catalog": "c1"}]
)
def test_a_large_index_finds_the_nearest_vectors_with_their_exact_scores(large, queries, where):
    chosen, common = Filter.parse(where), 0
    for both in zip(*(index.vectors(queries(20, 2), 10, chosen) for index in large), strict=True):
        by_lance, by_memory = map(scores, both)
        common_tools = by_lance.keys() & by_memory.keys()
        common += len(common_tools)

        assert {tool: by_lance[tool] for tool in common_tools} == pytest.approx(
            {tool: by_memory[tool] for tool in common_tools}, abs=TOLERANCE["vector"]
        )
    assert common / 200 > 0.95


def test_as_many_partitions_are_visited_as_the_release_records(large, queries):
    lance, memory = large

    def recall(**settings):
        index = replace(lance, settings={"text": "fts", **settings})
        rankings = zip(*(each.vectors(queries(20, 3), 10) for each in (index, memory)), strict=True)
        return sum(len(scores(first).keys() & scores(second).keys()) for first, second in rankings)

    assert recall(nprobes=1) < 160
    assert recall(nprobes=1_000) == 200


@pytest.fixture
def two_catalogs(tmp_path, documents, table_of, monkeypatch):
    """A table of twice as many rows as are sampled, of which those of one catalog come first."""
    monkeypatch.setattr(lance_index, "SAMPLE", 100)
    rows = [
        row | {"tokens": "alpha" if number < 100 else "beta", "digest": digest(number)}
        for number, row in enumerate(documents(200))
    ]
    lancedb.connect(f"{tmp_path}/tables").create_table("emb_full", table_of(rows))
    return LanceIndex(ReaderDatabase(str(tmp_path)).open_table("emb_full"), str(tmp_path), 200)


def test_words_are_counted_in_a_sample_of_all_rows(two_catalogs):
    statistics = two_catalogs.statistics

    assert 70 < statistics.documents < 130
    assert statistics.counts["alpha"] > 30 < statistics.counts["beta"]
