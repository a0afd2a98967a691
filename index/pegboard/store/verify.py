"""Proving a release: everything it pins is read again and compared with what was recorded when it
was published.

Every row carries a checksum over all that was written, so a release proves itself, vectors and
all."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, get_args

from pegboard.canonical import digest
from pegboard.errors import BoardError
from pegboard.records import DependencyType, EdgeOrigin
from pegboard.search.loaded import tool_from_row
from pegboard.store.checksums import edge_digest, row_checksums, table_checksum
from pegboard.store.contract import (
    CHECKSUM,
    EDGES,
    agent_embedding_table,
    check_contract,
    edge_key,
    embedding_table,
    key_column,
    release_tables,
    table_schema,
)
from pegboard.store.database import open_table, store_errors
from pegboard.store.releases import Pin, Release, ReleaseStore

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 5_000
"""Rows that are in memory at once: some 100 MB as Python values."""
NAMED = 5
"""Rows that a problem names; it counts them all."""
LENGTH_TOLERANCE = 1e-3
REPEATED = ("catalog", "agent", "kind", "tags")
"""The columns of a tool that every row of an index has, too; an agent's row has those of its agent
but for `tags`.
"""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification read (table -> rows), and every problem that it found."""

    release: str
    contract: int
    rows: Mapping[str, int]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {**asdict(self), "sound": not self.problems}


def verify_release(
    store: ReleaseStore, release: Release, progress: Progress | None = None
) -> Verified:
    """Read a release again, and find everything that is not as it was published.

    Args:
        progress: called now and then with a table's name, the rows that were read of it, and their
            number.

    Raises ContractMismatch for a release of an unknown contract. Anything else that is wrong is a
    problem in the result."""
    check_contract(release.contract)
    check = _Check(store, release, progress or _silent)
    check.run()
    return Verified(release.id, release.contract, check.rows, check.problems)


