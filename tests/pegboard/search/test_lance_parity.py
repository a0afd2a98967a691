"""A search through Lance ranks as one in memory does, on a large table; the last digit of a score
may differ. The contract's vectors compare both on a small board.
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
    """A table too large for memory, with a build's indices, as both kinds of index."""
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
    parsed = Filter.parse(where)
    generator = random.Random(1)
    for _ in range(20):
        words = [f"w{int(2000 * generator.random() ** 2)}" for _ in range(4)]
        (by_lance,) = lance.texts([words], 20, parsed)
        (by_memory,) = memory.texts([words], 200, parsed)

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
    lance, memory = large
    parsed = Filter.parse(where)
    lance_rankings = lance.vectors(queries(20, 2), 10, parsed)
    memory_rankings = memory.vectors(queries(20, 2), 10, parsed)
    common_count = 0
    for lance_ranking, memory_ranking in zip(lance_rankings, memory_rankings, strict=True):
        by_lance = scores(lance_ranking)
        by_memory = scores(memory_ranking)
        common_tools = by_lance.keys() & by_memory.keys()
        common_count += len(common_tools)

        assert {tool: by_lance[tool] for tool in common_tools} == pytest.approx(
            {tool: by_memory[tool] for tool in common_tools}, abs=TOLERANCE["vector"]
        )
    assert common_count / 200 > 0.95


def test_the_release_sets_the_number_of_partitions_to_visit(large, queries):
    lance, memory = large

    def recall(**settings):
        index = replace(lance, settings={"text": "fts", **settings})
        rankings = zip(*(each.vectors(queries(20, 3), 10) for each in (index, memory)), strict=True)
        return sum(len(scores(first).keys() & scores(second).keys()) for first, second in rankings)

    assert recall(nprobes=1) < 160
    assert recall(nprobes=1_000) == 200


@pytest.fixture
def two_catalogs(tmp_path, documents, table_of, monkeypatch):
    """An index with twice as many rows as are sampled, sorted by catalog."""
    monkeypatch.setattr(lance_index, "SAMPLE", 100)
    rows = [
        row | {"tokens": "alpha" if number < 100 else "beta", "digest": digest(number)}
        for number, row in enumerate(documents(200))
    ]
    lancedb.connect(f"{tmp_path}/tables").create_table("emb_full", table_of(rows))
    return LanceIndex(ReaderDatabase(str(tmp_path)).open_table("emb_full"), str(tmp_path), 200)


def test_word_frequencies_come_from_a_sample_of_all_catalogs(two_catalogs):
    statistics = two_catalogs.statistics

    assert 70 < statistics.documents < 130
    assert statistics.counts["alpha"] > 30 < statistics.counts["beta"]
