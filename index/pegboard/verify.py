"""Proving a release: everything it pins is read again and compared with what was recorded when it was published.

Since contract 3 every row carries a checksum over all that was written, so a release proves itself, vectors and all. Releases
of contracts 1 and 2 have digests of what rows were made from; what those cannot prove is said.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.checksums import row_checksums, table_checksum
from pegboard.contract import CHECKSUM, Layout, embedding_table, layout
from pegboard.errors import BoardError
from pegboard.loaded import tool_from_row
from pegboard.releases import Pin, Release, ReleaseStore
from pegboard.store import open_table, store_errors

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Verified", "verify_release"]

PIECE = 5_000
"""Rows that are in memory at once: some 100 MB as Python values."""
NAMED = 5
"""Rows that a problem names; it counts them all."""
LENGTH_TOLERANCE = 1e-3
REPEATED = ("catalog", "agent", "kind", "tags")
"""The columns of a tool that every row of an index has, too."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification read (table -> rows), every problem that it found, and what this contract cannot prove."""

    release: str
    contract: int
    rows: Mapping[str, int]
    problems: tuple[str, ...]
    unproven: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {**asdict(self), "sound": not self.problems}


def verify_release(store: ReleaseStore, release: Release, progress: Progress | None = None) -> Verified:
    """Read a release again, and find everything that is not as it was published.

    Args:
        progress: called now and then with a table's name, the rows that were read of it, and their number.

    Raises ContractMismatch for a release of an unknown contract. Anything else that is wrong is a problem in the result.
    """
    check = _Check(store, release, layout(release.contract), progress or _silent)
    check.run()
    return Verified(release.id, release.contract, check.rows, check.problems, check.unproven())


