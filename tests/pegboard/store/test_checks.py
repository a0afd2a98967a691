"""What is no release and no row is a clear error, whoever wrote it and the checksums."""

import json
import math
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import pegboard
from pegboard.errors import ContractMismatch, StoreError
from pegboard.store.contract import CONTRACT
from pegboard.store.releases import ReleaseStore, record_row
from tests.fuzz.boards import Tables, row_of

BOARD = Path(__file__).parents[2] / "contract" / "board"
ID = "e" * 12


@pytest.fixture
def board(tmp_path):
    """A board, its tables to write, and the row of its live release under another id."""
    uri = str(shutil.copytree(BOARD, tmp_path / "board"))
    store = ReleaseStore(uri)
    return uri, Tables(uri), {**row_of(store.get(store.channel().release)), "release": ID}


def add(tables, row):
    tables.database.open_table("releases").add(record_row("releases", **row))


def changed(text, *path, value):
    """Return a JSON text with another value at a path."""
    values = inner = json.loads(text)
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return json.dumps(values)


INDEX = ("indexes", "full")


@pytest.mark.parametrize(
    ("column", "path", "value", "why"),
    [
        ("manifest", (), "{", "its JSON cannot be used"),
        ("manifest", (), "[" * 100_000, "nested deeper than 200 levels"),
        ("manifest", (), "{}", "manifest has no catalogs, changes, counts, default_index, ind"),
        ("manifest", ("default_index",), "other", "the index 'other'"),
        ("manifest", ("indexes",), {"../x": {}}, r"manifest.indexes.../x has no dimensions"),
        ("manifest", (*INDEX, "encoder"), 7, "indexes.full.encoder is 7, expected a text"),
        ("manifest", (*INDEX, "ranker", "slope"), 1e300, "slope is 1e.300, expected a number of"),
        ("manifest", (*INDEX, "ranker", "weights", "document"), "x", "weights.document is 'x'"),
        ("tables", ("tools",), {}, "tables.tools has no checksum, digest, rows, table, version"),
        ("tables", ("tools", "table"), "../../x", "tools.table is '../../x', expected letters"),
        ("tables", ("tools", "version"), -1, "tools.version is -1"),
        ("tables", (), "{}", "tables has no agents, tools, edges"),
        ("release", (), "../../x", "its release is '../../x', expected hexadecimal digits"),
    ],
)
def test_an_invalid_release_is_reported_with_the_expected_value(board, column, path, value, why):
    uri, tables, row = board
    row[column] = changed(row[column], *path, value=value) if path else value
    add(tables, row)

    with pytest.raises(StoreError, match=rf"of table 'releases' .* is damaged: .*{why}.*build"):
        ReleaseStore(uri).all()
    assert ReleaseStore(uri).remove_damaged("releases") == [row["release"]]
    assert ReleaseStore(uri).all()


def test_an_invalid_release_of_another_contract_asks_for_another_version(board):
    uri, tables, row = board
    add(tables, {**row, "contract": CONTRACT + 1, "tables": '{"tools": {}}'})

    with pytest.raises(ContractMismatch, match=rf"contract {CONTRACT + 1}.*Upgrade"):
        pegboard.open(uri, release=ID)


@pytest.mark.parametrize(
    ("table", "column", "value", "why"),
    [
        ("tools", "input_schema", "[]", "input_schema is .*, expected an object"),
        ("tools", "input_schema", '{"a":' * 500 + "1" + "}" * 500, "nested deeper than 200"),
        ("tools", "input_schema", '{"maximum": 1e999}', "the number 1e999, which JSON does not"),
        ("tools", "dependencies", '[{"tool": 7, "type": "x"}]', "expected dependencies with"),
        ("tools", "enrichment", '{"arguments": []}', "its enrichment.arguments is .*an object"),
        ("tools", "name", 7, "column name holds int64, expected string"),
        ("tools", "name", None, "column name has empty values"),
        ("tools", "agent", "kit/nobody", "'kit/nobody' of table 'agents' .* it is missing"),
        ("edges", "confidence", math.nan, "column confidence has numbers that are not from"),
        ("emb_full", "vector", [math.nan] * 16, "column vector has numbers that are not from"),
        ("emb_full", "vector", [0.1] * 8, "column vector holds .*, expected fixed_size"),
    ],
)
def test_an_invalid_row_is_reported_with_the_expected_value(board, table, column, value, why):
    uri, tables, row = board

    def change(rows):
        others = {7: pa.int64(), (0.1,) * 8: pa.list_(pa.float32(), 8)}
        own = rows.schema.field(column).type
        kind = others.get(tuple(value) if isinstance(value, list) else value, own)
        values = pa.array([value] * rows.num_rows, kind)
        return rows.set_column(rows.column_names.index(column), pa.field(column, kind), values)

    tables.rewrite(row, table, change)
    add(tables, row)
    reader = pegboard.open(uri, release=ID)

    with pytest.raises(StoreError, match=why):
        reader.graph.edges if table == "edges" else reader.find("open an issue")
