"""What a release is to have in each table: files of the lake, and the digests by which tables and releases are compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.contract import CURRENT
from tasks.compose import Documents
from tasks.configuration import Configuration
from tasks.encoders import encoder_for
from tasks.lake import Lake

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RELEASE_ID_DIGITS", "Wanted", "WantedTable", "make_wanted", "table_digest", "wanted_rows"]

RELEASE_ID_DIGITS = 12
"""Hexadecimal digits of its digest that name a release: enough for a person, and for 2^24 releases without a collision."""


@dataclass(frozen=True, slots=True)
class WantedTable:
    """The rows of one table, as files in the lake. `fingerprint` and `dimensions` are an embedding table's."""

    name: str
    key: str
    paths: tuple[str, ...]
    rows: int
    digest: str
    fingerprint: str | None = None
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A release before it exists: the id and digest it will have, and its tables."""

    release: str
    digest: str
    tables: tuple[WantedTable, ...]


def make_wanted(configuration: Configuration, snapshots: Mapping[str, str], documents: Sequence[Documents]) -> Wanted:
    """The release of these snapshots (catalog -> digest) and documents.

    Its digest is equal for equal tools, index configurations, encoders and contract, whenever and wherever it is made.
    """
    folders = [f"snapshots/{catalog}/{identity}" for catalog, identity in sorted(snapshots.items())]
    tables = [
        _table(configuration.uri, name, "id", tuple(f"{folder}/{name}.parquet" for folder in folders))
        for name in ("tools", "agents")
    ]
    for index, one in zip(configuration.indexes, documents, strict=True):
        encoder = encoder_for(index)
        tables.append(
            _table(configuration.uri, index.table, "key", (one.path,), encoder.fingerprint, encoder.dimensions)
        )
    recipes = [
        [index.name, index.encoder, index.parts, index.shape, index.questions] for index in configuration.indexes
    ]
    contents = [[table.name, table.digest, table.fingerprint] for table in tables]
    whole = digest(CURRENT.version, recipes, configuration.default, contents)
    return Wanted(whole[:RELEASE_ID_DIGITS], whole, tuple(tables))


def wanted_rows(uri: str, table: WantedTable, columns: list[str] | None = None) -> "pl.DataFrame":
    """The rows of a table in the order of their keys. An embedding's row digest covers the encoder's fingerprint."""
    import polars as pl

    lake = Lake(uri)
    rows = pl.concat([lake.read(path, columns) for path in table.paths]).sort(table.key)
    if table.fingerprint is None:
        return rows
    suffix = f":{digest(table.fingerprint)[:16]}"
    return rows.with_columns(pl.col("digest") + pl.lit(suffix))


def table_digest(rows: "pl.DataFrame") -> str:
    """The digest of a table from its rows (key, digest), whatever their order."""
    return digest(rows.sort(rows.columns[0]).rows())


def _table(
    uri: str,
    name: str,
    key: str,
    paths: tuple[str, ...],
    fingerprint: str | None = None,
    dimensions: int | None = None,
) -> WantedTable:
    table = WantedTable(name, key, paths, 0, "", fingerprint, dimensions)
    rows = wanted_rows(uri, table, [key, "digest"])
    return WantedTable(name, key, paths, rows.height, table_digest(rows), fingerprint, dimensions)
