"""Export a release as Parquet, for DuckDB, polars, Spark or a warehouse.

    <out>/release=<id>/<table>/catalog=<name>/part-0.parquet   tools, agents, emb_<index>,
                                                               agents_<index>
    <out>/release=<id>/edges/part-0.parquet                    an edge may join two catalogs
    <out>/release=<id>/release.json                            the release's record and the files

The folders are hive partitions: `release` and `catalog` are columns to readers that know these. An
export is complete or absent."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError, StoreError
from pegboard.store.database import open_table, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore

PIECE = 10_000
"""Rows that are in memory at once."""
RECORD = "release.json"


@dataclass(frozen=True, slots=True)
class Exported:
    """A release as Parquet: rows by table, files and bytes."""

    release: str
    folder: str
    rows: dict[str, int]
    files: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


def export_release(store: ReleaseStore, release: Release, out: str | Path) -> Exported:
    """Write a release as Parquet below the folder `out`.

    Raises:
        ConfigurationError: `out` is an address of a store, or has the release's folder already.
        StoreError: the board cannot be read, or the folder cannot be written.
    """
    if "://" in str(out):
        raise ConfigurationError(
            f"An export is written to a folder, and {str(out).partition('://')[0]}:// is a store. "
            f"Give a folder, and copy it there."
        )
    folder = Path(out).expanduser().resolve()
    target = folder / f"release={release.id}"
    if target.exists():
        raise ConfigurationError(f"{target} exists. Give another folder, or remove that one.")
    partial = folder / f".release={release.id}.{os.getpid()}.tmp"
    try:
        partial.mkdir(parents=True)
        rows = {
            name: _write(store, name, pin, partial / name) for name, pin in release.tables.items()
        }
        files = {
            str(path.relative_to(partial)): path.stat().st_size
            for path in sorted(partial.rglob("*.parquet"))
        }
        record = {**release.to_dict(), "files": files}
        text = json.dumps(record, ensure_ascii=False, indent=1)
        (partial / RECORD).write_text(text, "utf-8")
        partial.rename(target)
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror or error}. Check free space and "
            f"permissions."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Exported(release.id, str(target), rows, len(files), sum(files.values()))


def _write(store: ReleaseStore, name: str, pin: Pin, folder: Path) -> int:
    """Write a table, one folder for each catalog; returns the number of its rows."""
    import pyarrow as pa
    from pyarrow import dataset

    table: Any = open_table(store.database, pin.table, store.uri, pin.version)
    schema: pa.Schema = table.schema

    def pieces() -> Iterator[pa.RecordBatch]:
        with store_errors(store.uri):
            yield from table.search().to_batches(PIECE)

    # One thread keeps the order of the rows; a table without rows has no folder, but its schema is
    # one file.
    by = [schema.field("catalog")] if "catalog" in schema.names else []
    partitions = dataset.partitioning(pa.schema(by), flavor="hive") if by else None
    dataset.write_dataset(
        pieces(),
        folder,
        schema=schema,
        format="parquet",
        partitioning=partitions,
        basename_template="part-{i}.parquet",
        file_options=dataset.ParquetFileFormat().make_write_options(compression="zstd"),
        use_threads=False,
        max_rows_per_group=PIECE,
        max_rows_per_file=0,
    )
    if not any(folder.rglob("*.parquet")):
        from pyarrow import parquet

        folder.mkdir(parents=True, exist_ok=True)
        rest = pa.schema([field for field in schema if field not in by])
        parquet.write_table(rest.empty_table(), folder / "part-0.parquet")
    return pin.rows
