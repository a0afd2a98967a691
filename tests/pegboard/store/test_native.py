"""LanceDB's compiled core and its Python package, behind one interface: the same answers, and no
harm to one another.
"""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import pytest

import pegboard
from pegboard.errors import BoardNotFound, StoreError
from pegboard.store.contract import column_names
from pegboard.store.database import PUBLIC, PublicTable, ReaderDatabase, store_errors
from pegboard.store.native import NativeTable, core
from pegboard.store.releases import ReleaseStore

WAYS = {"core": NativeTable, "public": PublicTable}


def python(code, *arguments, **environment):
    """What a new process prints, line by line."""
    import os

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(params=list(WAYS))
def way(request, monkeypatch):
    monkeypatch.setenv(PUBLIC, request.param)
    return request.param


@pytest.fixture
def full(way, board_uri):
    store = ReleaseStore(board_uri)
    pin = store.get(store.channel().release).tables["emb_full"]
    table = store.read_table(pin.table, pin.version)
    assert type(table) is WAYS[way]
    return table


def ids(rows):
    return rows.column("tool").to_pylist()


def test_rows_are_read_by_column_condition_and_limit(full):
    assert full.read().num_rows == 14
    assert full.read().column_names == column_names("emb_full")
    assert full.indexed_columns() == set()
    weather = full.read(["tool"], "agent = 'kit/weather'")
    assert weather.column_names == ["tool"]
    assert sorted(ids(weather)) == ["kit/weather/getTides_v2", "kit/weather/get_forecast"]
    assert full.read(["tool"], limit=3).num_rows == 3
    assert full.read(["tool"], "false").num_rows == 0
    assert full.read(["tool"], "agent = 'kit/o''brien''s'").num_rows == 1


def test_the_nearest_rows_come_nearest_first(full, encoder):
    rows = full.read(["tool", "vector"])
    query = encoder.encode(["will it rain?"])[0]
    vectors = np.array(rows.column("vector").to_pylist(), dtype=np.float32)
    expected = [ids(rows)[place] for place in np.argsort(-(vectors @ query))]

    found = full.nearest(query, 5, ["tool", "part"], nprobes=3, ef=64, refine=2)
    assert found.column_names == ["tool", "part", "_distance"]
    assert ids(found) == expected[:5]
    kit = full.nearest(query, 100, ["tool"], where="catalog = 'kit'")
    assert ids(kit) == [one for one in expected if one.startswith("kit/")]


def test_rows_match_words(full):
    found = full.matching("tide issue", 5, ["tool"])

    assert found.column_names == ["tool", "_score"]
    assert set(ids(found)) == {"kit/weather/getTides_v2", "kit/git/create_issue"}
    assert ids(
        full.matching("tide issue", 5, ["tool"], where="agent = 'kit/git'", prefilter=False)
    ) == ["kit/git/create_issue"]


def test_a_handle_sees_newer_rows_unless_it_is_at_a_version(way, tmp_path):
    plain = lancedb.connect(tmp_path / "tables").create_table("rows", pa.table({"x": [1]}))
    database = ReaderDatabase(str(tmp_path))
    newest, pinned = (database.open_table("rows", version) for version in (None, plain.version))
    plain.add(pa.table({"x": [2]}))

    assert (newest.read().num_rows, pinned.read().num_rows) == (2, 1)
    assert sorted(newest.read().column("x").to_pylist()) == [1, 2]


def test_what_is_missing_and_what_fails_is_said_in_the_same_words(full, board_uri):
    database = ReaderDatabase(board_uri)
    with pytest.raises(BoardNotFound, match="has no table 'nothing'"):
        database.open_table("nothing")
    with pytest.raises(BoardNotFound, match="has no version 9999 of table 'tools'"):
        database.open_table("tools", 9999)
    with pytest.raises(StoreError, match="did not do what was asked"), store_errors(board_uri):
        full.read(where="nonsense nonsense")


def test_threads_with_and_without_an_event_loop_ask_at_once(full):
    import asyncio

    async def within_a_loop():
        return full.read().num_rows

    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(full.read, ["tool"]) for _ in range(100)]
        looped = [pool.submit(lambda: asyncio.run(within_a_loop())) for _ in range(20)]
        assert {one.result().num_rows for one in asked} == {14}
        assert {one.result() for one in looped} == {14}


