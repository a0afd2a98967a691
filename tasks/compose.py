"""Step 3: the documents of an index, made from the tools, their agents and their enrichments. Pure
text: no encoder, no clock.

The shape of an index decides how many documents a tool has:

- `single` joins the parts of a tool into one document (Toolshed, section 3.3).
- `centroid` has one row per tool, too, but its questions are encoded one by one, and the row's
  vector is the normalised sum: a long text dilutes each of its sentences.
- `multi` has a row for the name and description, one for the arguments, one for the topics, and one
  for each question; a tool scores by its best row.

A name `getRecord_v2` is embedded as `get Record v2`; the `tools` table keeps the name itself.

Each index also has one document per agent, so that a request finds the owner of tools by its
description (Tool-to-Agent Retrieval). Agent documents are the same in every index; only the encoder
differs, so they are stored once, and every index has a table `agents_<index>`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.records import Agent, Enrichment, Tool
from pegboard.redaction import redact_credentials
from pegboard.search.text import identifier_words, tokenize
from pegboard.store.contract import (
    CHECKSUM,
    agent_embedding_table,
    column_names,
    embedding_table,
    row_key,
)
from tasks.enrichment.enrichment_sets import read_agent_descriptions, read_tool_enrichments
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, update_rows
from tasks.lake.row_sets import find_rows, store_latest
from tasks.lake.snapshot_rows import agents_of, tools_of
from tasks.settings.configuration import IndexSettings

if TYPE_CHECKING:
    import polars as pl

COMPOSE_VERSION = 2
AGENTS_VERSION = 1
"""Change when the same tools or agents give other documents, so that stored ones are not reused."""
NOTHING = Enrichment()


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one table of an index, as a row set of the lake.

    Its columns are the table's, with the lists `texts` and `text_digests` in place of the vector;
    documents of tools also have their inputs, see `lake/incremental.py`."""

    index: str
    path: str
    rows: int
    table: str


def compose_index(
    uri: str,
    settings: IndexSettings,
    snapshots: Mapping[str, str],
    enrichment_set: str | None = None,
) -> Documents:
    """Compose the documents of an index's tools, or find them composed before.

    Args:
        snapshots: catalog -> digest.
        enrichment_set: the folder of the lake with the enrichments; None without an LLM.
    """
    lake = Lake(uri)
    recipe = [COMPOSE_VERSION, settings.parts, settings.shape, settings.questions]
    path = f"documents/{digest([*recipe, dict(snapshots), enrichment_set])}"
    row_set = find_rows(lake, path) or update_rows(
        lake,
        path,
        f"documents/latest-{digest(recipe)}",
        key="key",
        tool="tool",
        inputs=row_inputs(lake, snapshots, enrichment_set),
        make=lambda ids: _tool_documents(lake, settings, snapshots, enrichment_set, ids),
    )
    return Documents(settings.name, path, row_set.rows, embedding_table(settings.name))


def compose_agents(
    uri: str,
    settings: IndexSettings,
    snapshots: Mapping[str, str],
    enrichment_set: str | None = None,
) -> Documents:
    """Compose the documents of an index's agents, or find them composed before.

    Args:
        snapshots: catalog -> digest.
        enrichment_set: the folder of the lake with the enrichments; None without an LLM.
    """
    lake = Lake(uri)
    path = f"documents/{digest(['agents', AGENTS_VERSION], dict(snapshots), enrichment_set)}"
    row_set = find_rows(lake, path) or store_latest(
        lake,
        path,
        f"documents/latest-agents-{AGENTS_VERSION}",
        "key",
        _agent_documents(lake, snapshots, enrichment_set),
        ["digest"],
    )
    return Documents(settings.name, path, row_set.rows, agent_embedding_table(settings.name))


