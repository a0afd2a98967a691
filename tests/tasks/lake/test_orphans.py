"""What belongs to nothing: files that killed writers left in tables, and sets of the lake to which
nothing leads.
"""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import lancedb
import pyarrow as pa
import pytest
from lancedb.index import BTree

from tasks.lake.files import Lake
from tasks.lake.leftovers import remove_orphans, remove_unused_files, superseded
from tasks.maintain import open_dataset
from tests.children import end_child, start_child

HOUR = timedelta(hours=1)


@pytest.fixture
def table(tmp_path):
    """A table with three versions, a scalar index and some deleted rows."""
    made = lancedb.connect(tmp_path / "tables").create_table(
        "emb_full", pa.table({"key": ["a", "b", "c"]})
    )
    made.create_index("key", config=BTree())
    made.delete("key = 'a'")
    return made


def stored(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def put(path, age=timedelta(0), content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    then = (datetime.now(UTC) - age).timestamp()
    os.utime(path, (then, then))
    return path


def test_files_to_which_no_version_refers_go_when_they_are_old_enough(table, tmp_path):
    folder = tmp_path / "tables" / "emb_full.lance"
    before = stored(folder)
    old = [
        put(folder / name, 2 * HOUR)
        for name in (
            "data/dead.lance",
            "_deletions/9-9-9.arrow",
            "_indices/dead/a.idx",
            "_transactions/9-dead.txn",
        )
    ]
    young = put(folder / "data" / "young.lance", HOUR / 2)
    other = put(folder / "notes.txt", 2 * HOUR)

    said = remove_orphans(str(tmp_path), "emb_full", datetime.now(UTC) - HOUR, dry_run=True)
    assert all(path.exists() for path in old)
    done = remove_orphans(str(tmp_path), "emb_full", datetime.now(UTC) - HOUR, dry_run=False)

    assert (done, done.count, done.bytes) == (said, 4, 4)
    assert stored(folder) == before | {"data/young.lance", "notes.txt"}
    assert young.exists()
    assert other.exists()


def test_nothing_of_a_sound_table_is_an_orphan_however_old(table, tmp_path):
    folder = tmp_path / "tables" / "emb_full.lance"
    before = stored(folder)

    done = remove_orphans(str(tmp_path), "emb_full", datetime.now(UTC) + HOUR, dry_run=False)

    assert done.count == 0
    assert stored(folder) == before
    for version in range(1, table.version + 1):
        assert open_dataset(str(tmp_path), "emb_full", version).count_rows("key >= 'a'") in (2, 3)


def test_a_version_may_go_when_it_was_replaced_long_ago_and_is_not_pinned(table, tmp_path):
    dataset = open_dataset(str(tmp_path), "emb_full")
    now = datetime.now(UTC)

    assert superseded(dataset, now - HOUR, []) == []
    assert superseded(dataset, now + HOUR, []) == list(range(1, table.version))
    assert superseded(dataset, now + HOUR, [2]) == [
        one for one in range(1, table.version) if one != 2
    ]


WRITER = """
import sys, lancedb, pyarrow as pa, numpy as np
table = lancedb.connect(sys.argv[1]).open_table("emb_full")
print("ready", flush=True)
number = 0
while True:
    number += 1
    rows = pa.table({"key": [f"{number}-{row}" for row in range(20_000)]})
    table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all().execute(rows)
"""


def test_what_killed_merges_leave_goes_and_the_table_stays_as_it_was(table, tmp_path):
    folder = tmp_path / "tables" / "emb_full.lance"
    table.drop_index("key_idx")
    uri = str(tmp_path)
    with start_child(
        [sys.executable, "-c", WRITER, f"{uri}/tables"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "ready\n"
        while True:  # until the writer stands in the middle of a merge
            writer.send_signal(signal.SIGSTOP)
            os.waitpid(writer.pid, os.WUNTRACED)
            if remove_orphans(uri, "emb_full", datetime.now(UTC) + HOUR, dry_run=True).count:
                break
            writer.send_signal(signal.SIGCONT)
            time.sleep(0.001)
        writer.kill()
        end_child(writer)
    rows = open_dataset(uri, "emb_full").count_rows()

    assert remove_orphans(uri, "emb_full", datetime.now(UTC) + HOUR, dry_run=False).count > 0
    assert open_dataset(uri, "emb_full").count_rows("key != ''") == rows
    assert (
        remove_orphans(str(tmp_path), "emb_full", datetime.now(UTC) + HOUR, dry_run=False).count
        == 0
    )
    assert stored(folder)


def hexed(letter):
    return letter * 64


@pytest.fixture
def lake(tmp_path):
    """A lake with two states of a catalog, of which the second is pointed to and the first is a
    release's.
    """
    root = tmp_path / "lake"
    age = 60 * 24 * HOUR
    for letter, layers in (("a", "1"), ("b", "12"), ("c", "13")):
        listed = {
            "layers": [{"path": f"snapshots/kit/layers/{hexed(one)}.parquet"} for one in layers]
        }
        put(root / f"snapshots/kit/{hexed(letter)}/tools.json", age, json.dumps(listed))
    for one in "123":
        put(root / f"snapshots/kit/layers/{hexed(one)}.parquet", age)
    put(
        root / "snapshots/kit/latest.json",
        age,
        json.dumps({"snapshot": hexed("b"), "rejected": hexed("d")}),
    )
    put(root / f"snapshots/kit/rejected-{hexed('d')}.parquet", age)
    put(
        root / f"documents/latest-{hexed('9')}.json",
        age,
        json.dumps({"path": f"documents/{hexed('e')}"}),
    )
    put(root / f"documents/{hexed('e')}.json", age, json.dumps({"layers": []}))
    put(root / f"documents/{hexed('f')}.json", age, json.dumps({"layers": []}))
    put(root / f"enriched/{hexed('7')}/tools.parquet", age)
    put(root / f"generated/{hexed('8')}/tools.parquet", 3 * HOUR)
    put(root / f"vectors/0123/{hexed('f')}.parquet", age)
    put(root / f"ledger/{hexed('f')}.parquet", age)
    put(root / f"vectors/0123/{hexed('f')}.parquet.77.tmp", age)
    put(root / "documents/x.json.78.tmp", HOUR / 2)
    put(root / "prune.json", age, "{}")
    return root


def run(tmp_path, releases, dry_run=False):
    now = datetime.now(UTC)
    return remove_unused_files(
        str(tmp_path), releases, before=now - HOUR, unused=now - 30 * 24 * HOUR, dry_run=dry_run
    )


def test_a_set_of_the_lake_stays_while_a_pointer_or_a_release_leads_to_it(lake, tmp_path):
    before = stored(lake)
    release = SimpleNamespace(manifest={"catalogs": {"kit": {"snapshot": hexed("a")}}})

    said = run(tmp_path, [release], dry_run=True)
    assert stored(lake) == before
    done = run(tmp_path, [release])

    assert done == said
    assert before - stored(lake) == {
        f"snapshots/kit/{hexed('c')}/tools.json",
        f"snapshots/kit/layers/{hexed('3')}.parquet",
        f"documents/{hexed('f')}.json",
        f"enriched/{hexed('7')}/tools.parquet",
        f"vectors/0123/{hexed('f')}.parquet.77.tmp",
    }
    assert done.count == 5
    assert run(tmp_path, [release]).count == 0


def test_a_layer_goes_with_the_last_set_that_lists_it(lake, tmp_path):
    run(tmp_path, [])

    assert not (lake / f"snapshots/kit/{hexed('a')}/tools.json").exists()
    assert (lake / f"snapshots/kit/layers/{hexed('1')}.parquet").exists()


def test_a_lake_that_is_not_there_is_no_error(tmp_path):
    assert run(tmp_path, []).count == 0


def test_the_next_run_makes_again_what_was_removed(workshop, hashing):
    encoder = hashing(8)
    first = workshop.publish({"git": [workshop.tool("one"), workshop.tool("two")]}, encoder=encoder)
    lake = workshop.folder / "board" / "lake"
    for path in lake.rglob("*"):
        if path.is_file():
            os.utime(path, (0, 0))
    second = workshop.publish({"git": [workshop.tool("one")]}, encoder=encoder)
    now = datetime.now(UTC)
    gone = remove_unused_files(
        workshop.uri, [second.release], before=now, unused=now - HOUR, dry_run=False
    )

    back = workshop.publish({"git": [workshop.tool("one"), workshop.tool("two")]}, encoder=encoder)

    assert gone.count > 0
    assert (back.spec.release, back.encoded) == (first.release.id, 0)
    assert Lake(workshop.uri).read_json("snapshots/kit/latest.json")["tools"] == 2
