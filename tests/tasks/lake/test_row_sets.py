"""Row sets: whatever was added, changed and taken out, a set reads like a table, and is stored as
little more than what changed.
"""

import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import StoreError
from tasks.lake import row_sets
from tasks.lake.files import Lake

SCHEMA = {"id": pl.String, "digest": pl.String, "words": pl.List(pl.String)}
TABLES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), max_size=8)


def frame(table):
    """The rows of a table key -> edition, as a catalog would give them in any order."""
    rows = [
        {"id": key, "digest": f"{key}{edition}", "words": [key] * edition}
        for key, edition in table.items()
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def many(edition=0, changed=()):
    """A table of a hundred rows, some of which are of another edition."""
    return {f"row {number:03}": edition if number in changed else 0 for number in range(100)}


def store(lake, *tables, path="things", base=None):
    """Store each table as a set made from the one before; returns the last."""
    for number, table in enumerate(tables):
        base = row_sets.write_frame(lake, f"{path}/{number}", "id", frame(table), base, ["digest"])
    return base


def change(lake, base, path="things/b"):
    """Store a set like the first one, but for row 7."""
    return row_sets.write_frame(lake, path, "id", frame(many(1, {7})), base, ["digest"])


@settings(max_examples=20)
@given(st.lists(TABLES, min_size=1, max_size=8), st.sets(st.sampled_from("abcdefghxyz")))
def test_a_set_reads_like_the_table_that_it_was_made_of(tmp_path_factory, tables, keys):
    lake = Lake(str(tmp_path_factory.mktemp("lake")))

    store(lake, *tables)

    for number, table in enumerate(tables):
        expected = frame(table).sort("id")
        path = f"things/{number}"
        assert row_sets.read_rows(lake, path).equals(expected)
        assert row_sets.find_rows(lake, path).rows == expected.height
        assert row_sets.read_rows(lake, path, ["digest"]).equals(expected.select("digest"))
        chosen = expected.filter(pl.col("id").is_in(sorted(keys)))
        assert row_sets.read_rows(lake, path, ["words", "id"], keys).equals(
            chosen.select("words", "id")
        )


def test_only_what_changed_is_written_and_a_removed_row_is_a_tombstone(lake):
    first = store(lake, many())
    assert store(lake, many(), path="same", base=first).layers == first.layers

    second = change(lake, first)
    third = row_sets.write_rows(lake, "things/c", "id", frame({}), second, ["row 050"])

    assert third.layers[:-1] == second.layers
    assert second.layers[:-1] == first.layers
    assert lake.read(second.layers[-1].path).get_column("id").to_list() == ["row 007"]
    assert third.rows == 99
    tombstone = {"id": "row 050", "digest": None, "words": None, row_sets.GONE: True}
    assert lake.read(third.layers[-1].path).rows(named=True) == [tombstone]


def test_many_layers_become_one_and_so_do_many_replaced_rows(lake):
    base = store(lake, many())
    layers = []
    for number in range(1, 60):
        table = frame(many(number, {number}))
        base = row_sets.write_frame(lake, f"things/{number}", "id", table, base, ["digest"])
        layers.append(len(base.layers))
        assert sum(layer.rows for layer in base.layers) <= row_sets.MOST_STORED * 100
        assert row_sets.read_rows(lake, base.path).equals(table)

    assert max(layers) == row_sets.MOST_LAYERS
    assert layers.count(1) >= 1


@pytest.mark.parametrize("damage", [b"", b"{not json", b"PAR1 nothing PAR1", None])
@pytest.mark.parametrize("place", ["things/0.json", "layers", "things/latest.json"])
def test_a_damaged_base_is_none_and_all_is_written_again(lake, lake_files, damage, place):
    row_sets.point_to(lake, "things/latest", store(lake, many()).path)
    for name, path in lake_files().items():
        if place in name:
            path.unlink() if damage is None else path.write_bytes(damage)

    second = change(lake, row_sets.latest_rows(lake, "things/latest"))

    assert len(second.layers) == 1
    assert row_sets.read_rows(lake, second.path).equals(frame(many(1, {7})))


def test_a_set_that_is_missing_or_incomplete_is_not_there(lake):
    first = store(lake, many())
    shutil.rmtree(Path(lake.uri) / "things" / "layers")

    assert row_sets.find_rows(lake, first.path) is None
    with pytest.raises(StoreError, match=r"things/none.json is missing or damaged.*pegboard build"):
        row_sets.read_rows(lake, "things/none")
