"""Write the rows of the release spec to the tables, as new versions beside those that readers use.

Only rows that differ are written. Staged rows are read back and compared with the spec, so that two
concurrent runs cannot publish a mixture.
"""

import logging
import random
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pegboard.errors import PublishError, StoreError
from pegboard.store.contract import (
    CHECKSUM,
    CONTRACT,
    LOADED_ROWS,
    column_checksums,
    row_checksums,
    table_checksum,
    table_metadata,
    table_schema,
)
from pegboard.store.database import public_uri, sql_literals, store_errors
from pegboard.store.releases import Pin, ReleaseStore
from pegboard.store.writing import open_table, table_names
from tasks.lake.vectors import row_vectors
from tasks.runtime import progress
from tasks.steps.maintain import maintain, open_dataset, search_of
from tasks.steps.release_spec import ReleaseSpec, TableSpec, table_digest, table_rows

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table

logger = logging.getLogger(__name__)

ATTEMPTS = 3
"""Default number of attempts to write a table while other runs write to it."""
CONFLICT = ("conflict", "incompatible transaction", "preempted")
"""Words in Lance's errors about a concurrent commit."""
ROWS_AT_ONCE = 50_000
"""Number of rows in memory at once, with the vectors of all their texts: about 300 MB with four
texts of 384 dimensions in each. Each such chunk becomes a version of the table."""
DELETE_CHUNK = 1_000
"""Number of keys in one delete condition, which is parsed as text."""

SoundVersions = Mapping[tuple[str, int], Mapping[str, int]]


class _ConcurrentWriteError(PublishError):
    """Another run wrote to the table at the same time; another attempt may succeed."""


def stage_tables(uri: str, spec: ReleaseSpec, attempts: int = ATTEMPTS) -> dict[str, Pin]:
    """Write the rows of the spec to every table, and return the pins of the release by table.

    Args:
        attempts: number of attempts for a table to which another run writes.

    Raises:
        PublishError: another run writes to the same tables; nothing is published.
    """
    store = ReleaseStore(uri)
    store.create()
    pins: dict[str, Pin] = {}
    sound = _sound_versions(store)
    progress.start("stage", len(spec.tables))
    for table in spec.tables:
        pins[table.name] = _stage_with_retries(uri, store.database, table, attempts, sound)
        progress.advance("stage", text=table.name)
    return pins


def key_digests(table: "Table", key: str) -> "pl.DataFrame":
    """Return the rows (key, digest) of a table, unsorted."""
    return _columns(table, key, "digest")


def _stage_with_retries(
    uri: str,
    database: "DBConnection",
    spec: TableSpec,
    attempts: int,
    sound: SoundVersions,
) -> Pin:
    for attempt in range(1, attempts):
        try:
            return _stage(uri, database, spec, sound)
        except (_ConcurrentWriteError, StoreError) as error:
            message = str(error).lower()
            if isinstance(error, StoreError) and not any(word in message for word in CONFLICT):
                raise
            logger.warning("Attempt %s of %s: %s", attempt, attempts, error)
            time.sleep(random.uniform(0.5, 3))  # noqa: S311  not a secret
    return _stage(uri, database, spec, sound)


def _stage(
    uri: str,
    database: "DBConnection",
    spec: TableSpec,
    sound: SoundVersions,
) -> Pin:
    with store_errors(uri):
        table = _open_or_create(uri, database, spec)
        rows = _write_differences(uri, table, spec, sound)
        _describe(uri, table, spec)
        maintain(table, uri, rows)
        version = table.version
        search = None
        if spec.fingerprint is not None:
            search = search_of(open_dataset(uri, table.name, version))
        pinned = open_table(database, table.name, uri, version)
        columns = None
        if rows <= LOADED_ROWS:
            staged_table = pinned.search().to_arrow()
            columns = column_checksums(staged_table)
            staged = _frame(staged_table, spec.key, "digest", CHECKSUM)
        else:
            staged = _columns(pinned, spec.key, "digest", CHECKSUM)
    if table_digest(staged.select(spec.key, "digest")) != spec.digest:
        raise _ConcurrentWriteError(
            f"Table '{table.name}' of the board at {public_uri(uri)} changed while this run wrote "
            f"to it: another run publishes to the same board. Nothing was published. Wait for the "
            f"other run to end, and run again."
        )
    checksum = table_checksum(staged.select(spec.key, CHECKSUM).iter_rows())
    return Pin(table.name, version, rows, spec.digest, checksum, search, columns)


