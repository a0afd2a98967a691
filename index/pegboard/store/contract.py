"""The table contract: which tables a board has, their columns, and what each means.

`docs/reference/table-contract.md` describes it in prose. Everything that writes or reads a board
takes names, schemas and checksums from here.

A row's `digest` covers what it was made from, so that equal inputs are recognised before anything
is encoded. Its `checksum` covers what was written, vector and all, so that a reader of any language
can prove that a release is as it was published. `column_checksums` are of whole columns, and cheap
enough to be compared whenever a table is loaded.
"""

import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError, ContractMismatch
from pegboard.foreign.limits import MAX_DEPTH
from pegboard.records import Dependency

if TYPE_CHECKING:
    import pyarrow as pa

CONTRACT = 2
"""The version of the contract, recorded with every release."""

CHECKSUM = "checksum"
"""The last column of every table: a checksum over all other columns of the row."""

LOADED_ROWS = 50_000
"""Maximum rows of tables that readers load; these have column checksums."""

EDGES = "edges"
"""The table of the dependencies between tools."""

TABLES_FOLDER = "tables"
"""The LanceDB database below the root of a board."""

INDEX_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
"""A pattern: the name is part of the names of two tables."""

METADATA = "pegboard."
"""The beginning of the keys of a table's schema metadata; see `table_metadata`."""

PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
"""Field metadata by which Lance detects two concurrent merges that insert the same key.

Without it both rows stay: with three processes, 33 rows for 31 keys."""

VECTOR_OPTIONS = ("dimensions", "max_tokens", "query_prefix", "document_prefix")
"""The encoder options that a manifest carries: those that determine a vector.

Addresses and names of keys are each reader's own: a manifest that could set them could send a
reader's key anywhere."""