class _Check:
    """One verification at work."""

    def __init__(self, store: ReleaseStore, release: Release, progress: Progress) -> None:
        self._store, self._release, self._progress = store, release, progress
        self.rows: dict[str, int] = {}
        self._found: dict[tuple[str, str], list[str]] = {}
        """What is wrong, by table and kind: what a message names, a row's key or a column; the
        message itself if that is empty.
        """
        self._tools: dict[str, tuple[Any, ...]] = {}
        """What an index repeats of a tool, by its id."""
        self._agents: dict[str, tuple[Any, ...]] = {}
        """What an index repeats of an agent, by its id."""

    def run(self) -> None:
        """Check the record first, then agents, tools, edges and every index, since each needs the
        ones before.
        """
        manifest = self._release.manifest
        indexes: Mapping[str, Any] = manifest["indexes"]
        wanted = release_tables(indexes)
        self._record(manifest, wanted)
        dimensions = {
            table(name): int(index["dimensions"])
            for name, index in indexes.items()
            for table in (embedding_table, agent_embedding_table)
        }
        for name in wanted:
            pin = self._release.tables.get(name)
            if pin is None:
                continue
            try:
                self._table(name, pin, dimensions.get(name, 0))
            except BoardError as error:
                self._note(name, str(error))

    def _record(self, manifest: Mapping[str, Any], wanted: Collection[str]) -> None:
        release = self._release
        if not release.digest.startswith(release.id):
            self._note(
                "release",
                f"its id {release.id} is not the beginning of its digest {release.digest}",
            )
        if manifest["default_index"] not in manifest["indexes"]:
            self._note(
                "release",
                f"its default index '{manifest['default_index']}' is not among its indexes",
            )
        for name in sorted(set(wanted) - set(release.tables)):
            self._note(name, "the release pins no such table")
        for name in ("tools", "agents", EDGES):
            counted, pin = manifest["counts"].get(name), release.tables.get(name)
            if pin is not None and pin.rows != counted:
                self._note(name, f"the manifest counts {counted}, the release pins {pin.rows} rows")

    def _table(self, name: str, pin: Pin, dimensions: int) -> None:
        key, schema = key_column(name), table_schema(name, dimensions)
        table: Any = open_table(self._store.database, pin.table, self._store.uri, pin.version)
        with store_errors(self._store.uri):
            if table.schema.names != schema.names or table.schema.types != schema.types:
                self._say(
                    name,
                    "has other columns than its contract",
                    sorted(set(schema.names) ^ set(table.schema.names)),
                )
                return
            digests: list[tuple[str, str]] = []
            checksums: list[tuple[str, str]] = []
            owners = set[str]()
            for rows in self._pieces(table, name, pin.rows):
                keys: list[str] = rows.column(key).to_pylist()
                digests += zip(keys, rows.column("digest").to_pylist(), strict=True)
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
                    owners |= self._embeddings(name, rows, keys, dimensions)
                elif name == EDGES:
                    self._edges(name, rows, keys)
                else:
                    self._records(name, rows, keys)
            self._indices(name, pin, table)
        self._whole(name, pin, digests, checksums)
        if dimensions:
            what, there = self._owners(name)
            self._say(name, f"has no row of these {what}s", sorted(there.keys() - owners))

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
            said = zip(
                rows.column("catalog").to_pylist(),
                keys,
                rows.column("kind").to_pylist(),
                strict=True,
            )
            self._agents.update(zip(keys, said, strict=True))
            return
        columns = zip(*(rows.column(one).to_pylist() for one in REPEATED), strict=True)
        self._tools.update(zip(keys, columns, strict=True))
        agents = zip(keys, rows.column("agent").to_pylist(), strict=True)
        if "agents" in self.rows:
            self._say(
                name,
                "of an agent that is not in 'agents'",
                [key for key, one in agents if one not in self._agents],
            )
        said = [_tool_digest(row) for row in rows.to_pylist()]
        stored = rows.column("tool_digest").to_pylist()
        self._unequal(
            name,
            "without the tool_digest that follows from their columns",
            keys,
            stored,
            said,
        )

    def _edges(self, name: str, rows: "pa.Table", keys: list[str]) -> None:
        """Check that the edges join tools of the release, and that keys and digests are those of
        what they say.
        """
        said: list[dict[str, Any]] = rows.to_pylist()
        follow = "that follows from their columns"
        named = (
            edge_key(row["source"], row["target"], row["type"], row["parameter"]) for row in said
        )
        self._unequal(name, f"without the key {follow}", keys, keys, named)
        stored, made = [row["digest"] for row in said], [edge_digest(row) for row in said]
        self._unequal(name, f"without the digest {follow}", keys, stored, made)
        wrong: dict[str, Callable[[Mapping[str, Any]], bool]] = {
            "of a type that there is not": lambda row: row["type"] not in get_args(DependencyType),
            "of an origin that there is not": lambda row: row["origin"] not in get_args(EdgeOrigin),
            "with a confidence that is not from 0 to 1": lambda row: (
                not 0 <= row["confidence"] <= 1
            ),
        }
        if "tools" in self.rows:
            wrong["between tools that are not both in 'tools'"] = lambda row: (
                not {row["source"], row["target"]} <= self._tools.keys()
            )
        for what, is_wrong in wrong.items():
            self._say(name, what, [row["key"] for row in said if is_wrong(row)])

    def _owners(self, name: str) -> tuple[str, Mapping[str, tuple[Any, ...]]]:
        """Of what an index has rows, and what it repeats of each."""
        return ("tool", self._tools) if name.startswith("emb_") else ("agent", self._agents)

    def _embeddings(
        self, name: str, rows: "pa.Table", keys: list[str], dimensions: int
    ) -> set[str]:
        """Check what an index says of its tools or agents; returns these."""
        import numpy as np

        what, there = self._owners(name)
        owners: list[str] = rows.column(what).to_pylist()
        if f"{what}s" in self.rows:
            unknown = [key for key, owner in zip(keys, owners, strict=True) if owner not in there]
            self._say(
                name,
                f"of {'a tool' if what == 'tool' else 'an agent'} that is not in '{what}s'",
                unknown,
            )
        repeated = [one for one in REPEATED if one in rows.column_names]
        columns = zip(*(rows.column(one).to_pylist() for one in repeated), strict=True)
        other = [
            k
            for k, owner, said in zip(keys, owners, columns, strict=True)
            if there.get(owner, said) != said
        ]
        self._say(
            name,
            f"with another {', '.join(repeated[:-1])} or {repeated[-1]} than their {what}",
            other,
        )
        flat = rows.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = flat.reshape(-1, dimensions).astype(np.float64)
        finite = np.isfinite(vectors).all(axis=1)
        self._say(
            name,
            "with a vector of values that are not finite",
            [keys[row] for row in np.flatnonzero(~finite)],
        )
        lengths = np.linalg.norm(vectors, axis=1)
        off = finite & (np.abs(lengths - 1) > LENGTH_TOLERANCE)
        self._say(
            name, "with a vector whose length is not 1", [keys[row] for row in np.flatnonzero(off)]
        )
        return set(owners)

    def _indices(self, name: str, pin: Pin, table: Any) -> None:
        if pin.search is None:
            return
        there = {column: index.name for index in table.list_indices() for column in index.columns}
        wanted = {"vector", "tokens", *pin.search.get("filters", ())}
        self._say(name, "lacks indices that the release records, of", sorted(wanted - there.keys()))
        for column in sorted(wanted & there.keys()):
            stats = table.index_stats(there[column])
            if stats is not None and stats.num_unindexed_rows:
                self._note(
                    name, f"{stats.num_unindexed_rows} rows are not in the index of '{column}'"
                )

    def _whole(
        self, name: str, pin: Pin, digests: list[tuple[str, str]], checksums: list[tuple[str, str]]
    ) -> None:
        if len(digests) != pin.rows:
            self._note(name, f"it has {len(digests)} rows, the release pins {pin.rows}")
        twice = [key for key, count in Counter(key for key, _ in digests).items() if count > 1]
        self._say(name, "there several times", twice)
        if table_checksum(digests) != pin.digest:
            self._note(name, "the digest over its rows is not the one that the release pins")
        if table_checksum(checksums) != pin.checksum:
            self._note(name, "the checksum over its rows is not the one that the release pins")

    def _unequal(
        self,
        name: str,
        what: str,
        keys: Iterable[str],
        stored: Iterable[str],
        computed: Iterable[str],
    ) -> None:
        self._say(
            name, what, [key for key, a, b in zip(keys, stored, computed, strict=True) if a != b]
        )

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
    count = (
        ""
        if what.startswith(("has ", "lacks "))
        else f"{len(found)} row{'s' if len(found) > 1 else ''}: "
    )
    return (
        f"{name}: {count}{what}: {', '.join(found[:NAMED])}{' ...' if len(found) > NAMED else ''}"
    )


def _silent(table: str, done: int, rows: int) -> None:
    """Show nothing."""
