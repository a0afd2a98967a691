"""What a release is to have in each table: files of the lake, and the digests by which tables and releases are compared."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.contract import CURRENT
from tasks.compose import Documents
from tasks.configuration import Configuration
from tasks.encoders import encoder_for
from tasks.lake import Lake
from tasks.records import Records

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RELEASE_ID_DIGITS", "Wanted", "WantedTable", "make_wanted", "table_digest", "wanted_rows"]

RELEASE_ID_DIGITS = 12
"""Hexadecimal digits of its digest that name a release: enough for a person, and for 2^24 releases without a collision."""


@dataclass(frozen=True, slots=True)
class WantedTable:
    """The rows of one table, as a file in the lake. `fingerprint` and `dimensions` are an embedding table's."""

    name: str
    key: str
    path: str
    rows: int
    digest: str
    fingerprint: str | None = None
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A release before it exists: the id and digest it will have, its tables, and counts of what is in them."""

    release: str
    digest: str
    tables: tuple[WantedTable, ...]
    counts: Mapping[str, int]


def make_wanted(configuration: Configuration, documents: Sequence[Documents], records: Records) -> Wanted:
    """The release of these records and documents.

    Its digest is equal for equal rows, index configurations, encoders and contract, whenever and wherever it is made.
    """
    tables = [
        _table(configuration.uri, "tools", "id", records.tools_path),
        _table(configuration.uri, "agents", "id", records.agents_path),
    ]
    for index, one in zip(configuration.indexes, documents, strict=True):
        encoder = encoder_for(index)
        tables.append(_table(configuration.uri, index.table, "key", one.path, encoder.fingerprint, encoder.dimensions))
    recipes = [
        [index.name, index.encoder, index.parts, index.shape, index.questions] for index in configuration.indexes
    ]
    contents = [[table.name, table.digest, table.fingerprint] for table in tables]
    whole = digest(CURRENT.version, recipes, configuration.default, contents)
    counts = {"enriched": records.enriched, "flagged": records.flagged}
    return Wanted(whole[:RELEASE_ID_DIGITS], whole, tuple(tables), counts)


def wanted_rows(
    uri: str, table: WantedTable, columns: list[str] | None = None, keys: Collection[str] | None = None
) -> "pl.DataFrame":
    """The rows of a table in the order of their keys. An embedding's row digest covers the encoder's fingerprint.

    Args:
        keys: only the rows with these keys.
    """
    import polars as pl

    rows = Lake(uri).read(table.path, columns)
    if keys is not None:
        rows = rows.filter(pl.col(table.key).is_in(pl.Series(list(keys), dtype=pl.String).implode()))
    rows = rows.sort(table.key)
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
    path: str,
    fingerprint: str | None = None,
    dimensions: int | None = None,
) -> WantedTable:
    table = WantedTable(name, key, path, 0, "", fingerprint, dimensions)
    rows = wanted_rows(uri, table, [key, "digest"])
    return WantedTable(name, key, path, rows.height, table_digest(rows), fingerprint, dimensions)
