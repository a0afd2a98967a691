"""One release, loaded: its tools, agents and indexes at exactly the versions that it pins."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from pegboard.errors import BoardNotFound, StoreError
from pegboard.ranker.model import Ranker
from pegboard.ranking import Mode, ScoredTool
from pegboard.records import Agent, Tool
from pegboard.search.filters import Filter
from pegboard.search.glossary import spelled_out
from pegboard.search.lance_index import LanceIndex
from pegboard.search.memory import MemoryIndex
from pegboard.store.checks import rows_problem
from pegboard.store.contract import (
    CHECKSUM,
    EDGES,
    LOADED_ROWS,
    agent_embedding_table,
    check_contract,
    column_checksums,
    embedding_table,
    row_checksums,
)
from pegboard.store.database import public_uri, sql_literals, store_errors
from pegboard.store.reading import BoardTable
from pegboard.store.releases import Release, ReleaseStore
from pegboard.store.rows import agent_from_row, edge_from_row, tool_from_row, unusable_row
from pegboard.text.words import DEFAULT_LANGUAGE, query_words

if TYPE_CHECKING:
    import pyarrow as pa

    from pegboard.graph.tool_graph import ToolGraph

IN_MEMORY_ROWS = LOADED_ROWS
"""Larger boards are searched through Lance's indices; 10,000 rows in memory take 0.5 ms."""
SEARCHED = (
    *("tool", "part", "catalog", "agent", "kind", "tags", "tokens", "vector"),
    *("name_tokens", "actions", "summary_vector"),
)
"""The columns of an index that a search in memory needs."""


