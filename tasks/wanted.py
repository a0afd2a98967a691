"""What a release is to have in each table: row sets of the lake, and the digests by which tables
and releases are compared.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pegboard.canonical import digest
from pegboard.encoders import Encoder
from pegboard.retrieval.calibration import CALIBRATION_VERSION
from pegboard.store.contract import CONTRACT, EDGES
from tasks.compose import Documents
from tasks.edges import Edges
from tasks.encoders import encoder_for
from tasks.gate.spec import gate_digest
from tasks.golden.reading import read_golden
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.records import Records
from tasks.settings.configuration import Configuration
from tasks.settings.release import default_strategy

if TYPE_CHECKING:
    import polars as pl

RELEASE_ID_DIGITS = 12
"""Hexadecimal digits of its digest that name a release: enough for a person, and for 2^24 releases
without a collision.
"""


@dataclass(frozen=True, slots=True)
class WantedTable:
    """The rows of one table, as a row set of the lake. `fingerprint` and `dimensions` are an
    embedding table's.
    """

    name: str
    key: str
    path: str
    rows: int
    digest: str
    fingerprint: str | None = None
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A release before it exists: the id and digest it will have, its tables, and counts of what is
    in them.
    """

    release: str
    digest: str
    tables: tuple[WantedTable, ...]
    counts: Mapping[str, int]


def make_wanted(
    configuration: Configuration,
    documents: Sequence[Documents],
    records: Records,
    edges: Edges,
    encoder: Encoder | None = None,
) -> Wanted:
    """The release of these records, edges and documents.

    Its digest is equal for equal rows, index configurations, encoders, strategy, golden requests
    and contract, and for equal queries and
    strategies of its gate, whenever and wherever it is made. The rules of the gate are no part of
    it: a release that it holds is judged again when they changed.

    Args:
        documents: of the tools and of the agents of every index.
        encoder: stands in for those that are configured.
    """
    tables = [
        _table(configuration.uri, "tools", "id", records.tools_path),
        _table(configuration.uri, "agents", "id", records.agents_path),
        _table(configuration.uri, EDGES, "key", edges.path),
    ]
    for one in documents:
        by = encoder or encoder_for(configuration.index(one.index))
        tables.append(
            _table(configuration.uri, one.table, "key", one.path, by.fingerprint, by.dimensions)
        )
    recipes = [
        [index.name, index.encoder, index.parts, index.shape, index.questions]
        for index in configuration.indexes
    ]
    contents = [[table.name, table.digest, table.fingerprint] for table in tables]
    golden = read_golden(configuration)
    calibrated = [CALIBRATION_VERSION, golden.digest] if golden else None
    found_by = [default_strategy(configuration.find.strategy), calibrated]
    if (gate := gate_digest(configuration)) is not None:
        found_by.append(gate)
    whole = digest(CONTRACT, recipes, configuration.default, contents, found_by)
    counts = {"enriched": records.enriched, "flagged": records.flagged, "edges": edges.rows}
    return Wanted(whole[:RELEASE_ID_DIGITS], whole, tuple(tables), counts)


def wanted_rows(
    uri: str,
    table: WantedTable,
    columns: list[str] | None = None,
    keys: Collection[str] | None = None,
) -> "pl.DataFrame":
    """The rows of a table in the order of their keys. An embedding's row digest covers the
    encoder's fingerprint.

    Args:
        keys: only the rows with these keys; where few changed, what is read is about as much.
    """
    import polars as pl

    rows = read_rows(Lake(uri), table.path, columns, keys)
    if table.fingerprint is None or "digest" not in rows.columns:
        return rows
    suffix = f":{digest(table.fingerprint)[:16]}"
    return rows.with_columns(pl.col("digest") + pl.lit(suffix))


def table_digest(rows: "pl.DataFrame") -> str:
    """The digest of a table from its rows (key, digest), whatever their order: `canonical.digest`
    over their sorted list.
    """
    # Texts alone have no other canonical form, and so a list of 100,000 rows is written by one
    # call.
    text = json.dumps(
        [rows.sort(rows.columns[0]).rows()], ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


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
    return replace(table, rows=rows.height, digest=table_digest(rows))
