"""A board answers the same whether it is searched in memory or through Lance; the last digit of a
score may differ.
"""

import random
from dataclasses import replace

import lancedb
import pytest

import pegboard
from pegboard.canonical import digest
from pegboard.search import lance_index
from pegboard.search.filters import Filter
from pegboard.search.lance_index import LanceIndex
from pegboard.search.memory import BM25_DIGITS, COSINE_DIGITS, MemoryIndex
from pegboard.store.reading import ReaderDatabase
from tasks.maintain import fit_indices

QUERIES = [
    "how much is 30 dollars in yen?",
    "open an issue",
    "list the commits",
    "room",
    "明日の天気予報",
    "zzz unknown",
]
FILTERS = [
    None,
    {"catalog": ["finance", "desk"], "kind": "agent"},
    {"tags": "money"},
    {"agent": "o'brien's"},
]
# Both halves of a hybrid score are rounded before they are fused.
TOLERANCE = {"vector": 2 * 10**-COSINE_DIGITS, "text": 2 * 10**-BM25_DIGITS, "hybrid": 2e-5}
LARGE = 50_002


@pytest.fixture(scope="module")
def boards(board_uri, encoder):
    return [pegboard.open(board_uri, encoder=encoder, in_memory_rows=rows) for rows in (50_000, 0)]


def scores(ranking):
    return {row.tool: row.score for row in ranking}


@pytest.mark.parametrize("mode", TOLERANCE)
@pytest.mark.parametrize("index", ["full", "fine"])
@pytest.mark.parametrize("where", FILTERS)
def test_a_small_board_gives_the_same_hits_and_scores(boards, mode, index, where):
    for query in QUERIES:
        memory, lance = (
            board.search(query, 14, mode=mode, index=index, where=where) for board in boards
        )

        assert {hit.tool.id: hit.score for hit in lance} == pytest.approx(
            {hit.tool.id: hit.score for hit in memory}, abs=TOLERANCE[mode]
        )
        if mode == "hybrid":
            assert [hit.tool.id for hit in lance] == [hit.tool.id for hit in memory]
        else:
            assert {hit.tool.id: (hit.tool, hit.agent, hit.why[mode]["part"]) for hit in lance} == {
                hit.tool.id: (hit.tool, hit.agent, hit.why[mode]["part"]) for hit in memory
            }


def test_tools_and_agents_are_read_alike(boards):
    memory, lance = boards

    assert lance.list_agents() == memory.list_agents()
    for name in ("git/create_issue", "o'brien's/order_lunch", "天気/天気予報"):
        assert lance.tool(f"kit/{name}") == memory.tool(f"kit/{name}") is not None
    assert lance.tool("kit/git/x' OR 'a'='a") is None


@pytest.fixture(scope="module")
def written(tmp_path_factory, documents, table_of):
    """More rows than are searched in memory, with the indices that a build gives them."""
    rows = table_of(documents(LARGE // 2, 2, words=2_000))
    uri = str(tmp_path_factory.mktemp("large"))
    table = lancedb.connect(f"{uri}/tables").create_table("emb_full", rows)
    fit_indices(table, LARGE, changed=True)
    assert len(table.list_indices()) == 7
    return uri, rows


@pytest.fixture(scope="module")
def large(written):
    uri, rows = written
    table = ReaderDatabase(uri).open_table("emb_full")
    return LanceIndex(table, uri, LARGE, {"text": "fts"}), MemoryIndex(rows)


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
        by_lance, by_memory = lance.text(words, 20, chosen), memory.text(words, 200, chosen)

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
    for query in queries(20, 2):
        by_lance, by_memory = (scores(index.vector(query, 10, chosen)) for index in large)
        both = by_lance.keys() & by_memory.keys()
        common += len(both)

        assert {tool: by_lance[tool] for tool in both} == pytest.approx(
            {tool: by_memory[tool] for tool in both}, abs=TOLERANCE["vector"]
        )
    assert common / 200 > 0.95


def test_as_many_partitions_are_visited_as_the_release_records(large, queries):
    lance, memory = large

    def recall(**settings):
        index = replace(lance, settings={"text": "fts", **settings})
        return sum(
            len(scores(index.vector(query, 10)).keys() & scores(memory.vector(query, 10)).keys())
            for query in queries(20, 3)
        )

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
