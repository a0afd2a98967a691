"""Row sets: whatever was added, changed and taken out, a set reads like a table, and is stored as
little more than what changed.
"""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.errors import StoreError
from tasks.lake.files import Lake
from tasks.lake.row_sets import (
    GONE,
    MOST_LAYERS,
    MOST_STORED,
    find_rows,
    latest_rows,
    point_to,
    read_rows,
    write_frame,
    write_rows,
)

SCHEMA = {"id": pl.String, "digest": pl.String, "words": pl.List(pl.String)}
TABLES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), max_size=8)


def frame(table):
    """The rows of a table key -> edition, as a catalog would give them in any order."""
    rows = [
        {"id": key, "digest": f"{key}{edition}", "words": [key] * edition}
        for key, edition in table.items()
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def many(edition, changed=()):
    """A table of a hundred rows, some of which are of another edition."""
    return {f"row {number:03}": edition if number in changed else 0 for number in range(100)}


@pytest.fixture
def lake(tmp_path):
    return Lake(str(tmp_path))


def files(lake):
    return {
        path.relative_to(lake.uri).as_posix(): path
        for path in Path(lake.uri).rglob("*")
        if path.is_file()
    }


def store(lake, tables):
    """Each table as a set made from the one before; the last."""
    base = None
    for number, table in enumerate(tables):
        base = write_frame(lake, f"things/{number}", "id", frame(table), base, ["digest"])
    return base


@settings(max_examples=20)
@given(st.lists(TABLES, min_size=1, max_size=8), st.sets(st.sampled_from("abcdefghxyz")))
def test_a_set_reads_like_the_table_that_it_was_made_of(tmp_path_factory, tables, keys):
    lake = Lake(str(tmp_path_factory.mktemp("lake")))

    store(lake, tables)

    for number, table in enumerate(tables):
        expected, path = frame(table).sort("id"), f"things/{number}"
        assert read_rows(lake, path).equals(expected)
        assert find_rows(lake, path).rows == expected.height
        assert read_rows(lake, path, ["digest"]).equals(expected.select("digest"))
        chosen = expected.filter(pl.col("id").is_in(sorted(keys)))
        assert read_rows(lake, path, ["words", "id"], keys).equals(chosen.select("words", "id"))


def test_only_what_changed_is_written(lake):
    first = store(lake, [many(0)])

    second = write_frame(lake, "things/b", "id", frame(many(1, {7, 8})), first, ["digest"])

    assert second.layers[:-1] == first.layers
    assert lake.read(second.layers[-1].path).get_column("id").to_list() == ["row 007", "row 008"]


def test_a_row_that_went_is_a_tombstone_of_nothing_but_its_key(lake):
    first = store(lake, [many(0)])

    second = write_rows(lake, "things/b", "id", frame({}), first, ["row 050"])

    assert second.rows == 99
    assert lake.read(second.layers[-1].path).rows(named=True) == [
        {"id": "row 050", "digest": None, "words": None, GONE: True}
    ]


def test_a_set_of_the_same_rows_has_the_same_layers(lake):
    first = store(lake, [many(0)])

    second = write_frame(lake, "things/b", "id", frame(many(0)), first, ["digest"])

    assert second.layers == first.layers


def test_many_layers_become_two_and_many_replaced_rows_become_one(lake):
    base, layers = store(lake, [many(0)]), []
    for number in range(1, 60):
        base = write_frame(
            lake, f"things/{number}", "id", frame(many(number, {number})), base, ["digest"]
        )
        layers.append(len(base.layers))
        assert sum(layer.rows for layer in base.layers) <= MOST_STORED * 100
        assert read_rows(lake, base.path).equals(frame(many(number, {number})))

    assert max(layers) == MOST_LAYERS
    assert layers.count(1) >= 1


def test_keys_in_the_newest_layer_are_read_without_the_ones_below(lake):
    first = store(lake, [many(0)])
    second = write_frame(lake, "things/b", "id", frame(many(1, {7})), first, ["digest"])
    lake.delete(first.layers[0].path)

    assert read_rows(lake, second.path, ["digest"], ["row 007"]).rows() == [("row 0071",)]
    with pytest.raises(StoreError):
        read_rows(lake, second.path, ["digest"], ["row 008"])


@pytest.mark.parametrize("damage", [b"", b"{not json", b"PAR1 nothing PAR1", None])
@pytest.mark.parametrize("what", ["things/0.json", "layers", "things/latest.json"])
def test_a_base_that_is_damaged_is_none_and_all_is_written_again(lake, damage, what):
    point_to(lake, "things/latest", store(lake, [many(0)]).path)
    for name, path in files(lake).items():
        if what in name:
            path.unlink() if damage is None else path.write_bytes(damage)

    second = write_frame(
        lake, "things/b", "id", frame(many(1, {7})), latest_rows(lake, "things/latest"), ["digest"]
    )

    assert len(second.layers) == 1
    assert read_rows(lake, second.path).equals(frame(many(1, {7})))


def test_a_layer_that_is_damaged_is_replaced_when_its_set_is_made_again(lake):
    first = store(lake, [many(0)])
    files(lake)[first.layers[0].path].write_bytes(b"PAR1")
    lake.delete("things/0.json")

    again = store(lake, [many(0)])

    assert again == first
    assert read_rows(lake, again.path).equals(frame(many(0)))


def test_a_run_that_was_killed_before_the_end_leaves_no_set(lake, tmp_path):
    first = store(lake, [many(0)])
    second = write_frame(lake, "things/b", "id", frame(many(1, {7})), first, ["digest"])
    lake.delete("things/b.json")  # the last thing that is written

    assert find_rows(lake, "things/b") is None
    assert read_rows(lake, first.path).equals(frame(many(0)))
    assert write_frame(lake, "things/b", "id", frame(many(1, {7})), first, ["digest"]) == second


def test_the_same_steps_give_the_same_files(lake, tmp_path):
    other = Lake(str(tmp_path / "other"))
    for one in (lake, other):
        store(one, [many(0), many(1, {1, 2}), many(2, {5})])

    mine = {
        name: path.read_bytes() for name, path in files(lake).items() if name.startswith("things")
    }
    assert mine == {name: path.read_bytes() for name, path in files(other).items()}


def test_a_set_that_is_not_there_is_said_with_what_to_do(lake):
    with pytest.raises(StoreError, match=r"things/none.json is missing or damaged.* run again"):
        read_rows(lake, "things/none")


def test_a_set_without_all_of_its_layers_is_not_found(lake):
    first = store(lake, [many(0)])
    shutil.rmtree(Path(lake.uri) / "things" / "layers")

    assert find_rows(lake, first.path) is None
    assert json.loads(files(lake)["things/0.json"].read_bytes())["rows"] == 100
