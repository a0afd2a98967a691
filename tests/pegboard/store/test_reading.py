"""LanceDB's compiled core: what it answers, and that it and LanceDB's Python package do one another
no harm.
"""

import os
import subprocess
import sys
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest

from pegboard.errors import BoardNotFound, StoreError
from pegboard.store.contract import column_names
from pegboard.store.database import store_errors
from pegboard.store.reading import ReaderDatabase
from pegboard.store.releases import ReleaseStore


def python(code, *arguments, **environment):
    """What a new process prints, line by line."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def full(board_uri):
    store = ReleaseStore(board_uri)
    pin = store.get(store.channel().release).tables["emb_full"]
    return store.read_table(pin.table, pin.version)


def ids(rows):
    return rows.column("tool").to_pylist()


def test_rows_are_read_by_column_condition_and_limit(full):
    assert full.read().num_rows == 14
    assert full.read().column_names == column_names("emb_full")
    weather = full.read(["tool"], "agent = 'kit/weather'")
    assert weather.column_names == ["tool"]
    assert sorted(ids(weather)) == ["kit/weather/getTides_v2", "kit/weather/get_forecast"]
    assert full.read(["tool"], limit=3).num_rows == 3
    assert full.read(["tool"], "false").num_rows == 0
    assert full.read(["tool"], "agent = 'kit/o''brien''s'").num_rows == 1


def test_a_table_shows_new_rows_unless_it_is_pinned(tmp_path):
    plain = lancedb.connect(tmp_path / "tables").create_table("rows", pa.table({"x": [1]}))
    database = ReaderDatabase(str(tmp_path))
    newest, pinned = (database.open_table("rows", version) for version in (None, plain.version))
    plain.add(pa.table({"x": [2]}))

    assert (newest.read().num_rows, pinned.read().num_rows) == (2, 1)
    assert sorted(newest.read().column("x").to_pylist()) == [1, 2]


def test_readers_and_writers_report_errors_in_the_same_words(full, board_uri):
    database = ReaderDatabase(board_uri)
    with pytest.raises(BoardNotFound, match="has no table 'nothing'"):
        database.open_table("nothing")
    with pytest.raises(BoardNotFound, match="has no version 9999 of table 'tools'"):
        database.open_table("tools", 9999)
    with pytest.raises(StoreError, match=r"The store of .* failed: "), store_errors(board_uri):
        full.read(where="nonsense nonsense")


@pytest.mark.parametrize(
    ("name", "base"), [("PanicException", BaseException), ("RustPanic", Exception)]
)
def test_a_panic_of_the_core_over_damaged_bytes_is_reported_as_damage(board_uri, name, base):
    panic = type(name, (base,), {})("rust future panicked: unknown error")

    with (
        pytest.raises(StoreError, match=r"'emb_full' of .* a file of it is damaged.*panicked"),
        store_errors(board_uri, "Table 'emb_full'"),
    ):
        raise panic


READ = """
import sys
import numpy as np
import pegboard
board = pegboard.open(sys.argv[1], in_memory_rows=int(sys.argv[2]))
print(board.search(np.ones(256), 1)[0].tool.id, len(board.search("tide", mode="text")))
"""
LANCEDB = """
import lancedb
table = lancedb.connect(sys.argv[1] + "/tables").open_table("tools")
print(table.count_rows(), len(table.search().where("catalog = 'kit'").to_list()))
"""


@pytest.fixture(scope="module")
def reading(board_uri):
    """What a process of its own reads of the board, and whether it has loaded LanceDB's package."""
    code = READ + "pegboard.open(sys.argv[1], in_memory_rows=50_000).search(np.ones(256), 1)\n"
    # pyarrow imports pandas by itself, where that is installed
    return python(f"{code}print('lancedb' in sys.modules)", board_uri, "0")


@pytest.fixture
def answer(reading):
    """What a process of its own reads of the board."""
    return reading[:1]


def test_reading_needs_no_lancedb_package(reading):
    assert reading[1:] == ["False"]


def test_lancedb_and_the_core_work_in_one_process_whichever_comes_first(board_uri, answer):
    lancedb_first = python("import sys\n" + LANCEDB + READ, board_uri, "0")

    assert python(READ + LANCEDB, board_uri, "0") == [*answer, "14 8"] == lancedb_first[::-1]


def test_an_untested_version_of_the_core_is_refused(board_uri, tmp_path):
    # The same package, in a folder that does not name its version.
    (tmp_path / "lancedb").symlink_to(Path(lancedb.__file__).parent)
    code = "import sys, pegboard\ntry:\n    pegboard.open(sys.argv[1])\n"
    code += "except pegboard.PegboardError as error:\n    print(error)"

    [message] = python(code, board_uri, PYTHONPATH=str(tmp_path))
    assert "pip install 'lancedb>=0.40,<0.41'" in message


FORK = """
import os
from pegboard.errors import StoreError

def result(call):
    try:
        return call()
    except StoreError as error:
        return "forked" in str(error)

sys.stdout.flush()
child = os.fork()
if not child:
    searched = result(lambda: board.search(np.ones(256), 1)[0].tool.id)
    print(searched, result(lambda: pegboard.open(sys.argv[1])))
    print("forked" in (board.status().error or ""), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(board.search(np.ones(256), 1)[0].tool.id, board.status().error)
"""


def test_a_forked_child_answers_from_memory_and_reports_why_it_cannot_check(board_uri):
    code = READ.replace("in_memory_rows", "refresh=0, in_memory_rows") + FORK
    in_memory, large = (python(code, board_uri, rows) for rows in ("50000", "0"))
    tool = in_memory[0].split()[0]

    assert in_memory[1:] == [f"{tool} True", "True", f"{tool} None"]
    assert large[1] == "True True"
