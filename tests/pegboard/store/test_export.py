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
from pegboard.store.contract import CONTRACT, key_column
from pegboard.store.database import open_table
from pegboard.store.export import export_release
from pegboard.store.releases import ReleaseStore


@pytest.fixture
def store(board_uri):
    return ReleaseStore(board_uri)


@pytest.fixture
def release(store):
    return store.get(store.channel().release)


def stored(store, release, name):
    pin = release.tables[name]
    return open_table(store.database, pin.table, store.uri, pin.version).to_arrow()


def test_every_table_has_every_row_and_value_and_vectors_keep_their_type(
    store, release, encoder, tmp_path
):
    exported = export_release(store, release, tmp_path)

    folder = tmp_path / f"release={release.id}"
    assert (exported.folder, exported.written) == (str(folder), True)
    assert exported.rows == {
        "tools": 14, "agents": 6, "edges": 0, "emb_full": 14, "emb_fine": 26,
        "agents_full": 6, "agents_fine": 6,
    }  # fmt: skip
    for name in release.tables:
        expected, key = stored(store, release, name), key_column(name)
        read = pq.read_table(folder / name)
        if name != "edges":
            place = read.schema.get_field_index("catalog")
            read = read.set_column(place, "catalog", read.column("catalog").cast(pa.string()))
        read = read.select(expected.schema.names)
        assert read.schema.types == expected.schema.types, name
        assert read.sort_by(key).to_pylist() == expected.sort_by(key).to_pylist(), name
    assert pq.read_schema(folder / "emb_full" / "catalog=kit" / "part-0.parquet").field(
        "vector"
    ).type == pa.list_(pa.float32(), encoder.dimensions)


def test_it_says_what_it_is_and_which_files_it_has(store, release, tmp_path):
    exported = export_release(store, release, tmp_path)

    folder = Path(exported.folder)
    record = json.loads((folder / "release.json").read_text())
    assert (record["release"], record["digest"], record["contract"]) == (
        release.id,
        release.digest,
        CONTRACT,
    )
    assert record["manifest"] == release.manifest
    assert record["tables"]["tools"]["checksum"] == release.tables["tools"].checksum
    assert record["files"] == {
        str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*.parquet")
    }
    assert (exported.files, exported.bytes) == (len(record["files"]), sum(record["files"].values()))
    assert sorted(path.name for path in (folder / "tools").iterdir()) == [
        "catalog=desk", "catalog=finance", "catalog=kit",
    ]  # fmt: skip


def test_duckdb_and_polars_read_it_with_its_partitions(store, release, tmp_path):
    export_release(store, release, tmp_path)
    files = f"{tmp_path}/release=*/tools/*/*.parquet"

    counted = duckdb.sql(
        f"SELECT release, catalog, count(*) FROM read_parquet('{files}', hive_partitioning = "
        f"true) GROUP BY ALL ORDER BY 2"
    ).fetchall()
    frame = pl.read_parquet(files, hive_partitioning=True)

    assert counted == [(release.id, "desk", 3), (release.id, "finance", 3), (release.id, "kit", 8)]
    assert frame.height == 14
    assert set(frame.get_column("catalog")) == {"desk", "finance", "kit"}
    vectors = duckdb.sql(
        f"SELECT list_sum(list_transform(vector, lambda x: x * x)) FROM "
        f"'{tmp_path}/*/emb_full/*/*.parquet'"
    )
    assert [round(length, 4) for (length,) in vectors.fetchall()] == [1.0] * 14


def test_a_catalog_whose_name_is_no_folders_name_is_written_all_the_same(
    workshop, hashing, tmp_path
):
    workshop.servers({"git": [workshop.tool("one")]})
    catalogs = '[catalogs."a.b-c"]\ntype = "mcp-dump"\npath = "servers.json"\n'
    release = workshop.run(workshop.configure(catalogs=catalogs), encoder=hashing(8)).release

    exported = export_release(workshop.store, release, tmp_path / "out")

    assert pq.read_table(Path(exported.folder) / "tools").column("catalog").to_pylist() == ["a.b-c"]


def test_again_nothing_is_written_and_something_else_is_only_replaced_if_asked(
    store, release, tmp_path
):
    first = export_release(store, release, tmp_path)
    again = export_release(store, release, tmp_path)
    part = Path(first.folder) / "tools" / "catalog=kit" / "part-0.parquet"
    whole = part.read_bytes()
    part.write_bytes(b"cut")

    assert (again.written, again.files, again.bytes) == (False, first.files, first.bytes)
    with pytest.raises(ConfigurationError, match="exists and is not an export of this release"):
        export_release(store, release, tmp_path)
    assert part.read_bytes() == b"cut"
    assert export_release(store, release, tmp_path, force=True).written
    assert part.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == [f"release={release.id}"]


def test_what_fails_half_way_leaves_nothing(own_board_uri, tmp_path):
    store = ReleaseStore(own_board_uri)
    release = store.get(store.channel().release)
    shutil.rmtree(Path(own_board_uri) / "tables" / "emb_fine.lance" / "data")

    with pytest.raises(BoardError):
        export_release(store, release, tmp_path / "out")

    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(store, release, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="cannot be written"):
        export_release(store, release, tmp_path / "file")


def test_an_address_is_refused(store, release):
    with pytest.raises(ConfigurationError, match="s3:// is a store"):
        export_release(store, release, "s3://bucket/parquet")


def test_the_command_exports_what_a_channel_names(capsys, board_uri, release, tmp_path):
    code = main(["export", "live", "--board", board_uri, "--out", str(tmp_path)])
    out = capsys.readouterr().out
    again = main(["export", release.id[:5], "--board", board_uri, "--out", str(tmp_path), "--json"])
    printed = json.loads(capsys.readouterr().out)

    assert (code, again) == (0, 0)
    assert out.startswith(f"Release {release.id} is written to {tmp_path}/release={release.id}: ")
    assert "  emb_fine: 26 rows\n" in out
    assert (printed["written"], printed["rows"]["tools"]) == (False, 14)
