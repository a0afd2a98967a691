"""A loaded release: its tools, agents and indexes at the pinned table versions."""

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
"""Maximum number of rows of a table held in memory; larger ones are searched through Lance's
indices. A search of 10,000 rows in memory takes 0.5 ms.
"""
SEARCHED = (
    *("tool", "part", "catalog", "agent", "kind", "tags", "tokens", "vector"),
    *("name_tokens", "actions", "summary_vector"),
)
"""The columns of an index that a search in memory reads."""


class LoadedRelease:
    """A loaded release. Immutable; an index is loaded at its first search.

    Args:
        store: None for a release that was made in memory and has no tables.
        in_memory_rows: the maximum number of rows of a table that is held in memory.
    """

    def __init__(self, store: ReleaseStore | None, release: Release, in_memory_rows: int) -> None:
        check_contract(release.contract, release.id)
        self.release = release
        self._store_or_none = store
        self._in_memory_rows = in_memory_rows
        self._indexes: dict[str, MemoryIndex | LanceIndex] = {}
        self._agent_indexes: dict[str, MemoryIndex] = {}
        self._rankers: dict[str, Ranker] = {}
        self._lock = Lock()

    @property
    def _store(self) -> ReleaseStore:
        assert self._store_or_none is not None, "a release in memory has no tables to read"
        return self._store_or_none

    def index_name(self, name: str | None) -> str:
        """Return the name if the release has that index, or the default index for None. Raises
        BoardNotFound with the available names.
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
        """Return the manifest's entry of an index, such as its encoder and dimensions."""
        return self.release.manifest["indexes"][name]

    def language(self, index: str) -> str:
        """Return the language in which an index's words are stemmed."""
        return str(self.index_manifest(index).get("language") or DEFAULT_LANGUAGE)

    def spelled_out(self, request: str) -> str:
        """Return a request with its abbreviations expanded; see `glossary.spelled_out`."""
        return spelled_out(request, self.release.manifest.get("glossary") or {})

    def query_words(self, index: str, request: str) -> list[str]:
        """Return the tokens to search in an index for a request; see `words.query_words`."""
        return query_words(self.spelled_out(request), self.language(index))

    def index(self, name: str) -> MemoryIndex | LanceIndex:
        """Return the index of that name, loaded at first use: in memory if it is small enough, else
        through Lance.
        """
        with self._lock:
            if name not in self._indexes:
                self._indexes[name] = self._load_index(name)
            return self._indexes[name]

    def load(self) -> None:
        """Load what requests to the default index read, so that they are answered even after the
        release was pruned. Tables with more than `in_memory_rows` rows are only opened.
        """
        index = self.index_name(None)
        _ = self.agents
        _ = self._tool_rows
        self.index(index)
        self.agent_index(index)
        if self.release.tables[EDGES].rows <= self._in_memory_rows:
            _ = self.graph

    def warm(self, previous: "LoadedRelease") -> None:
        """Load what the previous release has loaded, so that no search waits for it after the swap,
        and a release that cannot be read is never swapped in.
        """
        _ = self.agents
        _ = self._tool_rows
        for name in set(previous._indexes) & set(self.release.manifest["indexes"]):
            index = self.index(name)
            previous_index = previous._indexes[name]
            match index, previous_index:
                case (MemoryIndex(), MemoryIndex()) | (LanceIndex(), LanceIndex()):
                    index.warm(previous_index)  # pyright: ignore[reportArgumentType]
                case _:
                    pass
        for name in set(previous._agent_indexes) & set(self.release.manifest["indexes"]):
            self.agent_index(name)
        if "graph" in previous.__dict__:
            _ = self.graph

    def filter(self, where: Mapping[str, Any] | None) -> Filter | None:
        """Parse the filter of a search, in which agents are given by id or by name."""
        parsed = Filter.parse(where)
        return parsed.with_agents(self._agent_ids) if parsed else None

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """All agents by id."""
        rows = self._read("agents").to_pylist()
        return Agents({row["id"]: agent_from_row(row) for row in rows})

    def tools(self, ids: Sequence[str]) -> dict[str, Tool]:
        """Return the tools with these ids; unknown ids are absent."""
        if self._tool_rows is not None:
            numbers = [self._row_numbers[key] for key in ids if key in self._row_numbers]
            rows = self._tool_rows.take(numbers) if numbers else self._tool_rows.slice(0, 0)
        else:
            with store_errors(self._store.uri, f"Table 'tools' of release {self.release.id}"):
                rows = self._tools_table.read(
                    where=f"id IN ({sql_literals(ids) or 'NULL'})", limit=len(ids) or 1
                )
                self._check("tools", rows, None)
                if not _checksums_match(rows):
                    raise self._damaged("tools", "rows differ from their checksums")
        return {row["id"]: tool_from_row(row) for row in rows.to_pylist()}

    def list_tools(self, where: Mapping[str, Any] | None = None) -> list[Tool]:
        """Return the tools that pass a filter, ordered by id."""
        parsed = self.filter(where)
        return [
            tool
            for tool in self.all_tools()
            if parsed is None or parsed.passes(tool, self.agents[tool.agent].kind)
        ]

    def all_tools(self) -> Iterator[Tool]:
        """Yield every tool, ordered by id."""
        rows = self._tool_rows if self._tool_rows is not None else self._read("tools")
        for row in rows.sort_by("id").to_pylist():
            yield tool_from_row(row)

    def check_tools(self) -> None:
        """Raise StoreError unless the rows of all tools are valid. Large boards are not checked."""
        if self._tool_rows is not None:
            for row in self._tool_rows.to_pylist():
                tool_from_row(row)

    def check_recorded(self) -> None:
        """Raise BoardNotFound if the store no longer has the release."""
        self._store.get(self.release.id)

    def tool_names(self) -> "list[tuple[str, str, str]]":
        """Return the id, original name and agent's name of every tool."""
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
        """Return the ranker that the release's manifest has for an index."""
        if index not in self._rankers:
            self._rankers[index] = Ranker.from_dict(self.index_manifest(index)["ranker"])
        return self._rankers[index]

    def probabilities(
        self, index: str, rankings: Mapping[str, Sequence[ScoredTool]]
    ) -> dict[str, float] | None:
        """Return the probability of each tool in the rankings of one query; None unless the search
        was hybrid.
        """
        if "ranker" not in rankings:
            return None
        ranker = self.ranker(index)
        return {row.tool: ranker.probability(row.score) for row in rankings["ranker"]}

    def thresholds(self, index: str, mode: Mode) -> dict[str, float] | None:
        """Return the ranker's thresholds of probability by name; None unless the mode is hybrid."""
        return dict(self.ranker(index).thresholds) if mode == "hybrid" else None

    def agent_index(self, name: str) -> MemoryIndex:
        """Return the index of the agents' own descriptions; its `tool` column has agents' ids."""
        with self._lock:
            if name not in self._agent_indexes:
                columns = ("agent", "part", "catalog", "kind", "tokens", "vector")
                rows = self._read_to_hold(agent_embedding_table(name), columns)
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
        fits_in_memory = self.release.tables["tools"].rows <= self._in_memory_rows
        return self._read_to_hold("tools") if fits_in_memory else None

    @cached_property
    def _row_numbers(self) -> dict[str, int]:
        """The number of each tool's row in `_tool_rows`."""
        rows = self._tool_rows
        if rows is None:
            return {}
        return {tool: number for number, tool in enumerate(rows.column("id").to_pylist())}

    def _load_index(self, name: str) -> MemoryIndex | LanceIndex:
        table = embedding_table(name)
        pin = self.release.tables[table]
        if pin.rows > self._in_memory_rows:
            opened = self._open(table)
            with store_errors(self._store.uri, f"Table '{table}' of release {self.release.id}"):
                self._check(table, opened.read(SEARCHED, limit=1), SEARCHED)
            return LanceIndex(opened, self._store.uri, pin.rows, pin.search)
        return MemoryIndex(self._read_to_hold(table, SEARCHED))

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

    def _read_to_hold(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """Return rows of a table with one chunk per column, to be held in memory: Arrow would
        combine the chunks at every `take`, and vectors are used without a copy.
        """
        import pyarrow as pa

        rows = self._read(name, columns).combine_chunks()
        pa.default_memory_pool().release_unused()
        return rows

    def _read(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """Return rows of a table. Raises StoreError if they differ from what was published."""
        table = self._open(name)
        with store_errors(self._store.uri, f"Table '{name}' of release {self.release.id}"):
            rows = table.read(columns)
            self._check(name, rows, columns)
            pin = self.release.tables[name]
            if rows.num_rows != pin.rows:
                raise self._damaged(name, f"it has {rows.num_rows} rows, expected {pin.rows}")
            published = pin.columns
            computed = column_checksums(rows) if published is not None else {}
            differing = [
                column for column in computed if computed[column] != (published or {}).get(column)
            ]
            # Lance may return the rows in another order, so each row's own checksum decides.
            if differing and not _checksums_match(table.read()):
                raise self._damaged(
                    name, f"its columns {', '.join(differing)} differ from their checksums"
                )
        return rows

    def _check(self, name: str, rows: "pa.Table", columns: Sequence[str] | None) -> None:
        """Raise StoreError unless rows fulfil the contract of their table, and the agents of tools
        are in `agents`.
        """
        index = name.removeprefix("emb_").removeprefix("agents_")
        entry = self.release.manifest["indexes"].get(index, {})
        if problem := rows_problem(rows, name, columns, entry.get("dimensions", 0)):
            raise self._damaged(name, problem)
        if name == "tools" and "agent" in rows.column_names:
            for agent in rows.column("agent").unique().to_pylist():
                _ = self.agents[agent]

    def _damaged(self, name: str, problem: str) -> StoreError:
        release = self.release.id
        return StoreError(
            f"Table '{name}' of release {release} of {public_uri(self._store.uri)} is damaged: "
            f"{problem}. `pegboard releases verify {release}` names the rows, `pegboard build` "
            f"writes them again, and `pegboard rollback` returns to the release before."
        )


class Agents(dict[str, Agent]):
    """Agents by id. Raises StoreError for an agent that a row refers to and the release lacks."""

    def __missing__(self, identity: str) -> Agent:
        raise unusable_row("agents", identity, "it is missing, though the release names it")


def _checksums_match(rows: "pa.Table") -> bool:
    return rows.column(CHECKSUM).to_pylist() == row_checksums(rows)