class _Check:
    """One verification at work."""

    def __init__(self, store: ReleaseStore, release: Release, known: Layout, progress: Progress) -> None:
        self._store, self._release, self._layout, self._progress = store, release, known, progress
        self.rows: dict[str, int] = {}
        self._found: dict[tuple[str, str], list[str]] = {}
        """What is wrong, by table and kind: what a message names, a row's key or a column; the message itself if that is empty."""
        self._tools: dict[str, tuple[Any, ...]] = {}
        """What an index repeats of a tool, by its id."""
        self._agents: set[str] = set()

    def run(self) -> None:
        """Check the record first, then agents, tools and every index, since each needs the ones before."""
        manifest = self._release.manifest
        indexes: Mapping[str, Any] = manifest["indexes"]
        wanted = ["agents", "tools", *(embedding_table(name) for name in indexes)]
        self._record(manifest, wanted)
        for name in wanted:
            pin = self._release.tables.get(name)
            if pin is None:
                continue
            dimensions = indexes[name.removeprefix("emb_")]["dimensions"] if name.startswith("emb_") else 0
            try:
                self._table(name, pin, dimensions)
            except BoardError as error:
                self._note(name, str(error))

    def unproven(self) -> tuple[str, ...]:
        """What a release of this contract does not say enough about."""
        if self._layout.checksums:
            return ()
        return (
            f"Releases of contract {self._release.contract} have no checksums: that texts, schemas and vectors are as they were "
            "written follows from nothing. Row counts, digests, lengths and references were checked.",
        )

    def _record(self, manifest: Mapping[str, Any], wanted: Collection[str]) -> None:
        release = self._release
        if not release.digest.startswith(release.id):
            self._note("release", f"its id {release.id} is not the beginning of its digest {release.digest}")
        if manifest["default_index"] not in manifest["indexes"]:
            self._note("release", f"its default index '{manifest['default_index']}' is not among its indexes")
        for name in sorted(set(wanted) - set(release.tables)):
            self._note(name, "the release pins no such table")
        for name in ("tools", "agents"):
            counted, pin = manifest["counts"][name], release.tables.get(name)
            if pin is not None and pin.rows != counted:
                self._note(name, f"the manifest counts {counted}, the release pins {pin.rows} rows")

    def _table(self, name: str, pin: Pin, dimensions: int) -> None:
        key = "key" if dimensions else "id"
        schema = self._schema(name, dimensions)
        table: Any = open_table(self._store.database, pin.table, self._store.uri, pin.version)
        with store_errors(self._store.uri):
            if table.schema.names != schema.names or table.schema.types != schema.types:
                self._say(
                    name, "has other columns than its contract", sorted(set(schema.names) ^ set(table.schema.names))
                )
                return
            digests: list[tuple[str, str]] = []
            checksums: list[tuple[str, str]] = []
            tools = set[str]()
            for rows in self._pieces(table, name, pin.rows):
                keys: list[str] = rows.column(key).to_pylist()
                digests += zip(keys, rows.column("digest").to_pylist(), strict=True)
                if self._layout.checksums:
                    stored: list[str] = rows.column(CHECKSUM).to_pylist()
                    self._unequal(
                        name,
                        "without the checksum that follows from their columns",
                        keys,
                        stored,
                        row_checksums(rows),
                    )
                    checksums += zip(keys, stored, strict=True)
                if dimensions:
                    tools |= self._embeddings(name, rows, keys, dimensions)
                else:
                    self._records(name, rows, keys)
            self._indices(name, pin, table)
        self._whole(name, pin, digests, checksums)
        if dimensions:
            self._say(name, "has no row of these tools", sorted(self._tools.keys() - tools))

    def _schema(self, name: str, dimensions: int) -> "pa.Schema":
        if dimensions:
            return self._layout.embeddings(dimensions)
        return self._layout.tools() if name == "tools" else self._layout.agents()

    def _pieces(self, table: Any, name: str, expected: int) -> "Iterator[pa.Table]":
        import pyarrow as pa

        self.rows[name] = 0
        for batch in table.search().to_batches(PIECE):
            rows = pa.Table.from_batches([batch])
            yield rows
            self.rows[name] += rows.num_rows
            self._progress(name, self.rows[name], expected)

    def _records(self, name: str, rows: "pa.Table", keys: list[str]) -> None:
        if name == "agents":
            self._agents.update(keys)
            return
        columns = zip(*(rows.column(one).to_pylist() for one in REPEATED), strict=True)
        self._tools.update(zip(keys, columns, strict=True))
        agents = zip(keys, rows.column("agent").to_pylist(), strict=True)
        if "agents" in self.rows:
            self._say(
                name, "of an agent that is not in 'agents'", [key for key, one in agents if one not in self._agents]
            )
        said = [_tool_digest(row) for row in rows.to_pylist()]
        stored = rows.column(self._layout.tool_digest).to_pylist()
        self._unequal(
            name, f"without the {self._layout.tool_digest} that follows from their columns", keys, stored, said
        )

    def _embeddings(self, name: str, rows: "pa.Table", keys: list[str], dimensions: int) -> set[str]:
        """Check what an index says of its tools; returns these."""
        import numpy as np

        tools: list[str] = rows.column("tool").to_pylist()
        if "tools" in self.rows:
            unknown = [key for key, tool in zip(keys, tools, strict=True) if tool not in self._tools]
            self._say(name, "of a tool that is not in 'tools'", unknown)
        columns = zip(*(rows.column(one).to_pylist() for one in REPEATED), strict=True)
        other = [k for k, tool, said in zip(keys, tools, columns, strict=True) if self._tools.get(tool, said) != said]
        self._say(name, "with another catalog, agent, kind or tags than their tool", other)
        flat = rows.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = flat.reshape(-1, dimensions).astype(np.float64)
        finite = np.isfinite(vectors).all(axis=1)
        self._say(name, "with a vector of values that are not finite", [keys[row] for row in np.flatnonzero(~finite)])
        lengths = np.linalg.norm(vectors, axis=1)
        off = finite & (np.abs(lengths - 1) > LENGTH_TOLERANCE)
        self._say(name, "with a vector whose length is not 1", [keys[row] for row in np.flatnonzero(off)])
        return set(tools)

    def _indices(self, name: str, pin: Pin, table: Any) -> None:
        if pin.search is None:
            return
        there = {column: index.name for index in table.list_indices() for column in index.columns}
        wanted = {"vector", "tokens", *pin.search.get("filters", ())}
        self._say(name, "lacks indices that the release records, of", sorted(wanted - there.keys()))
        for column in sorted(wanted & there.keys()):
            stats = table.index_stats(there[column])
            if stats is not None and stats.num_unindexed_rows:
                self._note(name, f"{stats.num_unindexed_rows} rows are not in the index of '{column}'")

    def _whole(self, name: str, pin: Pin, digests: list[tuple[str, str]], checksums: list[tuple[str, str]]) -> None:
        if len(digests) != pin.rows:
            self._note(name, f"it has {len(digests)} rows, the release pins {pin.rows}")
        twice = [key for key, count in Counter(key for key, _ in digests).items() if count > 1]
        self._say(name, "there several times", twice)
        if table_checksum(digests) != pin.digest:
            self._note(name, "the digest over its rows is not the one that the release pins")
        if self._layout.checksums and table_checksum(checksums) != pin.checksum:
            self._note(name, "the checksum over its rows is not the one that the release pins")

    def _unequal(
        self, name: str, what: str, keys: Iterable[str], stored: Iterable[str], computed: Iterable[str]
    ) -> None:
        self._say(name, what, [key for key, a, b in zip(keys, stored, computed, strict=True) if a != b])

    def _say(self, name: str, what: str, found: list[str]) -> None:
        if found:
            self._found.setdefault((name, what), []).extend(found)

    def _note(self, name: str, what: str) -> None:
        self._found.setdefault((name, what), [])

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for every kind of trouble with a table."""
        return tuple(_sentence(name, what, found) for (name, what), found in self._found.items())


def _tool_digest(row: Mapping[str, Any]) -> str:
    try:
        return digest(tool_from_row(row).digest, row["kind"])
    except (ValueError, TypeError, KeyError):
        return "its columns cannot be read"


def _sentence(name: str, what: str, found: list[str]) -> str:
    if not found:
        return f"{name}: {what}"
    count = "" if what.startswith(("has ", "lacks ")) else f"{len(found)} row{'s' if len(found) > 1 else ''}: "
    return f"{name}: {count}{what}: {', '.join(found[:NAMED])}{' ...' if len(found) > NAMED else ''}"


def _silent(table: str, done: int, rows: int) -> None:
    """Show nothing."""
