"""Verify a release: read everything that it pins and compare it with what was recorded.

Every row carries a checksum over all that was written, so a release proves itself, vectors and all.
What one checksum cannot show, rows that fit together across tables, is checked beside it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.errors import BoardError
from pegboard.search.loaded import tool_from_row
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
from pegboard.store.database import open_table, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 5_000
"""Rows that are in memory at once: some 100 MB as Python values."""
NAMED = 5
"""Maximum rows named in a problem; the count is of all."""
LENGTH_TOLERANCE = 1e-3
REPEATED = ("catalog", "agent", "kind", "tags")
"""The columns of a tool that every row of an index repeats; an agent's row repeats those of its
agent but for `tags`.
"""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Verification:
    """The rows that were read of each table, and every problem that was found."""

    release: str
    contract: int
    rows: Mapping[str, int]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {**asdict(self), "sound": not self.problems}


def verify_release(
    store: ReleaseStore, release: Release, progress: Progress | None = None
) -> Verification:
    """Read a release and report every difference from its record.

    Args:
        progress: called with a table's name, the rows read so far, and their number.

    Raises ContractMismatch for a release of another contract. Anything else that is wrong is a
    problem in the result.
    """
    check_contract(release.contract, release.id)
    check = _Check(store, release, progress or (lambda table, done, rows: None))
    check.run()
    return Verification(release.id, release.contract, check.rows, check.problems)


class _Check:
    """The verification of one release."""

    def __init__(self, store: ReleaseStore, release: Release, progress: Progress) -> None:
        self._store, self._release, self._progress = store, release, progress
        self.rows: dict[str, int] = {}
        self._problems: dict[tuple[str, str], list[str]] = {}
        """Rows or columns by table and kind of problem; none where the kind says all."""
        self._known: dict[str, dict[str, tuple[Any, ...]]] = {"tools": {}, "agents": {}}
        """What an index repeats of each tool and agent, by its id."""

    def run(self) -> None:
        """Check the record, then agents, tools, edges and indexes: each needs those before."""
        manifest = self._release.manifest
        indexes: Mapping[str, Any] = manifest["indexes"]
        tables = release_tables(indexes)
        self._check_record(manifest, tables)
        dimensions = {
            table(name): int(index["dimensions"])
            for name, index in indexes.items()
            for table in (embedding_table, agent_embedding_table)
        }
        for name in tables:
            pin = self._release.tables.get(name)
            if pin is None:
                continue
            try:
                self._check_table(name, pin, dimensions.get(name, 0))
            except BoardError as error:
                self._report(name, str(error))

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each kind of problem of a table."""
        return tuple(_sentence(*kind, rows) for kind, rows in self._problems.items())

    def _check_record(self, manifest: Mapping[str, Any], tables: Collection[str]) -> None:
        release, default = self._release, manifest["default_index"]
        if not release.digest.startswith(release.id):
            text = f"its id {release.id} is not the beginning of its digest {release.digest}"
            self._report("release", text)
        if default not in manifest["indexes"]:
            self._report("release", f"its default index '{default}' is not among its indexes")
        for name in sorted(set(tables) - set(release.tables)):
            self._report(name, "the release pins no such table")
        for name in ("tools", "agents", EDGES):
            count, pin = manifest["counts"].get(name), release.tables.get(name)
            if pin is not None and pin.rows != count:
                text = f"the manifest counts {count}, the release pins {pin.rows} rows"
                self._report(name, text)

    def _check_table(self, name: str, pin: Pin, dimensions: int) -> None:
        table: Any = open_table(self._store.database, pin.table, self._store.uri, pin.version)
        schema = table_schema(name, dimensions)
        digests: list[tuple[str, str]] = []
        checksums: list[tuple[str, str]] = []
        owners = set[str]()
        with store_errors(self._store.uri):
            if table.schema.names != schema.names or table.schema.types != schema.types:
                columns = sorted(set(schema.names) ^ set(table.schema.names))
                self._report(name, "has other columns than its contract", columns)
                return
            for rows in self._pieces(table, name, pin.rows):
                keys: list[str] = rows.column(key_column(name)).to_pylist()
                stored: list[str] = rows.column(CHECKSUM).to_pylist()
                self._compare(name, CHECKSUM, keys, stored, row_checksums(rows))
                digests += zip(keys, rows.column("digest").to_pylist(), strict=True)
                checksums += zip(keys, stored, strict=True)
                if dimensions:
                    owners |= self._check_embeddings(name, rows, keys, dimensions)
                elif name == EDGES:
                    self._check_references(EDGES, keys, rows, "source", "tools")
                    self._check_references(EDGES, keys, rows, "target", "tools")
                else:
                    self._read_owners(name, rows, keys)
            self._check_indices(name, pin, table)
        self._check_whole(name, pin, digests, checksums)
        if dimensions:
            kind = _owner(name)
            missing = sorted(self._known[f"{kind}s"].keys() - owners)
            self._report(name, f"has no row of these {kind}s", missing)

    def _pieces(self, table: Any, name: str, expected: int) -> "Iterator[pa.Table]":
        import pyarrow as pa

        self.rows[name] = 0
        for batch in table.search().to_batches(PIECE):
            rows = pa.Table.from_batches([batch])
            yield rows
            self.rows[name] += rows.num_rows
            self._progress(name, self.rows[name], expected)

    def _read_owners(self, name: str, rows: "pa.Table", keys: list[str]) -> None:
        """Check rows of `tools` or `agents`, and remember what an index repeats of them."""
        columns = REPEATED if name == "tools" else ("catalog", "id", "kind")
        repeated = zip(*(rows.column(column).to_pylist() for column in columns), strict=True)
        self._known[name].update(zip(keys, repeated, strict=True))
        if name == "tools":
            self._check_references(name, keys, rows, "agent", "agents")
            computed = [_tool_digest(row) for row in rows.to_pylist()]
            self._compare(
                name, "tool_digest", keys, rows.column("tool_digest").to_pylist(), computed
            )

    def _check_references(
        self, name: str, keys: list[str], rows: "pa.Table", column: str, table: str
    ) -> None:
        """Report rows with a value that is no key of a table; none if that table was not read."""
        values: list[str] = rows.column(column).to_pylist()
        unknown = [
            key
            for key, value in zip(keys, values, strict=True)
            if table in self.rows and value not in self._known[table]
        ]
        self._report(name, f"whose {column} is not in '{table}'", unknown)

    def _check_embeddings(
        self, name: str, rows: "pa.Table", keys: list[str], dimensions: int
    ) -> set[str]:
        """Check rows of an index; returns the tools or agents that they are of."""
        kind = _owner(name)
        known = self._known[f"{kind}s"]
        self._check_references(name, keys, rows, kind, f"{kind}s")
        owners: list[str] = rows.column(kind).to_pylist()
        columns = [column for column in REPEATED if column in rows.column_names]
        values = zip(*(rows.column(column).to_pylist() for column in columns), strict=True)
        other = [
            key
            for key, owner, row in zip(keys, owners, values, strict=True)
            if known.get(owner, row) != row
        ]
        text = f"with another {', '.join(columns[:-1])} or {columns[-1]} than their {kind}"
        self._report(name, text, other)
        for column in rows.column_names:
            if column.endswith("vector"):
                self._check_vectors(name, rows, column, keys, dimensions)
        return set(owners)

    def _check_vectors(
        self, name: str, rows: "pa.Table", column: str, keys: list[str], dimensions: int
    ) -> None:
        import numpy as np

        flat = rows.column(column).combine_chunks().flatten().to_numpy(zero_copy_only=False)
        lengths = np.linalg.norm(flat.reshape(-1, dimensions).astype(np.float64), axis=1)
        # Also false for a length that is not finite.
        right = np.abs(lengths - 1) <= LENGTH_TOLERANCE
        wrong = [keys[row] for row in np.flatnonzero(~right)]
        self._report(name, f"with a {column} whose length is not 1", wrong)

    def _check_indices(self, name: str, pin: Pin, table: Any) -> None:
        if pin.search is None:
            return
        indices = {column: index.name for index in table.list_indices() for column in index.columns}
        recorded = {"vector", "tokens", *pin.search.get("filters", ())}
        missing = sorted(recorded - indices.keys())
        self._report(name, "lacks indices that the release records, of", missing)
        for column in sorted(recorded & indices.keys()):
            stats = table.index_stats(indices[column])
            if stats is not None and stats.num_unindexed_rows:
                rows = f"{stats.num_unindexed_rows} rows"
                self._report(name, f"{rows} are not in the index of '{column}'")

    def _check_whole(
        self, name: str, pin: Pin, digests: list[tuple[str, str]], checksums: list[tuple[str, str]]
    ) -> None:
        if len(digests) != pin.rows:
            self._report(name, f"it has {len(digests)} rows, the release pins {pin.rows}")
        counts = Counter(key for key, _ in digests)
        self._report(name, "there several times", [key for key in counts if counts[key] > 1])
        for column, rows, pinned in (
            ("digest", digests, pin.digest),
            (CHECKSUM, checksums, pin.checksum),
        ):
            if table_checksum(rows) != pinned:
                text = f"the {column} over its rows is not the one that the release pins"
                self._report(name, text)

    def _compare(
        self,
        name: str,
        column: str,
        keys: Iterable[str],
        stored: Iterable[str],
        computed: Iterable[str],
    ) -> None:
        unequal = [key for key, a, b in zip(keys, stored, computed, strict=True) if a != b]
        self._report(name, f"without the {column} that follows from their columns", unequal)

    def _report(self, name: str, problem: str, rows: list[str] | None = None) -> None:
        """Note a problem of a table; with rows, only if there are any."""
        if rows is None or rows:
            self._problems.setdefault((name, problem), []).extend(rows or ())


def _owner(table: str) -> str:
    """What the rows of an index's table are of."""
    return "tool" if table.startswith("emb_") else "agent"


def _tool_digest(row: Mapping[str, Any]) -> str:
    try:
        return digest(tool_from_row(row).digest, row["kind"])
    except (ValueError, TypeError, KeyError):
        return "its columns cannot be read"


def _sentence(name: str, problem: str, rows: list[str]) -> str:
    if not rows:
        return f"{name}: {problem}"
    count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}: "
    if problem.startswith(("has ", "lacks ")):
        count = ""
    more = " ..." if len(rows) > NAMED else ""
    return f"{name}: {count}{problem}: {', '.join(rows[:NAMED])}{more}"
