"""A release made in memory, without a store, for `Board.from_tools`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.documents import agent_text, documents_of, search_words, searched_tokens, summary_of
from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.ranker.actions import tool_actions
from pegboard.ranker.model import default_ranker
from pegboard.records import Agent, Tool, agent_id, tool_id
from pegboard.schemas.declarations import FORMATS, Declaration, function_records, read_function
from pegboard.schemas.signature import NoSchema, described
from pegboard.search.glossary import usual_short_forms
from pegboard.search.loaded import SEARCHED, LoadedRelease
from pegboard.search.memory import MemoryIndex
from pegboard.store.contract import CONTRACT, EDGES, table_schema
from pegboard.store.releases import Release
from pegboard.text.boilerplate import boilerplate
from pegboard.text.languages import IndexLanguages
from pegboard.text.words import DEFAULT_LANGUAGE, tokenize

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = "full"
"""The name of the only index of a board in memory."""
CATALOG = "memory"
"""The name of the only catalog of a board in memory."""
AGENT = Agent(agent_id(CATALOG, "tools"), CATALOG, "tools")
"""The owner of all tools of a board in memory."""
NO_TOOL = Tool("", "", "", "agent")
"""A placeholder for rows of agents, of which only words and vector are used."""

Row = tuple[str, str, Sequence[str], str, str]
"""The id of a tool, a part, tags, and the text."""


@dataclass(frozen=True, slots=True)
class FunctionTool(Tool):
    """A tool of a board in memory that was made from a Python function.

    Attributes:
        function: None if the tool was made from a declaration.
    """

    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)


class ToolRelease(LoadedRelease):
    """A release in memory, whose tools are encoded at the first search.

    Args:
        tools: tools of the agent `AGENT` with unique ids.
        encoder: encodes the tools' documents.
    """

    def __init__(self, tools: Sequence[Tool], encoder: Encoder) -> None:
        self._by_id = {tool.id: tool for tool in sorted(tools, key=lambda tool: tool.id)}
        self._encoder = encoder
        super().__init__(None, self._make_release(), 0)

    def load(self) -> None:
        """Do nothing: nothing is read from a store."""

    def restricted(self, tools: Collection[str]) -> "ToolRelease":
        """Return a release in memory of the tools with these ids; unknown ids are ignored."""
        wanted = set(tools)
        own = [tool for key, tool in self._by_id.items() if key in wanted]
        return ToolRelease(own, self._encoder)

    def check_recorded(self) -> None:
        """Do nothing: a release in memory cannot be removed."""

    def tools(self, ids: Sequence[str]) -> dict[str, Tool]:
        """Return the tools with these ids; unknown ids are absent."""
        return {key: self._by_id[key] for key in ids if key in self._by_id}

    def all_tools(self) -> Iterator[Tool]:
        """Yield every tool, ordered by id."""
        yield from self._by_id.values()

    def tool_names(self) -> list[tuple[str, str, str]]:
        """Return the id, name and agent's name of every tool."""
        return [(tool.id, tool.name, AGENT.name) for tool in self._by_id.values()]

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The only agent, by its id."""
        return {AGENT.id: AGENT}

    def _read(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """Return the edges, which are empty, or the row of the only agent."""
        if name == EDGES:
            return table_schema(EDGES).empty_table()
        return self._table([(AGENT.id, "document", (), agent_text(AGENT), "")]).select(columns)

    @cached_property
    def _boilerplate(self) -> Collection[str]:
        return boilerplate(self._by_id.values())

    @cached_property
    def _documents(self) -> list[Row]:
        return [
            (tool.id, part, tool.tags, "\n".join(texts), search_words(tool))
            for tool in self._by_id.values()
            for part, _, texts in documents_of(tool, AGENT, boilerplate=self._boilerplate)
        ]

    def _load_index(self, name: str) -> MemoryIndex:
        return MemoryIndex(self._table(self._documents, self._boilerplate))

    def _table(self, rows: Sequence[Row], omitted: Collection[str] = ()) -> "pa.Table":
        """Return the columns that a search needs.

        Args:
            omitted: the keys of boilerplate sentences, which summaries omit.
        """
        import pyarrow as pa

        texts = [text for *_, text, _ in rows]
        tools = [self._by_id.get(identity, NO_TOOL) for identity, *_ in rows]
        columns: dict[str, Any] = {
            "tool": [identity for identity, *_ in rows],
            "part": [part for _, part, *_ in rows],
            "catalog": [CATALOG] * len(rows),
            "agent": [AGENT.id] * len(rows),
            "kind": [AGENT.kind] * len(rows),
            "tags": [list(tags) for _, _, tags, *_ in rows],
            "tokens": [
                " ".join(searched_tokens(text, words, DEFAULT_LANGUAGE)) for *_, text, words in rows
            ],
            "vector": self._vectors(texts),
            "name_tokens": [" ".join(tokenize(tool.name, DEFAULT_LANGUAGE)) for tool in tools],
            "actions": [" ".join(sorted(tool_actions(tool))) for tool in tools],
            "summary_vector": self._vectors(
                [summary_of(tool, boilerplate=omitted) for tool in tools]
            ),
        }
        schema = table_schema("emb_full", self._encoder.dimensions)
        return pa.table(columns, pa.schema([schema.field(name) for name in SEARCHED]))

    def _vectors(self, texts: Sequence[str]) -> "pa.FixedSizeListArray":
        import pyarrow as pa

        vectors = self._encoder.encode(texts) if texts else ()
        flat = pa.array([value for vector in vectors for value in vector], pa.float32())
        return pa.FixedSizeListArray.from_arrays(flat, self._encoder.dimensions)

    def _make_release(self) -> Release:
        languages = IndexLanguages.of({CATALOG: [text for *_, text, _ in self._documents]})
        ranker = default_ranker(self._encoder.name, languages.legible(self._encoder.name))
        index = {
            "encoder": self._encoder.name,
            "fingerprint": self._encoder.fingerprint,
            "dimensions": self._encoder.dimensions,
            "language": DEFAULT_LANGUAGE,
            "ranker": ranker.to_dict(),
        }
        content = digest(sorted(tool.digest for tool in self._by_id.values()), index)
        manifest: dict[str, Any] = {
            "indexes": {INDEX: index},
            "default_index": INDEX,
            "glossary": usual_short_forms(),
            "counts": {"tools": len(self._by_id), "agents": 1},
        }
        return Release(content[:12], content, CONTRACT, datetime.now(UTC), {}, manifest)


def release_of_tools(tools: Sequence[Any], encoder: Encoder) -> ToolRelease:
    """Return a release of functions, function schemas and MCP tools.

    Raises:
        ConfigurationError: tools are invalid or have the same name; lists all of them.
    """
    if isinstance(tools, str | Mapping) or callable(tools):
        raise ConfigurationError(f"Invalid tools: {tools!r:.80}. Expected a list of tools.")
    problems: list[str] = []
    accepted: dict[str, Tool] = {}
    for place, value in enumerate(tools):
        for where, declaration in _declarations(value, f"tools[{place}]"):
            if isinstance(declaration, str):
                problems.append(f"{where}: {declaration}")
            elif problem := _problem(declaration):
                problems.append(f"{where}: {problem}")
            else:
                tool = _tool(declaration, value if callable(value) else None)
                if tool.id in accepted:
                    problems.append(f"{where}: the name {tool.name!r} is repeated; rename one")
                accepted.setdefault(tool.id, tool)
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise ConfigurationError(f"{len(problems)} tools cannot be used:\n{lines}")
    return ToolRelease(list(accepted.values()), encoder)


def _declarations(value: Any, where: str) -> Iterator[tuple[str, Declaration | str]]:
    """Yield the declarations of one of the values, or its problem, each with its place."""
    if isinstance(value, type):
        yield where, f"{value.__name__} is a class; give functions, such as methods of an instance"
    elif (mcp := _mcp_tool(value)) is not None:
        yield where, mcp
    elif callable(value):
        yield where, _function(value)
    else:
        for place, record, gemini in function_records(value, where):
            declaration = read_function(record, gemini)
            expected = f"expected a Python function, an MCP tool, or one of {FORMATS}"
            yield place, declaration or f"unknown shape {type(record).__name__}; {expected}"


def _function(function: Callable[..., Any]) -> Declaration | str:
    try:
        declaration = described(function)
    except NoSchema as error:
        return str(error)
    if declaration.name == "<lambda>":
        return "a lambda has no name by which it could be called; define it with def"
    return declaration


def _mcp_tool(value: Any) -> Declaration | None:
    """Return the declaration of an MCP tool, given as a dict or as the object of a client library;
    None for another value.
    """
    is_mapping = isinstance(value, Mapping)
    if not is_mapping and not hasattr(value, "inputSchema"):
        return None

    def get(name: str) -> Any:
        return value.get(name) if is_mapping else getattr(value, name, None)

    if get("inputSchema") is None:
        return None
    annotations = get("annotations")
    if annotations is not None and hasattr(annotations, "model_dump"):
        annotations = annotations.model_dump(exclude_none=True)
    title = get("title")
    titled = {"title": title} if isinstance(title, str) else {}
    description = get("description") or title
    return Declaration(
        get("name"),
        description,
        get("inputSchema"),
        get("outputSchema"),
        {**titled, **(annotations or {})},
    )


def _problem(declaration: Declaration) -> str | None:
    name = declaration.name
    description = declaration.description
    if not isinstance(name, str) or not name.strip():
        return f"the name is {name!r:.40}, expected a text"
    if description is not None and not isinstance(description, str):
        return f"the description is {description!r:.40}, expected a text"
    schema = declaration.input_schema
    if schema is not None and not isinstance(schema, Mapping):
        return f"the input schema is {schema!r:.40}, expected a JSON Schema object"
    return None


def _tool(declaration: Declaration, function: Callable[..., Any] | None) -> Tool:
    name = declaration.name.strip()
    return FunctionTool(
        id=tool_id(AGENT.id, name),
        catalog=CATALOG,
        agent=AGENT.id,
        name=name,
        description=(declaration.description or "").strip(),
        input_schema=declaration.input_schema or {"type": "object", "properties": {}},
        output_schema=declaration.output_schema,
        annotations=declaration.annotations,
        function=function,
    )
