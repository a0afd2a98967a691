"""Verify a release: read everything that it pins and compare it with what was recorded.

Every row carries a checksum over all that was written, so a release proves itself, vectors and all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.errors import BoardError
from pegboard.store.checks import rows_problem
from pegboard.store.contract import (
    CHECKSUM,
    agent_embedding_table,
    check_contract,
    column_names,
    embedding_table,
    key_column,
    release_tables,
    row_checksums,
    table_checksum,
)
from pegboard.store.releases import Pin, Release, ReleaseStore

if TYPE_CHECKING:
    import pyarrow as pa

NAMED = 5
"""Maximum rows named in a problem; the count is of all."""


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
        problem = rows_problem(table, name, dimensions=dimensions.get(name, 0))
        if problem or table.column_names != column_names(name):
            problems.append(f"{name}: {problem or 'has other columns than its contract'}")
            continue
        problems += (f"{name}: {difference}" for difference in _check_rows(name, pin, table))
    return Verification(release.id, release.contract, rows, tuple(problems))


def _check_rows(name: str, pin: Pin, table: "pa.Table") -> Iterator[str]:
    """Yield what differs from the checksums of the rows and from the pin."""
    columns = (key_column(name), "digest", CHECKSUM)
    keys, digests, checksums = (table.column(column).to_pylist() for column in columns)
    computed = row_checksums(table)
    changed = [key for key, a, b in zip(keys, checksums, computed, strict=True) if a != b]
    if changed:
        count = f"{len(changed)} row{'s' if len(changed) > 1 else ''}"
        names = f"{', '.join(changed[:NAMED])}{' ...' if len(changed) > NAMED else ''}"
        yield f"{count}: without the checksum that follows from their columns: {names}"
    if table.num_rows != pin.rows:
        yield f"it has {table.num_rows} rows, the release pins {pin.rows}"
    for column, values, pinned in (
        ("digest", digests, pin.digest),
        (CHECKSUM, checksums, pin.checksum),
    ):
        if table_checksum(zip(keys, values, strict=True)) != pinned:
            yield f"the {column} over its rows is not the one that the release pins"
