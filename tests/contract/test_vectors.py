"""The contract's vectors: `pegboard` retrieves what they expect, and so do readers without it.

`make_vectors.py` made them. The programs `read.mjs` and `read_parquet.py` know nothing but
docs/reference/table-contract.md."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pegboard
from pegboard.errors import ContractMismatch
from pegboard.ranker.actions import request_actions
from pegboard.search.glossary import spelled_out
from pegboard.store.releases import ReleaseStore
from pegboard.store.writing import open_table
from pegboard.text.words import query_words
from tests.contract.make_vectors import write_parquet
from tests.npm import node_modules

HERE = Path(__file__).parent
VECTORS = json.loads((HERE / "vectors.json").read_text("utf-8"))
LANCEDB_OF_NODE = "0.39.0"
"""The version of @lancedb/lancedb that `read.mjs` was tried with."""


@pytest.fixture(scope="module")
def board_path(tmp_path_factory):
    """The board, copied to another address: its tables hold no absolute path."""
    return str(shutil.copytree(HERE / "board", tmp_path_factory.mktemp("contract") / "elsewhere"))


@pytest.fixture(scope="module", params=[50_000, 0], ids=["memory", "lance"])
def boards(request, board_path, hashing):
    """The board of each readable channel, searched in memory or through Lance."""
    return {
        name: pegboard.open(board_path, name, encoder=hashing(), in_memory_rows=request.param)
        for name, channel in VECTORS["channels"].items()
        if channel["readable"]
    }


def retrieve(boards, kind, request):
    """The hits of a request for tools or agents, as pairs of id and score."""
    board = boards[request["channel"]]
    options = {name: request[name] for name in ("k", "index", "where")}
    if kind == "requests":
        options |= {"mode": request["mode"], "vector": request["vector"]}
        return [(hit.tool.id, hit.score) for hit in board.search(request["request"], **options)]
    hits = board.search_agents(request["request"], mode="vector", **options)
    return [(hit.agent.id, hit.score) for hit in hits]


def matches(hits, request):
    expected = [(hit["id"], hit["score"]) for hit in request["expected"]]
    tolerance = VECTORS["tolerance"][request.get("mode", "vector")]
    return [name for name, _ in hits] == [name for name, _ in expected] and all(
        abs(score - right) <= tolerance
        for (_, score), (_, right) in zip(hits, expected, strict=True)
    )


@pytest.mark.parametrize("kind", ["requests", "agents"])
def test_pegboard_retrieves_what_the_vectors_expect(boards, kind):
    hits = [(request, retrieve(boards, kind, request)) for request in VECTORS[kind]]

    assert [(request, ranking) for request, ranking in hits if not matches(ranking, request)] == []


def test_the_words_of_the_requests_are_those_of_the_vectors(board_path):
    store = ReleaseStore(board_path)

    for request in VECTORS["requests"]:
        manifest = store.get(store.channel(request["channel"]).release).manifest
        language = manifest["indexes"][request["index"]]["language"]
        meant = spelled_out(request["request"], manifest["glossary"])
        assert query_words(meant, language) == request["words"]
        assert sorted(request_actions(request["request"])) == request["actions"]


def test_channels_lead_to_the_versions_that_the_vectors_name(board_path):
    store = ReleaseStore(board_path)

    assert sorted(channel.name for channel in store.channels()) == sorted(VECTORS["channels"])
    for name, expected in VECTORS["channels"].items():
        channel = store.channel(name)
        assert channel.release == expected["release"]
        assert channel.generation == expected["generation"]
        for table, pin in store.get(channel.release).tables.items():
            values = {"table": pin.table, "version": pin.version, "rows": pin.rows}
            assert values == expected["tables"][table]
            opened = open_table(store.database, pin.table, board_path, pin.version)
            assert opened.count_rows() == pin.rows
    pin = store.get(store.channel().release).tables["tools"]
    assert store.database.open_table(pin.table).version > pin.version
    with pytest.raises(ContractMismatch, match=f"contract {VECTORS['contract'] + 96};"):
        pegboard.open(board_path, "future")


@pytest.mark.slow  # installs a package with npm
def test_node_retrieves_what_the_vectors_expect(board_path):
    modules = lancedb_of_node()

    done = run(
        ["node", HERE / "read.mjs", board_path, HERE / "vectors.json"],
        PEGBOARD_NODE_MODULES=str(modules),
    )
    requests = sum(len(VECTORS[name]) for name in ("requests", "agents", "dependencies"))
    assert done.splitlines()[-1] == f"{requests} requests, 0 differences"


@pytest.fixture(scope="module")
def exported(board_path, tmp_path_factory):
    """The readable releases as Parquet."""
    folder = tmp_path_factory.mktemp("parquet")
    store = ReleaseStore(board_path)
    for channel in VECTORS["channels"].values():
        if channel["readable"]:
            write_parquet(store, store.get(channel["release"]), folder)
    return folder


def test_parquet_readers_retrieve_what_the_vectors_expect(exported):
    done = run([sys.executable, HERE / "read_parquet.py", exported, HERE / "vectors.json"])
    kinds = ("requests", "agents", "dependencies")
    assert done.splitlines() == [f"{kind}: {len(VECTORS[kind])}, 0 differences" for kind in kinds]


def run(command, **environment):
    command = [str(part) for part in command]
    environment = os.environ | environment
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def lancedb_of_node():
    """A folder with @lancedb/lancedb for Node, installed there if needed; skips the test where that
    cannot be.
    """
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    if configured := os.environ.get("PEGBOARD_NODE_MODULES"):
        return Path(configured)
    return node_modules(f"@lancedb/lancedb@{LANCEDB_OF_NODE}")