def _write_differences(uri: str, table: "Table", spec: TableSpec, sound: SoundVersions) -> int:
    """Upsert rows that differ or are damaged, and delete rows that are not in the spec. Return the
    number of rows of the spec.
    """
    rows = table_rows(uri, spec, [spec.key, "digest"])
    stored, damaged = _stored_rows(table, spec.key, sound)
    changed = rows.join(stored, on=[spec.key, "digest"], how="anti").get_column(spec.key)
    damaged_rows = damaged.filter(damaged.is_in(rows.get_column(spec.key).implode()))
    changed = changed.append(damaged_rows).unique()
    removed = stored.join(rows, on=spec.key, how="anti").get_column(spec.key).to_list()
    if len(changed):
        schema = table.schema
        columns = [
            "text_digests" if name == "vector" else name
            for name in schema.names
            if name not in ("summary_vector", CHECKSUM)
        ]
        upserts = table_rows(uri, spec, columns, keys=changed)
        for chunk in upserts.iter_slices(ROWS_AT_ONCE):
            arrow = _arrow(uri, schema, chunk, spec)
            if stored.height:
                merge = table.merge_insert(spec.key).when_matched_update_all()
                merge.when_not_matched_insert_all().execute(arrow)
            else:
                table.add(arrow)
    for start in range(0, len(removed), DELETE_CHUNK):
        table.delete(f"{spec.key} IN ({sql_literals(removed[start : start + DELETE_CHUNK])})")
    return rows.height


def _describe(uri: str, table: "Table", spec: TableSpec) -> None:
    """Update the schema metadata of a table if it differs."""
    metadata = table_metadata(spec.name, spec.encoder, spec.fingerprint or "")
    stored = table.schema.metadata or {}
    if any(stored.get(name.encode()) != value.encode() for name, value in metadata.items()):
        open_dataset(uri, table.name).update_schema_metadata({**metadata})


def _sound_versions(store: ReleaseStore) -> SoundVersions:
    """Return the checksums of the columns of pinned versions, by table and version."""
    pins = [pin for release in store.all() for pin in release.tables.values()]
    return {(pin.table, pin.version): pin.columns for pin in pins if pin.columns is not None}


def _stored_rows(
    table: "Table", key: str, sound: SoundVersions
) -> "tuple[pl.DataFrame, pl.Series]":
    """Return the rows (key, digest) of a table, and the keys of its damaged rows.

    A row is damaged if it differs from its checksum. Only tables that readers load are checked, and
    only if their columns do not have the checksums that a release pinned.
    """
    import polars as pl

    if table.count_rows() > LOADED_ROWS:
        return key_digests(table, key), pl.Series(dtype=pl.String)
    rows = table.search().to_arrow()
    damaged: list[str] = []
    if sound.get((table.name, table.version)) != column_checksums(rows):
        keys = rows.column(key).to_pylist()
        stored_checksums = rows.column(CHECKSUM).to_pylist()
        triples = zip(keys, stored_checksums, row_checksums(rows), strict=True)
        damaged = [name for name, stored, computed in triples if stored != computed]
    if damaged:
        logger.warning("Table '%s': %d damaged rows are written again.", table.name, len(damaged))
    return _frame(rows, key, "digest"), pl.Series(damaged, dtype=pl.String)


def _open_or_create(uri: str, database: "DBConnection", spec: TableSpec) -> "Table":
    """Return the table of these rows: beside one of that name with vectors of another length, or
    with the columns of another contract, which earlier releases pin.
    """
    schema = table_schema(spec.name, spec.dimensions or 0)
    names = [spec.name]
    if spec.dimensions is not None:
        names.append(f"{spec.name}_{spec.dimensions}")
    names.append(f"{names[-1]}_contract_{CONTRACT}")
    existing = set(table_names(database))
    for name in names:
        if name in existing and (table := open_table(database, name, uri)).schema.equals(schema):
            return table
    # A new table only after all names were checked: one may be free because a table was pruned.
    for name in names:
        if name not in existing:
            return database.create_table(name, schema=schema, exist_ok=True)
    raise PublishError(
        f"Table '{spec.name}' of the board at {public_uri(uri)} has other columns than the table "
        f"contract. Nothing was published. Was the table changed by hand? Publish to another "
        f"folder or address."
    )


def _columns(table: "Table", *names: str) -> "pl.DataFrame":
    return _frame(table.search().select(list(names)).to_arrow(), *names)


def _frame(rows: "pa.Table", *names: str) -> "pl.DataFrame":
    import polars as pl

    frame = pl.from_arrow(rows.select(list(names)))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _arrow(uri: str, schema: "pa.Schema", rows: "pl.DataFrame", spec: TableSpec) -> "pa.Table":
    import pyarrow as pa

    columns = {
        field.name: rows.get_column(field.name).to_arrow().cast(field.type)
        for field in schema
        if field.name not in ("vector", "summary_vector", CHECKSUM)
    }
    if spec.fingerprint is not None and spec.dimensions is not None:
        vector_type = schema.field("vector").type
        for name, texts in _texts_by_vector(rows, schema.names).items():
            vectors = row_vectors(uri, spec.fingerprint, texts, spec.dimensions)
            columns[name] = pa.FixedSizeListArray.from_arrays(
                pa.array(vectors.ravel()), type=vector_type
            )
    columns[CHECKSUM] = pa.array(row_checksums(pa.table(columns)), pa.string())
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _texts_by_vector(rows: "pl.DataFrame", columns: Collection[str]) -> "dict[str, pl.DataFrame]":
    """Return the rows with the texts of each vector column; the last text is the summary."""
    if "summary_vector" not in columns:
        return {"vector": rows}
    import polars as pl

    digests = pl.col("text_digests")
    return {
        "vector": rows.with_columns(digests.list.head(digests.list.len() - 1)),
        "summary_vector": rows.with_columns(digests.list.tail(1)),
    }