def documents_of(
    tool: Tool, agent: Agent, settings: IndexSettings, enrichment: Enrichment = NOTHING
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield the documents of one tool as (part, number, texts to encode).

    Every tool has at least one, and no text is blank. They contain nothing of `enrichment.avoid`,
    and no value that looks like a credential.
    """
    for part, number, texts in _documents(tool, agent, settings, enrichment):
        yield part, number, tuple(redact_credentials(text) for text in texts)


def agent_text(agent: Agent, written: str = "") -> str:
    """Return what is encoded of an agent: its name in words, and its description.

    Args:
        written: a description by an LLM, which replaces the catalog's.
    """
    description = " ".join((written or agent.description).split())
    name = identifier_words(agent.name) or agent.name
    return redact_credentials(". ".join(text for text in (name, description) if text))


def _tool_documents(
    lake: Lake,
    settings: IndexSettings,
    snapshots: Mapping[str, str],
    enrichment_set: str | None,
    ids: Collection[str],
) -> "pl.DataFrame":
    """The rows of these tools."""
    enrichments = read_tool_enrichments(lake, enrichment_set, ids) if enrichment_set else {}
    agents = {agent.id: agent for agent in agents_of(lake, snapshots)}
    rows = [
        _row(tool, agents[tool.agent].kind, part, number, texts)
        for tool in tools_of(lake, snapshots, ids)
        for part, number, texts in documents_of(
            tool, agents[tool.agent], settings, enrichments.get(tool.id, NOTHING)
        )
    ]
    return _frame(rows, column_names("emb_full"))


def _agent_documents(
    lake: Lake, snapshots: Mapping[str, str], enrichment_set: str | None
) -> "pl.DataFrame":
    described = read_agent_descriptions(lake, enrichment_set) if enrichment_set else {}
    rows = [
        _with_texts(
            {
                "key": row_key(agent.id, "document"),
                "part": "document",
                "catalog": agent.catalog,
                "agent": agent.id,
                "kind": agent.kind,
            },
            [agent_text(agent, described.get(agent.id, ""))],
        )
        for agent in agents_of(lake, snapshots)
    ]
    return _frame(rows, column_names("agents_full"))


def _row(tool: Tool, kind: str, part: str, number: int, texts: Sequence[str]) -> dict[str, Any]:
    row = {
        "key": row_key(tool.id, part, number),
        "tool": tool.id,
        "part": part,
        "catalog": tool.catalog,
        "agent": tool.agent,
        "kind": kind,
        "tags": list(tool.tags),
    }
    return _with_texts(row, texts)


def _with_texts(row: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    text = "\n".join(texts)
    row = {
        **row,
        "text": text,
        "tokens": " ".join(tokenize(text)),
        "text_digests": [digest(text) for text in texts],
    }
    return {**row, "digest": digest(row), "texts": list(texts)}


def _frame(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> "pl.DataFrame":
    import polars as pl

    names = [name for name in columns if name not in ("vector", CHECKSUM)]
    schema: dict[str, Any] = dict.fromkeys((*names, "texts", "text_digests"), pl.String)
    lists = {"tags", "texts", "text_digests"} & schema.keys()
    schema |= dict.fromkeys(lists, pl.List(pl.String))
    return pl.DataFrame(rows, schema=schema)


def _documents(
    tool: Tool, agent: Agent, settings: IndexSettings, enrichment: Enrichment
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    name = identifier_words(tool.name) or tool.name
    parts = {
        part: _text(part, tool, agent, enrichment) for part in settings.parts if part != "questions"
    }
    described = ". ".join(
        parts[part] for part in ("agent", "name", "description") if parts.get(part)
    )
    arguments, topics = parts.get("arguments", ""), parts.get("topics", "")
    questions: tuple[str, ...] = ()
    if "questions" in settings.parts:
        questions = _questions(tool, enrichment)[: settings.questions]
    if settings.shape == "multi":
        yield "description", 0, (described or name,)
        if arguments:
            yield "arguments", 0, (f"{name}. {arguments}",)
        if topics:
            yield "topics", 0, (f"{name}. {topics}",)
        for number, question in enumerate(questions):
            yield "question", number, (question,)
        return
    head = "\n".join(text for text in (described, arguments, topics) if text)
    if settings.shape == "single":
        questions = (" ".join(questions),)
    texts = tuple(text for text in (head, *questions) if text) or (name,)
    yield "document", 0, texts if settings.shape == "centroid" else ("\n".join(texts),)


def _text(part: str, tool: Tool, agent: Agent, enrichment: Enrichment) -> str:
    if part == "name":
        return identifier_words(tool.name) or tool.name
    if part == "agent":
        return identifier_words(agent.name)
    if part == "arguments":
        return _arguments(tool.input_schema, enrichment.arguments)
    if part == "topics":
        return f"Topics: {'; '.join(enrichment.topics)}" if enrichment.topics else ""
    return " ".join((enrichment.description or tool.description).split())


def _questions(tool: Tool, enrichment: Enrichment) -> tuple[str, ...]:
    """The catalog's own examples first, then generated questions; each once."""
    texts = (*tool.examples, *enrichment.questions)
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def _arguments(schema: Mapping[str, Any], written: Mapping[str, str]) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return ""
    arguments: list[str] = []
    for name, spec in properties.items():
        declared = spec.get("description") if isinstance(spec, Mapping) else None
        text = written.get(name) or declared
        words = identifier_words(str(name))
        if isinstance(text, str) and text.strip():
            words = f"{words}: {' '.join(text.split())}"
        arguments.append(words)
    return f"Arguments: {'; '.join(arguments)}"
