"""Verify a release: read everything that it pins and compare it with what was recorded.

Every row carries a checksum over all that was written, so a release proves itself, vectors and all.
What one checksum cannot show, that rows of different tables fit together, is checked as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import BoardError
from pegboard.store.contract import (
    CHECKSUM,
    EDGES,
    agent_embedding_table,
    check_contract,
    embedding_table,
    key_column,
    release_tables,
    row_checksums,
    table_checksum,
    table_schema,
)
from pegboard.store.releases import Pin, Release, ReleaseStore

if TYPE_CHECKING:
    import pyarrow as pa

NAMED = 5
"""Maximum rows named in a problem; the count is of all."""
REFERENCES = {"tools": {"agent": "agents"}, EDGES: {"source": "tools", "target": "tools"}}
"""By table the columns that hold keys of another table."""
REPEATED = {
    "tools": ("id", "catalog", "agent", "kind", "tags"),
    "agents": ("id", "catalog", "id", "kind"),
}
"""The columns of a tool or agent that every row of an index repeats, after its key."""

Rows = Iterable[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Verification:
    """The number of rows that were read of each table, and every problem that was found."""

    release: str
    contract: int
    rows: Mapping[str, int]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {**asdict(self), "sound": not self.problems}


def verify_release(store: ReleaseStore, release: Release) -> Verification:
    """Read a release and report every difference from its record. One table is in memory at a time.

    Raises ContractMismatch for a release of another contract. Anything else that is wrong is a
    problem in the result.
    """
    check_contract(release.contract, release.id)
    indexes: Mapping[str, Any] = release.manifest["indexes"]
    dimensions = {
        table(name): int(index["dimensions"])
        for name, index in indexes.items()
        for table in (embedding_table, agent_embedding_table)
    }
    rows: dict[str, int] = {}
    owners: dict[str, dict[str, tuple[Any, ...]]] = {}
    problems: list[str] = []
    for name in release_tables(indexes):
        pin = release.tables.get(name)
        if pin is None:
            problems.append(f"{name}: the release pins no such table")
            continue
        try:
            table = store.read_rows(pin)
        except BoardError as error:
            problems.append(f"{name}: {error}")
            continue
        rows[name] = table.num_rows
        schema = table_schema(name, dimensions.get(name, 0))
        if table.schema.names != schema.names or table.schema.types != schema.types:
            problems.append(f"{name}: has other columns than its contract")
            continue
        differences = (*_check_rows(name, pin, table), *_check_references(name, table, owners))
        problems += (f"{name}: {difference}" for difference in differences)
        if name in REPEATED:
            owners[name] = {row[0]: row for row in _values(table, REPEATED[name])}
    return Verification(release.id, release.contract, rows, tuple(problems))


def _check_rows(name: str, pin: Pin, table: "pa.Table") -> Iterator[str]:
    """Yield what differs from the checksums of the rows and from the pin."""
    columns = (key_column(name), "digest", CHECKSUM)
    keys, digests, checksums = (table.column(column).to_pylist() for column in columns)
    computed = row_checksums(table)
    changed = [key for key, a, b in zip(keys, checksums, computed, strict=True) if a != b]
    yield from _named("without the checksum that follows from their columns", changed)
    if table.num_rows != pin.rows:
        yield f"it has {table.num_rows} rows, the release pins {pin.rows}"
    for column, values, pinned in (
        ("digest", digests, pin.digest),
        (CHECKSUM, checksums, pin.checksum),
    ):
        if table_checksum(zip(keys, values, strict=True)) != pinned:
            yield f"the {column} over its rows is not the one that the release pins"


def _check_references(
    name: str, table: "pa.Table", owners: Mapping[str, Mapping[str, tuple[Any, ...]]]
) -> Iterator[str]:
    """Yield rows that do not fit to those of other tables, as far as these could be read."""
    key = key_column(name)
    for column, other in REFERENCES.get(name, {}).items():
        if other in owners:
            unknown = [row for row, to in _values(table, (key, column)) if to not in owners[other]]
            yield from _named(f"whose {column} is not in '{other}'", unknown)
    kind = "tool" if name.startswith("emb_") else "agent"
    known = owners.get(f"{kind}s")
    if not name.startswith(("emb_", "agents_")) or known is None:
        return
    columns = (kind, *REPEATED[f"{kind}s"][1:])
    columns = ("agent" if column == "id" else column for column in columns)
    rows = list(zip(table.column(key).to_pylist(), _values(table, columns), strict=True))
    unknown = [row for row, values in rows if values[0] not in known]
    yield from _named(f"whose {kind} is not in '{kind}s'", unknown)
    other = [row for row, values in rows if known.get(values[0], values) != values]
    yield from _named(f"with other values than their {kind}", other)
    missing = sorted(known.keys() - {values[0] for _, values in rows})
    yield from _named(f"missing, of these {kind}s", missing)


def _values(table: "pa.Table", columns: Iterable[str]) -> Rows:
    """Return the values of the columns, row by row."""
    return zip(*(table.column(column).to_pylist() for column in columns), strict=True)


def _named(problem: str, keys: list[str]) -> Iterator[str]:
    if keys:
        more = " ..." if len(keys) > NAMED else ""
        count = f"{len(keys)} row{'s' if len(keys) > 1 else ''}"
        yield f"{count}: {problem}: {', '.join(keys[:NAMED])}{more}"
