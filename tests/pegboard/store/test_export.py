"""A release as Parquet: every row and value of it, whole or not at all, readable as hive
partitions.
"""

import json
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pegboard.cli.main import main
from pegboard.errors import BoardError, ConfigurationError, StoreError
from pegboard.store.contract import key_column
from pegboard.store.database import open_table
from pegboard.store.export import export_release
from pegboard.store.releases import ReleaseStore


@pytest.fixture
def store(board_uri):
    return ReleaseStore(board_uri)


@pytest.fixture
def release(store):
    return store.get(store.channel().release)


def test_every_table_has_every_row_and_value_and_vectors_keep_their_type(
    store, release, encoder, tmp_path
):
    exported = export_release(store, release, tmp_path)

    folder = tmp_path / f"release={release.id}"
    assert exported.folder == str(folder)
    assert exported.rows == {
        "tools": 14, "agents": 6, "edges": 0, "emb_full": 14, "emb_fine": 26,
        "agents_full": 6, "agents_fine": 6,
    }  # fmt: skip
    for name, pin in release.tables.items():
        expected = open_table(store.database, pin.table, store.uri, pin.version).to_arrow()
        read = pq.read_table(folder / name)
        if name != "edges":
            place = read.schema.get_field_index("catalog")
            read = read.set_column(place, "catalog", read.column("catalog").cast(pa.string()))
        read = read.select(expected.schema.names)
        assert read.schema.types == expected.schema.types, name
        rows, key = expected.sort_by(key_column(name)), key_column(name)
        assert read.sort_by(key).to_pylist() == rows.to_pylist(), name
    schema = pq.read_schema(folder / "emb_full" / "catalog=kit" / "part-0.parquet")
    assert schema.field("vector").type == pa.list_(pa.float32(), encoder.dimensions)


def test_duckdb_and_polars_read_it_with_its_partitions(store, release, tmp_path):
    export_release(store, release, tmp_path)
    files = f"{tmp_path}/release=*/tools/*/*.parquet"

    counted = duckdb.sql(
        f"SELECT release, catalog, count(*) FROM read_parquet('{files}', hive_partitioning = "
        f"true) GROUP BY ALL ORDER BY 2"
    )
    vectors = duckdb.sql(
        f"SELECT list_sum(list_transform(vector, lambda x: x * x)) FROM "
        f"'{tmp_path}/*/emb_full/*/*.parquet'"
    )
    frame = pl.read_parquet(files, hive_partitioning=True)

    counts = [("desk", 3), ("finance", 3), ("kit", 8)]
    assert counted.fetchall() == [(release.id, *pair) for pair in counts]
    assert [round(length, 4) for (length,) in vectors.fetchall()] == [1.0] * 14
    assert sorted(frame.get_column("catalog").value_counts().rows()) == counts


def test_an_export_that_exists_is_left_as_it_is(store, release, tmp_path):
    first = export_release(store, release, tmp_path)
    part = Path(first.folder) / "tools" / "catalog=kit" / "part-0.parquet"
    part.write_bytes(b"own")

    with pytest.raises(ConfigurationError, match=r"exists\. Give another folder, or remove"):
        export_release(store, release, tmp_path)
    assert part.read_bytes() == b"own"
    assert [path.name for path in tmp_path.iterdir()] == [f"release={release.id}"]


def test_an_export_that_fails_leaves_nothing_and_names_what_is_wrong(own_board_uri, tmp_path):
    store = ReleaseStore(own_board_uri)
    release = store.get(store.channel().release)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        export_release(store, release, tmp_path / "file")
    with pytest.raises(ConfigurationError, match="s3:// is a store"):
        export_release(store, release, "s3://bucket/parquet")
    shutil.rmtree(Path(own_board_uri) / "tables" / "emb_fine.lance" / "data")

    with pytest.raises(BoardError):
        export_release(store, release, tmp_path / "out")

    assert list((tmp_path / "out").iterdir()) == []


def test_the_command_exports_what_a_channel_names(capsys, board_uri, release, tmp_path):
    options = ["--board", board_uri, "--out"]

    assert main(["export", "live", *options, str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Release {release.id} is written to {tmp_path}/release={release.id}: ")
    assert "  emb_fine: 26 rows\n" in out
    assert main(["export", release.id[:5], *options, str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["tools"] == 14