class LoadedRelease:
    """A loaded release. Immutable; indexes are loaded when they are first
    searched.
    """

    def __init__(self, store: ReleaseStore | None, release: Release, in_memory_rows: int) -> None:
        check_contract(release.contract, release.id)
        self.release = release
        self._given_store = store
        self._in_memory_rows = in_memory_rows
        self._indexes: dict[str, MemoryIndex | LanceIndex] = {}
        self._agent_indexes: dict[str, MemoryIndex] = {}
        self._rankers: dict[str, Ranker] = {}
        self._lock = Lock()

    @property
    def _store(self) -> ReleaseStore:
        assert self._given_store is not None, "a release in memory has no tables to read"
        return self._given_store

    def index_name(self, name: str | None) -> str:
        """The index of that name, or the release's default. Raises BoardNotFound that names those
        there are.
        """
        indexes = self.release.manifest["indexes"]
        name = name or str(self.release.manifest["default_index"])
        if name not in indexes:
            raise BoardNotFound(
                f"Release {self.release.id} has no index '{name}'. It has: "
                f"{', '.join(sorted(indexes))}."
            )
        return name

    def index_manifest(self, name: str) -> Mapping[str, Any]:
        """The manifest's entry for an index: encoder, fingerprint, dimensions, parts, shape."""
        return self.release.manifest["indexes"][name]

    def language(self, index: str) -> str:
        """The language of an index's words."""
        return str(self.index_manifest(index).get("language") or DEFAULT_LANGUAGE)

    def spelled_out(self, request: str) -> str:
        """A request with the meaning of its short forms; see `glossary.spelled_out`."""
        return spelled_out(request, self.release.manifest.get("glossary") or {})

    def query_words(self, index: str, request: str) -> list[str]:
        """The words by which a request is searched in an index; see `words.query_words`."""
        return query_words(self.spelled_out(request), self.language(index))

    def index(self, name: str) -> MemoryIndex | LanceIndex:
        """The searchable index of that name: in memory if it is small enough, else through
        Lance.
        """
        with self._lock:
            if name not in self._indexes:
                self._indexes[name] = self._load_index(name)
            return self._indexes[name]

    def warm(self, before: "LoadedRelease") -> None:
        """Load what the release before had loaded, so that the swap is not felt, and fails as a
        whole or not at all.
        """
        _ = self.agents, self._tool_rows
        for name in set(before._indexes) & set(self.release.manifest["indexes"]):
            index, earlier = self.index(name), before._indexes[name]
            match index, earlier:
                case (MemoryIndex(), MemoryIndex()) | (LanceIndex(), LanceIndex()):
                    index.warm(earlier)  # pyright: ignore[reportArgumentType]
                case _:
                    pass
        for name in set(before._agent_indexes) & set(self.release.manifest["indexes"]):
            self.agent_index(name)
        if "graph" in before.__dict__:
            _ = self.graph

    def filter(self, where: Mapping[str, Any] | None) -> Filter | None:
        """The filter of a search, in which agents may be named by id or by name."""
        parsed = Filter.parse(where)
        return parsed.with_agents(self._agent_ids) if parsed else None

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """All agents by id."""
        rows = self._read("agents").to_pylist()
        return Agents({row["id"]: agent_from_row(row) for row in rows})

    def tools(self, ids: Sequence[str]) -> dict[str, Tool]:
        """The tools of those ids; unknown ids are absent."""
        if self._tool_rows is not None:
            places = [self._places[identity] for identity in ids if identity in self._places]
            rows = self._tool_rows.take(places) if places else self._tool_rows.slice(0, 0)
        else:
            with store_errors(self._store.uri, f"Table 'tools' of release {self.release.id}"):
                rows = self._tools_table.read(
                    where=f"id IN ({sql_literals(ids) or 'NULL'})", limit=len(ids) or 1
                )
                self._check("tools", rows, None)
                if not self._rows_hold(rows):
                    raise self._damaged("tools", "rows differ from their checksums")
        return {row["id"]: tool_from_row(row) for row in rows.to_pylist()}

    def list_tools(self, where: Mapping[str, Any] | None = None) -> list[Tool]:
        """Return the tools that pass a filter, by id."""
        parsed = self.filter(where)
        return [
            tool
            for tool in self.all_tools()
            if parsed is None or parsed.passes(tool, self.agents[tool.agent].kind)
        ]

    def all_tools(self) -> Iterator[Tool]:
        """Yield every tool, by id."""
        rows = self._tool_rows if self._tool_rows is not None else self._read("tools")
        for row in rows.sort_by("id").to_pylist():
            yield tool_from_row(row)

    def check_tools(self) -> None:
        """Raise StoreError unless every tool can be used; of large boards none is looked at."""
        for row in self._tool_rows.to_pylist() if self._tool_rows is not None else ():
            tool_from_row(row)

    def check_recorded(self) -> None:
        """Raise BoardNotFound if the store no longer has the release."""
        self._store.get(self.release.id)

    def tool_names(self) -> "list[tuple[str, str, str]]":
        """Id, true name and agent's name of every tool."""
        rows = (
            self._tool_rows
            if self._tool_rows is not None
            else self._read("tools", ("id", "name", "agent"))
        )
        columns = (rows.column(name).to_pylist() for name in ("id", "name", "agent"))
        return [
            (tool, name, self.agents[agent].name)
            for tool, name, agent in zip(*columns, strict=True)
        ]

    @cached_property
    def graph(self) -> "ToolGraph":
        """The dependencies between the tools."""
        from pegboard.graph.tool_graph import ToolGraph

        rows = self._read(EDGES).sort_by([("source", "ascending"), ("place", "ascending")])
        return ToolGraph(edge_from_row(row) for row in rows.to_pylist())

    def ranker(self, index: str) -> Ranker:
        """The ranker that the release records for an index."""
        if index not in self._rankers:
            self._rankers[index] = Ranker.from_dict(self.index_manifest(index)["ranker"])
        return self._rankers[index]

    def probabilities(
        self, index: str, rankings: Mapping[str, Sequence[ScoredTool]]
    ) -> dict[str, float] | None:
        """The probability of each tool that one query found, by the ranker of a hybrid search; None
        for a search by vectors or by words alone.
        """
        if "ranker" not in rankings:
            return None
        ranker = self.ranker(index)
        return {row.tool: ranker.probability(row.score) for row in rankings["ranker"]}

    def thresholds(self, index: str, mode: Mode) -> dict[str, float] | None:
        """The probabilities that matter in that mode, by name; None but in a hybrid search."""
        return dict(self.ranker(index).thresholds) if mode == "hybrid" else None

    def agent_index(self, name: str) -> MemoryIndex:
        """The agents' own descriptions in an index, searched as its tools are, with agents' ids."""
        with self._lock:
            if name not in self._agent_indexes:
                columns = ("agent", "part", "catalog", "kind", "tokens", "vector")
                rows = self._held(agent_embedding_table(name), columns)
                self._agent_indexes[name] = MemoryIndex(
                    rows.append_column("tool", rows.column("agent"))
                )
            return self._agent_indexes[name]

    @cached_property
    def _agent_ids(self) -> dict[str, tuple[str, ...]]:
        ids: dict[str, tuple[str, ...]] = {}
        for agent in self.agents.values():
            ids[agent.name] = (*ids.get(agent.name, ()), agent.id)
        return ids

    @cached_property
    def _tools_table(self) -> BoardTable:
        return self._open("tools")

    @cached_property
    def _tool_rows(self) -> "pa.Table | None":
        small = self.release.tables["tools"].rows <= self._in_memory_rows
        return self._held("tools") if small else None

    @cached_property
    def _places(self) -> dict[str, int]:
        rows = self._tool_rows
        return (
            {tool: place for place, tool in enumerate(rows.column("id").to_pylist())}
            if rows is not None
            else {}
        )

    def _load_index(self, name: str) -> MemoryIndex | LanceIndex:
        table = embedding_table(name)
        pin = self.release.tables[table]
        if pin.rows > self._in_memory_rows:
            opened = self._open(table)
            with store_errors(self._store.uri, f"Table '{table}' of release {self.release.id}"):
                self._check(table, opened.read(SEARCHED, limit=1), SEARCHED)
            return LanceIndex(opened, self._store.uri, pin.rows, pin.search)
        return MemoryIndex(self._held(table, SEARCHED))

    def _open(self, name: str) -> BoardTable:
        pin = self.release.tables[name]
        try:
            return self._store.read_table(pin.table, pin.version)
        except BoardNotFound as error:
            raise StoreError(
                f"Release {self.release.id} of {public_uri(self._store.uri)} is recorded with "
                f"version {pin.version} of "
                f"table '{pin.table}', which is no longer there: the release was pruned, or the "
                f"board was replaced. "
                "`pegboard releases list` shows what there is; `pegboard releases verify RELEASE` "
                "tells whether it is whole."
            ) from error

    def _held(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """Return rows of a table to be kept, each column in one piece: Arrow would join the pieces
        anew whenever rows are taken, and vectors are used where they are.
        """
        import pyarrow as pa

        rows = self._read(name, columns).combine_chunks()
        pa.default_memory_pool().release_unused()
        return rows

    def _read(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """Return rows of a table. Raises StoreError if they are not as they were published."""
        table = self._open(name)
        with store_errors(self._store.uri, f"Table '{name}' of release {self.release.id}"):
            rows = table.read(columns)
            self._check(name, rows, columns)
            pin = self.release.tables[name]
            if rows.num_rows != pin.rows:
                raise self._damaged(name, f"it has {rows.num_rows} rows, expected {pin.rows}")
            published = pin.columns
            computed = column_checksums(rows) if published is not None else {}
            wrong = [name for name in computed if computed[name] != (published or {}).get(name)]
            # Should Lance return the rows in another order, they still have their own checksums.
            if wrong and not self._rows_hold(table.read()):
                raise self._damaged(
                    name, f"its columns {', '.join(wrong)} differ from their checksums"
                )
        return rows

    def _check(self, name: str, rows: "pa.Table", columns: Sequence[str] | None) -> None:
        """Raise StoreError unless rows are as the contract of their table says, and the agents of
        tools are in `agents`.
        """
        index = name.removeprefix("emb_").removeprefix("agents_")
        entry = self.release.manifest["indexes"].get(index, {})
        if problem := rows_problem(rows, name, columns, entry.get("dimensions", 0)):
            raise self._damaged(name, problem)
        if name == "tools" and "agent" in rows.column_names:
            for agent in rows.column("agent").unique().to_pylist():
                _ = self.agents[agent]

    def _rows_hold(self, rows: "pa.Table") -> bool:
        return rows.column(CHECKSUM).to_pylist() == row_checksums(rows)

    def _damaged(self, name: str, problem: str) -> StoreError:
        release = self.release.id
        return StoreError(
            f"Table '{name}' of release {release} of {public_uri(self._store.uri)} is damaged: "
            f"{problem}. `pegboard releases verify {release}` names the rows, `pegboard build` "
            f"writes them again, and `pegboard rollback` returns to the release before."
        )


class Agents(dict[str, Agent]):
    """Agents by id. Raises StoreError for one that a tool or a row names and the release lacks."""

    def __missing__(self, identity: str) -> Agent:
        raise unusable_row("agents", identity, "it is missing, though the release names it")