Kind = Literal["text", "json", "texts", "int32", "int64", "float64", "time", "vector"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind = "text"
    nullable: bool = False

    @property
    def empty(self) -> Any:
        """The value of the column in a row that was written before the column existed."""
        return None if self.nullable else _EMPTY[self.kind]


_EMPTY: dict[Kind, Any] = {"text": "", "json": "{}", "texts": []}
"""The empty value of each kind of column that tools and agents have."""


CATALOG_TOOL = (
    *map(Column, ("id", "catalog", "agent", "kind", "name", "description")),
    Column("input_schema", "json"),
    Column("output_schema", "json", nullable=True),
    Column("annotations", "json"),
    Column("examples", "texts"),
    Column("dependencies", "json"),
    Column("tags", "texts"),
)
"""A tool in its catalog: the fields of `Tool` that a source fills, and its agent's kind. The lake's
rows, the table `tools` and `tool_fields` follow from this list."""
CATALOG_AGENT = tuple(map(Column, ("id", "catalog", "name", "description", "kind", "source")))
"""An agent in its catalog."""

_FIELDS: dict[str, Callable[[Any], Any]] = {
    "text": lambda value: value,
    "json": lambda text: json_value(text) if text else None,
    "texts": tuple,
}
_DIGESTS = (Column("digest"), Column(CHECKSUM))
_AGENT_DOCUMENT = ("key", "part", "catalog", "agent", "kind", "text", "tokens")
_COLUMNS = {
    # One row per tool. `tool_digest` covers its catalog's columns, `digest` the whole row.
    "tools": (
        *CATALOG_TOOL,
        Column("tool_digest"),
        Column("flags", "texts"),
        Column("enrichment", nullable=True),
        *_DIGESTS,
    ),
    # One row per agent, the owner of tools.
    "agents": (*CATALOG_AGENT, Column("enrichment", nullable=True), *_DIGESTS),
    # One row per dependency: the tool `source` depends on the tool `target`; both are ids of
    # `tools`. `place` is its place, from 0, among those of its source: what a catalog declares in
    # the catalog's order, then the others, most probable first.
    EDGES: (
        *map(Column, ("key", "source", "target", "type")),
        Column("parameter", nullable=True),
        *map(Column, ("reason", "origin")),
        Column("confidence", "float64"),
        Column("evidence"),
        Column("place", "int32"),
        *_DIGESTS,
    ),
    # One row per document of an index: its text, the words for text search, and the unit vector.
    # The columns that filter a search are repeated here, so that one table answers it. Those from
    # `name_tokens` on are of the tool, the same in all its rows: what the ranker needs of it.
    "emb_": (
        *map(Column, ("key", "tool", "part", "catalog", "agent", "kind")),
        Column("tags", "texts"),
        *map(Column, ("text", "tokens")),
        Column("vector", "vector"),
        *map(Column, ("name_tokens", "actions", "summary")),
        Column("summary_vector", "vector"),
        *_DIGESTS,
    ),
    # One row per agent and index, with a vector in the space of the tools'.
    "agents_": (*map(Column, _AGENT_DOCUMENT), Column("vector", "vector"), *_DIGESTS),
    # One row per release, never changed: `tables` pins a version of every table, `manifest` says
    # what went in.
    "releases": (
        *map(Column, ("release", "digest")),
        Column("contract", "int32"),
        Column("created_at", "time"),
        *map(Column, ("tables", "manifest", CHECKSUM)),
    ),
    # One row per channel: the release it names now, and the ones before, newest first. Moved by
    # compare-and-set.
    "channels": (
        *map(Column, ("channel", "release")),
        Column("generation", "int64"),
        Column("updated_at", "time"),
        Column("history", "texts"),
        Column(CHECKSUM),
    ),
}


def check_contract(version: int, release: str) -> None:
    """Raise ContractMismatch unless this library reads releases of that version.

    Args:
        release: its id, for the message.
    """
    if version != CONTRACT:
        advice = (
            "Upgrade pegboard."
            if version > CONTRACT
            else "`pegboard build` makes a release that it reads; the version of pegboard that "
            "made this one still reads it."
        )
        raise ContractMismatch(
            f"Release {release} follows table contract {version}; this version of pegboard reads "
            f"{CONTRACT}. {advice}"
        )


def release_tables(indexes: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a release's tables; a table comes after those that it refers to."""
    names = ["agents", "tools", EDGES]
    for index in indexes:
        names += [embedding_table(index), agent_embedding_table(index)]
    return tuple(names)


def column_names(table: str) -> list[str]:
    """Return the names of a table's columns, in their order."""
    return [column.name for column in _columns(table)]


def table_schema(table: str, dimensions: int = 0) -> "pa.Schema":
    """Return the schema of a table by its name in a release; the first column is its key.

    Args:
        dimensions: the length of the vectors, if the table has any.
    """
    import pyarrow as pa

    types: dict[Kind, pa.DataType] = {
        "text": pa.string(),
        "json": pa.string(),
        "texts": pa.list_(pa.string()),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "time": pa.timestamp("us", tz="UTC"),
        "vector": pa.list_(pa.float32(), dimensions),
    }
    fields = [
        pa.field(column.name, types[column.kind], nullable=column.nullable)
        for column in _columns(table)
    ]
    return pa.schema([fields[0].with_metadata(PRIMARY_KEY), *fields[1:]])


def json_value(text: str) -> Any:
    """Return the value of a JSON text that others may have written. Raises ValueError if it is no
    JSON, has a number that JSON does not have, or is nested too deeply to be used.
    """
    too_deep = ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    try:
        value = _JSON.decode(text)
    except RecursionError:
        raise too_deep from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        level = [value]
        depth = 0
        while level := [part for whole in level for part in _parts(whole)]:
            depth += 1
            if depth > MAX_DEPTH:
                raise too_deep
    return value


def complete_tool(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `tools` that an earlier contract may have written with the columns of this
    one, empty where the row has none.
    """
    return {column.name: row.get(column.name, column.empty) for column in _COLUMNS["tools"]}


def tool_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `Tool` that its catalog fills, from a row with their columns."""
    fields = {
        column.name: _FIELDS[column.kind](row[column.name])
        for column in CATALOG_TOOL
        if column.name != "kind"  # of its agent
    }
    dependencies = (Dependency(**dependency) for dependency in fields["dependencies"])
    return {**fields, "dependencies": tuple(dependencies)}


def table_metadata(table: str, encoder: str = "", fingerprint: str = "") -> dict[str, str]:
    """Return the schema metadata of a table by its name in a release: what a program that knows
    only LanceDB needs to read it.

    Args:
        encoder, fingerprint: of an index's vectors.
    """
    values = {"contract": str(CONTRACT), "table": table}
    if encoder:
        index = table.removeprefix("emb_").removeprefix("agents_")
        values |= {"index": index, "encoder": encoder, "fingerprint": fingerprint}
        values |= {"metric": "cosine", "vector_column": "vector", "text_column": "tokens"}
    return {f"{METADATA}{name}": value for name, value in values.items()}


def _columns(table: str) -> tuple[Column, ...]:
    if table in _COLUMNS:
        return _COLUMNS[table]
    return _COLUMNS["emb_" if table.startswith("emb_") else "agents_"]


def embedding_table(index: str) -> str:
    """Return the table of an index, `emb_<index>`.

    Raises ConfigurationError for a name that no table can have.
    """
    return f"emb_{_index_name(index)}"


def agent_embedding_table(index: str) -> str:
    """Return the table of an index's agents, `agents_<index>`; raises as `embedding_table`."""
    return f"agents_{_index_name(index)}"


def _index_name(index: str) -> str:
    if not INDEX_NAME.fullmatch(index):
        raise ConfigurationError(
            f"An index cannot be named '{index}': expected a lower-case letter, then letters, "
            f"digits or _, at most 40."
        )
    return index


def key_column(table: str) -> str:
    """Return the key of a release's table: `id` where a row is a tool or an agent, else `key`."""
    return "id" if table in ("tools", "agents") else "key"


def row_key(tool: str, part: str, number: int = 0) -> str:
    """Return the key of a document: its tool's id, its part, and its number within that part."""
    return f"{tool}#{part}#{number}"


def edge_key(source: str, target: str, type: str, parameter: str | None) -> str:
    """Return the key of a dependency.

    Two tools may have several, of other types or for other parameters.
    """
    return f"{source}#{target}#{type}#{parameter or ''}"


def edge_digest(row: Mapping[str, Any]) -> str:
    """Return the digest of a row of `edges`: over its columns between the key and the digest."""
    columns = [column.name for column in _COLUMNS[EDGES] if column not in _DIGESTS][1:]
    return digest(*(_json_number(row[name]) for name in columns))


def row_checksum(row: Mapping[str, Any]) -> str:
    """Return the sha256 over the canonical JSON of a row's columns but `checksum`.

    A vector is the hexadecimal digits of its little-endian float32 values, one after another; a
    time is its microseconds since 1970.
    """
    return digest({name: _json_time(row[name]) for name in row if name != CHECKSUM})


def row_checksums(rows: "pa.Table", piece: int = 10_000) -> list[str]:
    """Return the checksum of every row of a table, in their order.

    Args:
        piece: rows that are in memory as Python values at once.
    """
    import numpy as np
    import pyarrow as pa

    checksums: list[str] = []
    for start in range(0, rows.num_rows, piece):
        part = rows.slice(start, piece)
        columns: dict[str, list[Any]] = {}
        for name in part.column_names:
            if pa.types.is_fixed_size_list(part.schema.field(name).type):
                flat = part.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False)
                matrix = np.ascontiguousarray(flat, dtype="<f4").reshape(part.num_rows, -1)
                columns[name] = [row.tobytes().hex() for row in matrix]
            elif name != CHECKSUM:
                columns[name] = [_json_number(value) for value in part.column(name).to_pylist()]
        values = zip(*columns.values(), strict=True)
        checksums += [row_checksum(dict(zip(columns, row, strict=True))) for row in values]
    return checksums


def column_checksums(rows: "pa.Table") -> dict[str, int]:
    """Return the CRC-32 of every column of a table, in the order of its rows.

    It is over the CRC-32s, as little-endian 32-bit integers, of: for text the lengths of the values
    in bytes, and the values; for a list the lengths of the lists, and both of its texts; for
    numbers and vectors the values. Lengths are little-endian 32-bit integers, -1 for null.
    """
    checksums: dict[str, int] = {}
    for name in rows.column_names:
        streams = [0, 0, 0]
        for chunk in rows.column(name).chunks:
            _add_values(streams, 0, chunk)
        checksums[name] = zlib.crc32(struct.pack("<3I", *streams))
    return checksums


def _add_values(streams: list[int], place: int, values: Any) -> None:
    """Add the values of an array to the running checksums from a place on."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    if pa.types.is_string(values.type) or pa.types.is_list(values.type):
        offsets = np.frombuffer(values.buffers()[1], np.int32)
        lengths = np.diff(offsets[values.offset : values.offset + len(values) + 1])
        if values.null_count:
            lengths[values.is_null().to_numpy(zero_copy_only=False)] = -1
            values = values.drop_null()
        streams[place] = zlib.crc32(lengths.astype("<i4").data, streams[place])
        if pa.types.is_list(values.type):
            _add_values(streams, place + 1, values.flatten())
            return
        _, offsets, data = values.buffers()
        ends = np.frombuffer(offsets, np.int32)[[values.offset, values.offset + len(values)]]
        text = memoryview(data or b"")[ends[0] : ends[1]]
        streams[place + 1] = zlib.crc32(text, streams[place + 1])
    else:
        numbers = values.to_numpy(zero_copy_only=False)
        little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
        streams[place] = zlib.crc32(little.view(np.uint8).data, streams[place])


def table_checksum(rows: Iterable[tuple[str, str]]) -> str:
    """Return the checksum of a table from its rows (key, checksum), whatever their order."""
    return digest(sorted(list(row) for row in rows))


def _parts(value: Any) -> Iterable[Any]:
    """The parts of a JSON value that may have parts."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it has the number {name:.20}, which JSON does not have")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if isfinite(value) else _refuse_constant(digits)


_JSON = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _json_time(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _json_number(value: Any) -> Any:
    """A number that JSON does not have, as only a damaged row has one, as text."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value
