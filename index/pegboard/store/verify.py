"""Verification of a release: read everything that it pins and compare it with the checksums.

Every row has a checksum over all its columns, vectors included.
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
"""Maximum number of rows named in a problem; its count is of all rows."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        rows: the number of rows read, by table.
        problems: every problem found; none for a sound release.
    """

    release: str
    contract: int
    rows: Mapping[str, int]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {**asdict(self), "sound": not self.problems}


def verify_release(store: ReleaseStore, release: Release) -> Verification:
    """Read a release and report every difference from its record. Only one table is in memory at a
    time.

    Raises ContractMismatch for a release of another contract. Everything else is reported as a
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
    """Yield every difference from the checksums of the rows and from the pin."""
    columns = (key_column(name), "digest", CHECKSUM)
    keys, digests, checksums = (table.column(column).to_pylist() for column in columns)
    computed = row_checksums(table)
    damaged = [
        key
        for key, stored, expected in zip(keys, checksums, computed, strict=True)
        if stored != expected
    ]
    if damaged:
        count = f"{len(damaged)} row{'s' if len(damaged) > 1 else ''}"
        names = f"{', '.join(damaged[:NAMED])}{' ...' if len(damaged) > NAMED else ''}"
        yield f"{count}: without the checksum that follows from their columns: {names}"
    if table.num_rows != pin.rows:
        yield f"it has {table.num_rows} rows, the release pins {pin.rows}"
    for column, values, pinned in (
        ("digest", digests, pin.digest),
        (CHECKSUM, checksums, pin.checksum),
    ):
        if table_checksum(zip(keys, values, strict=True)) != pinned:
            yield f"the {column} over its rows is not the one that the release pins"
