"""The table contract: which tables a board has, their columns, and what each means.
`docs/table-contract.md` is its prose.

Everything that writes or reads a board takes names and schemas from here. A new version of the
contract is one more `Layout` in `LAYOUTS`, so that a reader can open boards of every version that
it lists."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pegboard.errors import ConfigurationError, ContractMismatch

if TYPE_CHECKING:
    import pyarrow as pa

CHECKSUM = "checksum"
"""The column with which a row proves itself: it is computed when a row is written, over all that
was written.
"""

EDGES = "edges"
"""The table of the dependencies between tools, since contract 4."""

TABLES_FOLDER = "tables"
"""The LanceDB database below the root of a board."""

PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
"""Field metadata by which Lance notices that two concurrent merges insert the same key. Without it
both rows stay: tried with three processes, 33 rows for 31 keys."""


VECTOR_OPTIONS = ("dimensions", "max_tokens", "query_prefix", "document_prefix")
"""The encoder options that a manifest carries: those that decide a vector. Addresses and the names
of keys are each reader's own: a manifest that could set them could send a reader's key anywhere."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the `tools` or `agents` table: one text, or several."""

    name: str
    several: bool = False
    nullable: bool = False

    def field(self) -> "pa.Field":
        """The column as Lance stores it; `id` is the key."""
        import pyarrow as pa

        kind = pa.list_(pa.string()) if self.several else pa.string()
        return pa.field(
            self.name,
            kind,
            nullable=self.nullable,
            metadata=PRIMARY_KEY if self.name == "id" else None,
        )


CATALOG_TOOL = (
    *map(Column, ("id", "catalog", "agent", "kind", "name", "description", "input_schema")),
    Column("output_schema", nullable=True),
    Column("annotations"),
    Column("examples", several=True),
    Column("dependencies"),
    Column("tags", several=True),
)
"""What a catalog says of a tool. Schemas, annotations and dependencies are JSON text."""
CATALOG_AGENT = tuple(map(Column, ("id", "catalog", "name", "description", "kind", "source")))


@dataclass(frozen=True, slots=True)
class Layout:
    """One version of the table contract.

    Attributes:
        tool_columns: of the `tools` table; `digest` covers the whole row.
        agent_columns: of the `agents` table.
        tool_digest: the column that changes when and only when the catalog says something else of a
            tool.
        checksums: whether every row carries a `checksum` over all of its other columns (see
            `checksums.py`).
        graph: whether a release has the table `edges`, and for every index a table of its agents'
            documents.
    """

    version: int
    tool_columns: tuple[Column, ...]
    agent_columns: tuple[Column, ...]
    tool_digest: str
    checksums: bool = True
    graph: bool = True

    def tables(self, indexes: Iterable[str]) -> tuple[str, ...]:
        """The names of a release's tables: those that others refer to come first."""
        found = ["agents", "tools", *([EDGES] if self.graph else ())]
        for index in indexes:
            found += [
                embedding_table(index),
                *([agent_embedding_table(index)] if self.graph else ()),
            ]
        return tuple(found)

    def holds(self, table: str) -> bool:
        """Whether a release of this contract can have a table of that name."""
        return self.graph or table in ("tools", "agents") or table.startswith("emb_")

    def schema(self, table: str, dimensions: int = 0) -> "pa.Schema":
        """The schema of a table by its name in a release; `dimensions` are those of the vectors, if
        it has any.
        """
        if table in ("tools", "agents", EDGES):
            return {"tools": self.tools, "agents": self.agents, EDGES: self.edges}[table]()
        return (self.embeddings if table.startswith("emb_") else self.agent_embeddings)(dimensions)

    def tools(self) -> "pa.Schema":
        """One row per tool."""
        import pyarrow as pa

        return pa.schema([*(column.field() for column in self.tool_columns), *self._proof()])

    def agents(self) -> "pa.Schema":
        """One row per agent, the owner of tools."""
        import pyarrow as pa

        return pa.schema([*(column.field() for column in self.agent_columns), *self._proof()])

    def embeddings(self, dimensions: int) -> "pa.Schema":
        """One row per document of an index: what was embedded, its words for text search, and its
        unit vector.

        The columns by which a search is filtered are repeated here, so that one table answers a
        filtered search."""
        import pyarrow as pa

        text = pa.string()
        return pa.schema(
            [
                pa.field("key", text, nullable=False, metadata=PRIMARY_KEY),
                pa.field("tool", text, nullable=False),
                pa.field("part", text, nullable=False),
                pa.field("catalog", text, nullable=False),
                pa.field("agent", text, nullable=False),
                pa.field("kind", text, nullable=False),
                pa.field("tags", pa.list_(text), nullable=False),
                pa.field("text", text, nullable=False),
                pa.field("tokens", text, nullable=False),
                pa.field("vector", pa.list_(pa.float32(), dimensions), nullable=False),
                pa.field("digest", text, nullable=False),
                *self._proof(),
            ]
        )

    def agent_embeddings(self, dimensions: int) -> "pa.Schema":
        """One row per agent and index: its text, its words for text search, and its unit vector in
        the space of the tools'.
        """
        import pyarrow as pa

        fields = self.embeddings(dimensions)
        return pa.schema([field for field in fields if field.name not in ("tool", "tags")])

    def edges(self) -> "pa.Schema":
        """One row per dependency: the tool `source` depends on the tool `target`; both are ids of
        `tools`.

        `place` is its place, from 0, among those of its source: what a catalog declares in the
        catalog's order, then the others, most probable first.
        """
        import pyarrow as pa

        text = pa.string()
        return pa.schema(
            [
                pa.field("key", text, nullable=False, metadata=PRIMARY_KEY),
                pa.field("source", text, nullable=False),
                pa.field("target", text, nullable=False),
                pa.field("type", text, nullable=False),
                pa.field("parameter", text, nullable=True),
                pa.field("reason", text, nullable=False),
                pa.field("origin", text, nullable=False),
                pa.field("confidence", pa.float64(), nullable=False),
                pa.field("evidence", text, nullable=False),
                pa.field("place", pa.int32(), nullable=False),
                pa.field("digest", text, nullable=False),
                *self._proof(),
            ]
        )

    def _proof(self) -> "list[pa.Field]":
        import pyarrow as pa

        return [pa.field(CHECKSUM, pa.string(), nullable=False)] if self.checksums else []

    def releases(self) -> "pa.Schema":
        """One row per release, never changed: `tables` pins a version of every table, `manifest`
        says what went in.
        """
        import pyarrow as pa

        text = pa.string()
        return pa.schema(
            [
                pa.field("release", text, nullable=False, metadata=PRIMARY_KEY),
                pa.field("digest", text, nullable=False),
                pa.field("contract", pa.int32(), nullable=False),
                pa.field("created_at", pa.timestamp("us", tz="UTC"), nullable=False),
                pa.field("tables", text, nullable=False),
                pa.field("manifest", text, nullable=False),
            ]
        )

    def channels(self) -> "pa.Schema":
        """One row per channel: the release it names now, and the ones before, newest first. Moved
        by compare-and-set.
        """
        import pyarrow as pa

        text = pa.string()
        return pa.schema(
            [
                pa.field("channel", text, nullable=False, metadata=PRIMARY_KEY),
                pa.field("release", text, nullable=False),
                pa.field("generation", pa.int64(), nullable=False),
                pa.field("updated_at", pa.timestamp("us", tz="UTC"), nullable=False),
                pa.field("history", pa.list_(text), nullable=False),
            ]
        )


