"""A board answers the same whether it is searched in memory or through Lance; the last digit of a
score may differ.
"""

import random
from dataclasses import replace

import lancedb
import numpy as np
import pyarrow as pa
import pytest

import pegboard
from pegboard.search.filters import Filter
from pegboard.search.lance_index import LanceIndex
from pegboard.search.memory import BM25_DIGITS, COSINE_DIGITS, MemoryIndex
from pegboard.store.contract import table_schema
from pegboard.store.database import PUBLIC, ReaderDatabase
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
    {"agent": "git"},
    {"catalog": ["finance", "desk"]},
    {"tags": "money"},
    {"kind": "agent"},
    {"agent": "o'brien's"},
]
TOLERANCE = {"vector": 2 * 10**-COSINE_DIGITS, "text": 2 * 10**-BM25_DIGITS}
LARGE, DIMENSIONS = 50_001, 8


@pytest.fixture(scope="module", params=["core", "public"])
def boards(request, board_uri, encoder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PUBLIC, request.param)
        return [
            pegboard.open(board_uri, encoder=encoder, in_memory_rows=rows) for rows in (50_000, 0)
        ]


def scores(ranking):
    return {row.tool: row.score for row in ranking}


@pytest.mark.parametrize("mode", ["vector", "text"])
@pytest.mark.parametrize("index", ["full", "fine"])
@pytest.mark.parametrize("where", FILTERS)
def test_a_small_board_gives_the_same_hits_and_scores(boards, mode, index, where):
    for query in QUERIES:
        memory, lance = (
            [*board.search(query, 14, mode=mode, index=index, where=where)] for board in boards
        )

        assert {hit.tool.id: hit.score for hit in lance} == pytest.approx(
            {hit.tool.id: hit.score for hit in memory}, abs=TOLERANCE[mode]
        )
        assert {hit.tool.id: (hit.tool, hit.agent, hit.why[mode]["part"]) for hit in lance} == {
            hit.tool.id: (hit.tool, hit.agent, hit.why[mode]["part"]) for hit in memory
        }


@pytest.mark.parametrize("index", ["full", "fine"])
@pytest.mark.parametrize("where", FILTERS)
def test_a_small_board_fuses_to_the_same_hits(boards, index, where):
    for query in QUERIES:
        memory, lance = (board.search(query, 14, index=index, where=where) for board in boards)

        assert [hit.tool.id for hit in lance] == [hit.tool.id for hit in memory]
        # Both halves are rounded before they are fused, on either side of a border once in a while.
        assert [hit.score for hit in lance] == pytest.approx(
            [hit.score for hit in memory], abs=2e-5
        )


def test_tools_and_agents_are_read_alike(boards):
    memory, lance = boards

    assert lance.list_agents() == memory.list_agents()
    for agent, name in (
        ("git", "create_issue"),
        ("o'brien's", "order_lunch"),
        ("天気", "天気予報"),
    ):
        identity = f"kit/{agent}/{name}"
        assert lance.tool(identity) == memory.tool(identity)
        assert lance.tool(identity).name == name
    assert lance.tool("kit/git/x' OR 'a'='a") is None


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The same rows, more than are searched in memory: through Lance's indices as a run makes them,
    and in memory.
    """
    chance, numbers = random.Random(0), np.random.default_rng(0)
    vectors = numbers.normal(size=(LARGE, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    tools = [
        f"c/a{number // 2 % 7}/t{number // 2:06}" for number in range(LARGE)
    ]  # two documents each
    words = [
        " ".join(f"w{int(2000 * chance.random() ** 2)}" for _ in range(chance.randint(1, 12)))
        for _ in tools
    ]
    rows = pa.table(
        {
            "key": [f"{tool}#question#{number}" for number, tool in enumerate(tools)],
            "tool": tools,
            "part": ["question"] * LARGE,
            "catalog": [f"c{number % 2}" for number in range(LARGE)],
            "agent": [f"c/a{number // 2 % 7}" for number in range(LARGE)],
            "kind": ["library"] * LARGE,
            "tags": [
                [f"t{number % 5}", "o'clock"] if number % 3 else [] for number in range(LARGE)
            ],
            "text": words,
            "tokens": words,
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS),
            "digest": tools,
            "checksum": tools,
        },
        schema=table_schema("emb_full", DIMENSIONS),
    )
    uri = str(tmp_path_factory.mktemp("large"))
    table = lancedb.connect(f"{uri}/tables").create_table("emb_full", rows)
    fit_indices(table, LARGE, changed=True)
    assert {column for index in table.list_indices() for column in index.columns} == {
        "vector", "tokens", "tool", "agent", "catalog", "kind", "tags",
    }  # fmt: skip
    return uri, rows


@pytest.fixture(scope="module", params=["core", "public"])
def large(request, written):
    uri, rows = written
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PUBLIC, request.param)
        table = ReaderDatabase(uri).open_table("emb_full")
        return LanceIndex(table, uri, LARGE), MemoryIndex(rows)


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
        assert all(
            deep[row.tool] == pytest.approx(row.score, abs=TOLERANCE["text"]) for row in by_lance
        )


@pytest.mark.parametrize(
    "where", [None, {"agent": ["c/a1", "c/a2"]}, {"tags": ["t1"], "catalog": "c1"}]
)
def test_a_large_index_finds_the_nearest_vectors_with_their_exact_scores(large, where):
    lance, memory = large
    chosen, numbers, found = Filter.parse(where), np.random.default_rng(2), 0
    for _ in range(20):
        query = numbers.normal(size=DIMENSIONS).astype(np.float32)
        query /= np.linalg.norm(query)
        by_lance, by_memory = (
            scores(lance.vector(query, 10, chosen)),
            scores(memory.vector(query, 10, chosen)),
        )
        both = by_lance.keys() & by_memory.keys()
        found += len(both)

        assert {tool: by_lance[tool] for tool in both} == pytest.approx(
            {tool: by_memory[tool] for tool in both}, abs=TOLERANCE["vector"]
        )
    assert found / 200 > 0.95


def test_as_many_partitions_are_visited_as_the_release_records(large):
    lance, memory = large
    queries = np.random.default_rng(3).normal(size=(20, DIMENSIONS)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)

    def recall(**settings):
        index = replace(lance, settings={"text": "fts", **settings})
        found = [
            scores(index.vector(query, 10)).keys() & scores(memory.vector(query, 10)).keys()
            for query in queries
        ]
        return sum(map(len, found)) / 200

    assert recall(nprobes=1) < 0.8
    assert recall(nprobes=1_000) == recall(nprobes=1_000, ef=5, refine=2) == 1.0


def test_a_table_that_the_release_says_has_no_text_index_is_searched_without(boards):
    _, lance = boards
    index = lance._answer(lambda loaded: loaded.index("full"))
    unknown, none = replace(index, settings=None), replace(index, settings={"nprobes": 3})

    for where in (None, Filter.parse({"agent": "kit/git"})):
        assert (
            none.text(["issue", "tide"], 5, where)
            == unknown.text(["issue", "tide"], 5, where)
            != []
        )