@pytest.fixture(scope="module")
def answer(board_uri):
    """What a process of its own reads of the board."""
    return python(READ, board_uri, "0")


READ = """
import sys
import numpy as np
import pegboard
board = pegboard.open(sys.argv[1], in_memory_rows=int(sys.argv[2]))
print(board.search(np.ones(256), 1)[0].tool.id, len(board.search("tide", mode="text")))
"""


def test_reading_needs_no_lancedb_package(board_uri):
    code = READ + "pegboard.open(sys.argv[1], in_memory_rows=50_000).search(np.ones(256), 1)\n"
    # pyarrow imports pandas by itself, where that is installed
    code += "print('lancedb' in sys.modules)"

    assert python(code, board_uri, "0")[1:] == ["False"]
    assert python(code, board_uri, "0", PEGBOARD_LANCEDB="public")[1:] == ["True"]


LANCEDB = """
import lancedb
table = lancedb.connect(sys.argv[1] + "/tables").open_table("tools")
print(table.count_rows(), len(table.search().where("catalog = 'kit'").to_list()))
"""


def test_lancedb_and_the_core_work_in_one_process_whichever_comes_first(board_uri):
    first = python(READ + LANCEDB, board_uri, "0")
    last = python("import sys\n" + LANCEDB + READ, board_uri, "0")

    assert first == last[::-1]
    assert first[1] == "14 8"


def test_lancedb_may_be_imported_by_another_thread_meanwhile(board_uri):
    code = (
        "import sys, threading\ndef importing():\n    import lancedb\n    "
        "done.append(lancedb.__version__)\n"
        "done = []\nthread = threading.Thread(target=importing)\nthread.start()\n"
        + READ
        + "thread.join()\n"
        "import pegboard.store.native\nprint(len(done), pegboard.store.native.core() is "
        "sys.modules['lancedb._lancedb'])"
    )
    assert python(code, board_uri, "0")[1] == "1 True"


def test_the_package_is_taken_where_the_version_of_the_core_is_not_known(
    board_uri, answer, tmp_path
):
    # The same package, found in a folder that says nothing of its version.
    (tmp_path / "lancedb").symlink_to(Path(lancedb.__file__).parent)
    code = READ + (
        "import pegboard.store.native\nprint(pegboard.store.native.core(), 'lancedb' in "
        "sys.modules)"
    )

    assert python(code, board_uri, "0", PYTHONPATH=str(tmp_path)) == [*answer, "None True"]


FORK = """
import os
from pegboard.errors import StoreError

def tried(ask):
    try:
        return ask()
    except StoreError as error:
        return "forked" in str(error)

sys.stdout.flush()
child = os.fork()
if not child:
    searched = tried(lambda: board.search(np.ones(256), 1)[0].tool.id)
    print(searched, tried(lambda: pegboard.open(sys.argv[1])))
    print("forked" in (board.status().error or ""), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(board.search(np.ones(256), 1)[0].tool.id, board.status().error)
"""


def test_a_forked_child_answers_from_memory_and_says_why_it_does_not_look(board_uri):
    code = READ.replace("in_memory_rows", "refresh=0, in_memory_rows") + FORK
    (first, child, looked, last), (_, large, _, _) = (
        python(code, board_uri, rows) for rows in ("50000", "0")
    )
    tool = first.split()[0]

    assert (child, looked, last) == (f"{tool} True", "True", f"{tool} None")
    assert large == "True True"


def test_a_child_of_a_process_that_read_nothing_reads(board_uri, answer):
    code = (
        "import os, sys\nimport pegboard.board, "
        "pegboard.store.native\npegboard.store.native.core()\nchild = os.fork()\n"
        "if child:\n    sys.exit(os.waitpid(child, 0)[1])\n" + READ
    )
    assert python(code, board_uri, "0") == answer


def test_the_core_is_loaded_once(board_uri):
    found = []
    threads = [threading.Thread(target=lambda: found.append(core())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert {id(one) for one in found} == {id(sys.modules["lancedb._lancedb"])}
    assert pegboard.open(board_uri).release.id
