"""Step 5: bring the tables to what the release is to have, as new versions beside those that
readers use.

Only rows that differ are written. What is staged is read back and compared with what was spec:
two runs that write to the same tables at once cannot publish a mixture.
"""

import logging
import random
import time
from typing import TYPE_CHECKING

from pegboard.errors import PublishError, StoreError
from pegboard.store.contract import CHECKSUM, row_checksums, table_checksum, table_schema
from pegboard.store.database import open_table, public_uri, sql_literals, store_errors, table_names
from pegboard.store.releases import Pin, ReleaseStore
from tasks import progress
from tasks.lake.vectors import row_vectors
from tasks.maintain import IndexSizes, maintain, open_dataset, search_of
from tasks.release_spec import ReleaseSpec, TableSpec, table_digest, table_rows

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.table import Table

logger = logging.getLogger(__name__)

ATTEMPTS = 3
"""Two runs that write at once can disturb each other; after a pause of random length one of them
goes through.
"""
CONFLICT = ("conflict", "incompatible transaction", "preempted")
"""Words by which Lance says that another commit came first."""
DELETE_CHUNK = 1_000
"""Keys in one delete condition: the condition is parsed as text."""


class _DisturbedError(PublishError):
    """Another run wrote to the table meanwhile: the one failure that another try can mend."""


def stage_tables(
    uri: str, spec: ReleaseSpec, attempts: int = ATTEMPTS, *, sizes: IndexSizes | None = None
) -> dict[str, Pin]:
    """Bring every table to its wanted rows and return what the release pins.

    Args:
        attempts: how often a table that another run disturbed is tried.
        sizes: rows at which a table gets indices.

    Raises PublishError if another run writes to the same tables meanwhile; nothing is published
    then."""
    store = ReleaseStore(uri)
    store.create()
    pins: dict[str, Pin] = {}
    progress.start("stage", len(spec.tables))
    for table in spec.tables:
        pins[table.name] = _stage_calmly(uri, store.database, table, attempts, sizes)
        progress.advance("stage", text=table.name)
    return pins


def _stage_calmly(
    uri: str, database: "DBConnection", spec: TableSpec, attempts: int, sizes: IndexSizes | None
) -> Pin:
    for attempt in range(1, attempts):
        try:
            return _stage(uri, database, spec, sizes)
        except (_DisturbedError, StoreError) as error:
            if isinstance(error, StoreError) and not any(
                word in str(error).lower() for word in CONFLICT
            ):
                raise
            logger.warning("Try %s of %s: %s", attempt, attempts, error)
            time.sleep(random.uniform(0.5, 3))  # noqa: S311  no secret
    return _stage(uri, database, spec, sizes)


def _stage(uri: str, database: "DBConnection", spec: TableSpec, sizes: IndexSizes | None) -> Pin:
    schema = _schema(spec)
    with store_errors(uri):
        table = _open_or_create(uri, database, spec, schema)
        rows = table_rows(uri, spec, [spec.key, "digest"])
        there = key_digests(table, spec.key)
        differing = rows.join(there, on=[spec.key, "digest"], how="anti").get_column(spec.key)
        gone = there.join(rows, on=spec.key, how="anti").get_column(spec.key).to_list()
        if len(differing):
            columns = [
                "text_digests" if name == "vector" else name
                for name in schema.names
                if name != CHECKSUM
            ]
            upserts = table_rows(uri, spec, columns, keys=differing)
            merge = (
                table.merge_insert(spec.key).when_matched_update_all().when_not_matched_insert_all()
            )
            merge.execute(_arrow(uri, schema, upserts, spec))
        for start in range(0, len(gone), DELETE_CHUNK):
            table.delete(f"{spec.key} IN ({sql_literals(gone[start : start + DELETE_CHUNK])})")
        maintain(table, uri, rows.height, sizes=sizes)
        version = table.version
        search = (
            search_of(open_dataset(uri, table.name, version))
            if spec.fingerprint is not None
            else None
        )
        staged = _columns(
            open_table(database, table.name, uri, version), spec.key, "digest", CHECKSUM
        )
    if table_digest(staged.select(spec.key, "digest")) != spec.digest:
        raise _DisturbedError(
            f"Table '{table.name}' of the board at {public_uri(uri)} changed while this run wrote "
            f"to it: another run "
            "publishes to the same board. Nothing was published. Wait for the other run to end, "
            "and run again."
        )
    checksum = table_checksum(staged.select(spec.key, CHECKSUM).iter_rows())
    return Pin(table.name, version, rows.height, spec.digest, checksum, search)


def _schema(spec: TableSpec) -> "pa.Schema":
    return table_schema(spec.name, spec.dimensions or 0)


def _open_or_create(
    uri: str, database: "DBConnection", spec: TableSpec, schema: "pa.Schema"
) -> "Table":
    """The table for those rows: beside one of that name with vectors of another length."""
    name = spec.name
    names = [name] if spec.dimensions is None else [name, f"{name}_{spec.dimensions}"]
    there = set(table_names(database))
    for one in names:
        if one in there and (table := open_table(database, one, uri)).schema.equals(schema):
            return table
    # Only then a new one: a name may have become free because the table of earlier releases was
    # pruned.
    for one in names:
        if one not in there:
            return database.create_table(one, schema=schema, exist_ok=True)
    raise PublishError(
        f"Table '{name}' of the board at {public_uri(uri)} has other columns than the table "
        f"contract. Nothing was published. "
        "Was the table changed by hand? Publish to another folder or address."
    )


def key_digests(table: "Table", key: str) -> "pl.DataFrame":
    """The rows (key, digest) of a table, in no order."""
    return _columns(table, key, "digest")


def _columns(table: "Table", *names: str) -> "pl.DataFrame":
    import polars as pl

    frame = pl.from_arrow(table.search().select(list(names)).to_arrow())
    assert isinstance(frame, pl.DataFrame)
    return frame.select(names)


def _arrow(uri: str, schema: "pa.Schema", rows: "pl.DataFrame", spec: TableSpec) -> "pa.Table":
    import pyarrow as pa

    columns = {
        field.name: rows.get_column(field.name).to_arrow().cast(field.type)
        for field in schema
        if field.name not in ("vector", CHECKSUM)
    }
    if spec.fingerprint is not None and spec.dimensions is not None:
        vectors = row_vectors(uri, spec.fingerprint, rows, spec.dimensions)
        kind = schema.field("vector").type
        columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), type=kind)
    written = pa.table(columns)
    columns[CHECKSUM] = pa.array(row_checksums(written), pa.string())
    return pa.table([columns[name] for name in schema.names], schema=schema)