_LAYOUT_1 = Layout(
    version=1,
    tool_columns=(*CATALOG_TOOL, Column("digest")),
    agent_columns=(*CATALOG_AGENT, Column("digest")),
    tool_digest="digest",
    checksums=False,
    graph=False,
)
_LAYOUT_2 = Layout(
    version=2,
    tool_columns=(
        *CATALOG_TOOL,
        Column("tool_digest"),
        Column("flags", several=True),
        Column("enrichment", nullable=True),
        Column("digest"),
    ),
    agent_columns=(*CATALOG_AGENT, Column("enrichment", nullable=True), Column("digest")),
    tool_digest="tool_digest",
    checksums=False,
    graph=False,
)
_LAYOUT_3 = replace(_LAYOUT_2, version=3, checksums=True)
LAYOUTS: tuple[Layout, ...] = (
    _LAYOUT_1,
    _LAYOUT_2,
    _LAYOUT_3,
    replace(_LAYOUT_3, version=4, graph=True),
)
CURRENT = LAYOUTS[-1]


def layout(version: int) -> Layout:
    """The layout of that version. Raises ContractMismatch that names the versions this library
    reads.
    """
    for known in LAYOUTS:
        if known.version == version:
            return known
    readable = ", ".join(str(known.version) for known in LAYOUTS)
    raise ContractMismatch(
        f"The release follows table contract {version}; this version of pegboard reads "
        f"{readable}. Upgrade pegboard."
    )


def embedding_table(index: str) -> str:
    """The table of an index configuration, `emb_<index>`. Raises ConfigurationError for a name that
    no table can have.
    """
    return f"emb_{_index_name(index)}"


def agent_embedding_table(index: str) -> str:
    """The table of an index configuration's agents, `agents_<index>`. Raises ConfigurationError as
    `embedding_table`.
    """
    return f"agents_{_index_name(index)}"


def _index_name(index: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", index):
        raise ConfigurationError(
            f"An index cannot be named '{index}': expected a lower-case letter, then letters, "
            f"digits or _, at most 40."
        )
    return index


def key_column(table: str) -> str:
    """The key of a table, by its name in a release: `id` where a row is a tool or an agent, else
    `key`.
    """
    return "id" if table in ("tools", "agents") else "key"


def row_key(tool: str, part: str, number: int = 0) -> str:
    """The key of a document: its tool's id, the part that it shows, and its number within that
    part.
    """
    return f"{tool}#{part}#{number}"


def edge_key(source: str, target: str, type: str, parameter: str | None) -> str:
    """The key of a dependency; two tools may have several of other types or for other
    parameters.
    """
    return f"{source}#{target}#{type}#{parameter or ''}"
