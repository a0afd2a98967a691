"""What nothing needs: files that killed writers left in tables, and sets of the lake to which
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

from tasks.lake.leftovers import remove_orphans, remove_unused_files, superseded
from tasks.maintain import open_dataset
from tests.children import end_child, start_child

HOUR = timedelta(hours=1)
MONTHS = 60 * 24 * HOUR


@pytest.fixture
def table(tmp_path):
    """A table with three versions, a scalar index and some deleted rows."""
    rows = pa.table({"key": ["a", "b", "c"]})
    table = lancedb.connect(tmp_path / "tables").create_table("emb_full", rows)
    table.create_index("key", config=BTree())
    table.delete("key = 'a'")
    return table


def stored(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def put(path, age=timedelta(0), content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    written = (datetime.now(UTC) - age).timestamp()
    os.utime(path, (written, written))
    return path


def orphans(tmp_path, age, dry_run=False):
    """Remove the orphans of the table that are older."""
    return remove_orphans(str(tmp_path), "emb_full", datetime.now(UTC) - age, dry_run=dry_run)


def test_files_to_which_no_version_refers_go_when_they_are_old_enough(table, tmp_path):
    folder = tmp_path / "tables" / "emb_full.lance"
    before = stored(folder)
    assert orphans(tmp_path, -HOUR).count == 0  # nothing of a sound table is one, however old
    names = ("data/dead.lance", "_deletions/9.arrow", "_indices/dead/a.idx", "_transactions/9.txn")
    old = [put(folder / name, 2 * HOUR) for name in names]
    put(folder / "data" / "young.lance", HOUR / 2)
    put(folder / "notes.txt", 2 * HOUR)

    dry = orphans(tmp_path, HOUR, dry_run=True)
    assert all(path.exists() for path in old)
    removed = orphans(tmp_path, HOUR)

    assert (removed, removed.count, removed.bytes) == (dry, 4, 4)
    assert stored(folder) == before | {"data/young.lance", "notes.txt"}
    for version in range(1, table.version + 1):
        assert open_dataset(str(tmp_path), "emb_full", version).count_rows("key >= 'a'") in (2, 3)


def test_a_version_may_go_when_it_was_replaced_long_ago_and_is_not_pinned(table, tmp_path):
    dataset = open_dataset(str(tmp_path), "emb_full")
    now, older = datetime.now(UTC), list(range(1, table.version))

    assert superseded(dataset, now - HOUR, []) == []
    assert superseded(dataset, now + HOUR, []) == older
    assert superseded(dataset, now + HOUR, [2]) == [version for version in older if version != 2]


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
    table.drop_index("key_idx")
    command = [sys.executable, "-c", WRITER, str(tmp_path / "tables")]
    with start_child(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "ready\n"
        while True:  # until the writer stands in the middle of a merge
            writer.send_signal(signal.SIGSTOP)
            os.waitpid(writer.pid, os.WUNTRACED)
            if orphans(tmp_path, -HOUR, dry_run=True).count:
                break
            writer.send_signal(signal.SIGCONT)
            time.sleep(0.001)
        writer.kill()
        end_child(writer)
    rows = open_dataset(str(tmp_path), "emb_full").count_rows()

    assert orphans(tmp_path, -HOUR).count > 0
    assert open_dataset(str(tmp_path), "emb_full").count_rows("key != ''") == rows
    assert orphans(tmp_path, -HOUR).count == 0


def hexed(letter):
    return letter * 64


def layer(letter):
    return f"snapshots/kit/layers/{hexed(letter)}.parquet"


@pytest.fixture
def root(tmp_path):
    """A lake with three states of a catalog, a, b and c: b is pointed to, and a is a release's."""
    root = tmp_path / "lake"
    for letter, layers in (("a", "1"), ("b", "12"), ("c", "13")):
        record = {"layers": [{"path": layer(name)} for name in layers]}
        put(root / f"snapshots/kit/{hexed(letter)}/tools.json", MONTHS, json.dumps(record))
    pointer = {"snapshot": hexed("b"), "rejected": hexed("d")}
    texts = {
        **{layer(name): "x" for name in "123"},
        "snapshots/kit/latest.json": json.dumps(pointer),
        f"snapshots/kit/rejected-{hexed('d')}.parquet": "x",
        f"documents/latest-{hexed('9')}.json": json.dumps({"path": f"documents/{hexed('e')}"}),
        f"documents/{hexed('e')}.json": json.dumps({"layers": []}),
        f"documents/{hexed('f')}.json": json.dumps({"layers": []}),
        f"enriched/{hexed('7')}/tools.parquet": "x",
        f"vectors/0123/{hexed('f')}.parquet": "x",
        f"ledger/{hexed('f')}.parquet": "x",
        f"vectors/0123/{hexed('f')}.parquet.77.tmp": "x",
        "prune.json": "{}",
    }
    for path, text in texts.items():
        put(root / path, MONTHS, text)
    put(root / f"generated/{hexed('8')}/tools.parquet", 3 * HOUR)
    put(root / "documents/x.json.78.tmp", HOUR / 2)
    return root


def run(tmp_path, releases, dry_run=False):
    now = datetime.now(UTC)
    times = {"before": now - HOUR, "unused": now - 30 * 24 * HOUR}
    return remove_unused_files(str(tmp_path), releases, dry_run=dry_run, **times)


def test_a_set_of_the_lake_stays_while_a_pointer_or_a_release_leads_to_it(root, tmp_path):
    before = stored(root)
    release = SimpleNamespace(manifest={"catalogs": {"kit": {"snapshot": hexed("a")}}})

    dry = run(tmp_path, [release], dry_run=True)
    assert stored(root) == before
    removed = run(tmp_path, [release])

    assert removed == dry
    assert before - stored(root) == {
        f"snapshots/kit/{hexed('c')}/tools.json",
        f"snapshots/kit/layers/{hexed('3')}.parquet",
        f"documents/{hexed('f')}.json",
        f"enriched/{hexed('7')}/tools.parquet",
        f"vectors/0123/{hexed('f')}.parquet.77.tmp",
    }
    assert run(tmp_path, [release]).count == 0
    # Without the release its set goes, but not the layer that another set shares.
    run(tmp_path, [])
    assert not (root / f"snapshots/kit/{hexed('a')}/tools.json").exists()
    assert (root / f"snapshots/kit/layers/{hexed('1')}.parquet").exists()


def test_a_lake_that_is_not_there_is_no_error(tmp_path):
    assert run(tmp_path, []).count == 0


def test_the_next_run_makes_again_what_was_removed(workshop, hashing):
    encoder, (one, two) = hashing(8), map(workshop.tool, ("one", "two"))
    first = workshop.publish({"git": [one, two]}, encoder=encoder)
    for path in (workshop.folder / "board" / "lake").rglob("*"):
        if path.is_file():
            os.utime(path, (0, 0))
    second = workshop.publish({"git": [one]}, encoder=encoder)
    removed = run(workshop.uri, [second.release])

    again = workshop.publish({"git": [one, two]}, encoder=encoder)

    assert removed.count > 0
    assert (again.spec.release, again.encoded) == (first.release.id, 0)
    assert workshop.lake.read_json("snapshots/kit/latest.json")["tools"] == 2
