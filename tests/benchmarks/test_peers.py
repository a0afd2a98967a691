"""Peers in processes of their own: scripted adapters that rank, ask for vectors, and fail."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.loading import load_benchmark
from benchmarks.peers import measuring, process
from benchmarks.peers.process import PeerFailed, Peers, ask
from benchmarks.peers.sets import needed_part, request_sets

ADAPTERS = {
    "by_vector": """
PACKAGE = "numpy"
def rank(tools, queries, k, encode):
    print("libraries print what they like")
    texts = encode([tool["description"] for tool in tools])
    def score(at, query):
        return -sum(a * b for a, b in zip(texts[at], encode([query])[0]))
    places = range(len(tools))
    return [[tools[at]["id"] for at in sorted(places, key=lambda at: score(at, query))[:k]]
            for query in queries]
""",
    "absent": "import a_package_that_nobody_has",
    "broken": """
PACKAGE = "numpy"
def rank(tools, queries, k, encode):
    raise RuntimeError("no such index")
""",
    "odd": """
PACKAGE = "numpy"
def rank(tools, queries, k, encode):
    return [["a tool of another catalog"] for query in queries]
""",
    "silent": """
import os
PACKAGE = "numpy"
def rank(tools, queries, k, encode):
    os._exit(3)
""",
}
TOOLS = [
    {"id": name, "name": name, "description": text, "agent": "a", "parameters": {}}
    for name, text in (("feed", "feed the hens"), ("count", "count the sheep"))
]


@pytest.fixture
def adapters(tmp_path, monkeypatch):
    """The worker with these adapters."""
    worker = shutil.copytree(process.WORKER, tmp_path / "worker")
    for name, text in ADAPTERS.items():
        (worker / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.setattr(process, "WORKER", worker)
    named = {name: f"the peer {name}" for name in ADAPTERS}
    monkeypatch.setattr(measuring, "PEERS", named)


def ask_peer(adapter, encode=None, timeout=300.0, queries=("feed", "sheep")):
    return ask([sys.executable, str(process.WORKER), adapter], TOOLS, queries, 1, encode, timeout)


def bag_of_words(texts):
    words = ("feed", "hens", "count", "sheep")
    return np.array([[float(word in text) for word in words] for text in texts], np.float32)


def test_a_peer_composes_texts_and_asks_for_their_vectors(adapters):
    texts = []

    def encode(batch):
        texts.extend(batch)
        return bag_of_words(batch)

    answer = ask_peer("by_vector", encode)

    assert answer.rankings == [["feed"], ["count"]]
    assert answer.version == np.__version__
    assert texts == ["feed", "sheep", "feed the hens", "count the sheep"]  # none of them twice


@pytest.mark.parametrize(
    ("adapter", "reason"),
    [
        ("absent", "No module named 'a_package_that_nobody_has'"),
        ("broken", "RuntimeError: no such index"),
        ("odd", r"a ranking is \['a tool of another catalog'\], expected at most 1 ids"),
        ("silent", "it ended without an answer"),
    ],
)
def test_a_peer_that_fails_says_why(adapters, adapter, reason):
    with pytest.raises(PeerFailed, match=reason):
        ask_peer(adapter, bag_of_words)


def test_results_compare_pegboard_with_each_peer_and_say_which_failed(
    adapters, specimen, boards_of, hashing, tmp_path
):
    benchmark = load_benchmark("metatool", specimen("metatool"))
    sets = list(request_sets(benchmark))
    boards = boards_of(needed_part(benchmark, sets))
    peers = Peers(Path(sys.executable), tmp_path / "answers", hashing(64).encode)

    results = [
        one
        for requests in sets
        for one in measuring.measure_set(requests, boards, peers, ["by_vector", "broken"])
    ]
    rows = json.loads(json.dumps(measuring.rows_of(results)))

    assert list(boards) == ["single-without-examples", "multi"]
    assert {row["set"] for row in rows} == {"MetaTool, one tool", "two tools"}
    by_vector = [row for row in rows if row["system"] == "the peer by_vector"]
    assert [row["measure"] for row in by_vector] == ["Recall@5", "Recall@1"] * 2
    assert all(row["ahead"]["p"] <= row["ahead"]["p_holm"] <= 1 for row in by_vector)
    assert {row["problem"] for row in rows if row["system"] == "the peer broken"} == {
        "RuntimeError: no such index"
    }
