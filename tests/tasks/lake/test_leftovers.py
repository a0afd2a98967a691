"""Sets of the lake to which nothing leads."""

import json
import os
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tasks.lake.leftovers import remove_unused_files

HOUR = timedelta(hours=1)
MONTHS = 60 * 24 * HOUR


def stored(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def put(path, age=timedelta(0), content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    written = (datetime.now(UTC) - age).timestamp()
    os.utime(path, (written, written))
    return path


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
    pointer = {"snapshot": hexed("b")}
    texts = {
        **{layer(name): "x" for name in "123"},
        "snapshots/kit/latest.json": json.dumps(pointer),
        f"documents/latest-{hexed('9')}.json": json.dumps({"path": f"documents/{hexed('e')}"}),
        f"documents/{hexed('e')}.json": json.dumps({"layers": []}),
        f"documents/{hexed('f')}.json": json.dumps({"layers": []}),
        f"generated/{hexed('7')}/tools.parquet": "x",
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
    freed = run(tmp_path, [release])

    assert freed == dry > 0
    assert before - stored(root) == {
        f"snapshots/kit/{hexed('c')}/tools.json",
        f"snapshots/kit/layers/{hexed('3')}.parquet",
        f"documents/{hexed('f')}.json",
        f"generated/{hexed('7')}/tools.parquet",
        f"vectors/0123/{hexed('f')}.parquet.77.tmp",
    }
    assert run(tmp_path, [release]) == 0
    # Without the release its set goes, but not the layer that another set shares.
    run(tmp_path, [])
    assert not (root / f"snapshots/kit/{hexed('a')}/tools.json").exists()
    assert (root / f"snapshots/kit/layers/{hexed('1')}.parquet").exists()


def test_a_lake_that_is_not_there_is_no_error(tmp_path):
    assert run(tmp_path, []) == 0
