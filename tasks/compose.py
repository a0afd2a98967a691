"""Step 3: the documents of an index configuration, made from the tools and what was written about
them. Pure text; no encoder, no clock.

`single` joins the parts of a tool into one document (Toolshed, section 3.3). `centroid` keeps one
row for a tool, too, but encodes its
questions one by one: the row's vector is the unit sum of those of its texts, since a long text says
less of each of its sentences. `multi` has a row for the name and description together, one for the
arguments, one for the topics, and one for each question; a tool then scores by its best row. A true
name `getRecord_v2` is embedded as `get Record v2`; the true name stays in the tools table for the
caller."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.records import Agent, Enrichment, Tool
from pegboard.redaction import redact_credentials
from pegboard.search.text import identifier_words, tokenize
from pegboard.store.contract import CHECKSUM, column_names, embedding_table, row_key
from tasks.enrichment.bought import read_written
from tasks.lake.derived import derive, sources_of
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows
from tasks.lake.snapshot_rows import agents_of, tools_of
from tasks.settings.configuration import IndexSettings

if TYPE_CHECKING:
    import polars as pl

COMPOSE_VERSION = 2
"""Changes when the same tools give other documents, so that no document of the old kind is taken
for one of the new.
"""
NOTHING = Enrichment()


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one table of an index: a row set of the lake with its columns, and, in place
    of the vector, the lists `texts` and `text_digests` of what is encoded for it; of tools, also
    what each row follows from, see `derived.py`."""

    index: str
    path: str
    rows: int
    table: str


def compose_index(
    uri: str, settings: IndexSettings, snapshots: Mapping[str, str], writings: str | None = None
) -> Documents:
    """Compose the documents of an index from the snapshots (catalog -> digest), or find them made
    before.

    Args:
        writings: the folder of the lake with what was written about the tools; None if nothing was.
    """
    lake = Lake(uri)
    recipe = [COMPOSE_VERSION, settings.parts, settings.shape, settings.questions]
    path = f"documents/{digest([*recipe, dict(snapshots), writings])}"
    done = find_rows(lake, path) or derive(
        lake,
        path,
        f"documents/latest-{digest(recipe)}",
        key="key",
        tool="tool",
        sources=sources_of(lake, snapshots, writings),
        make=lambda ids: _composed(lake, settings, snapshots, writings, ids),
    )
    return Documents(settings.name, path, done.rows, embedding_table(settings.name))


def documents_of(
    tool: Tool, agent: Agent, settings: IndexSettings, written: Enrichment = NOTHING
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """The documents of one tool as (part, number, texts to encode); every tool has at least one,
    and no text is blank.

    Nothing of `written.avoid` is in them, and no value that looks like a credential.
    """
    for part, number, texts in _documents(tool, agent, settings, written):
        yield part, number, tuple(redact_credentials(text) for text in texts)


def _composed(
    lake: Lake,
    settings: IndexSettings,
    snapshots: Mapping[str, str],
    writings: str | None,
    ids: Collection[str],
) -> "pl.DataFrame":
    """The rows of some tools."""
    import polars as pl

    written = read_written(lake, writings, ids) if writings else {}
    agents = {agent.id: agent for agent in agents_of(lake, snapshots)}
    rows: list[dict[str, Any]] = []
    for tool in tools_of(lake, snapshots, ids):
        rows += _rows(tool, agents[tool.agent], settings, written.get(tool.id, NOTHING))
    columns = [name for name in column_names("emb_full") if name not in ("vector", CHECKSUM)]
    schema: dict[str, Any] = dict.fromkeys((*columns, "texts", "text_digests"), pl.String)
    schema |= dict.fromkeys(("tags", "texts", "text_digests"), pl.List(pl.String))
    return pl.DataFrame(rows, schema=schema)


def _rows(
    tool: Tool, agent: Agent, settings: IndexSettings, written: Enrichment
) -> Iterator[dict[str, Any]]:
    for part, number, texts in documents_of(tool, agent, settings, written):
        text = "\n".join(texts)
        row: dict[str, Any] = {
            "key": row_key(tool.id, part, number),
            "tool": tool.id,
            "part": part,
            "catalog": tool.catalog,
            "agent": tool.agent,
            "kind": agent.kind,
            "tags": list(tool.tags),
            "text": text,
            "tokens": " ".join(tokenize(text)),
            "text_digests": [digest(one) for one in texts],
        }
        yield row | {"digest": digest(row), "texts": list(texts)}


def _documents(
    tool: Tool, agent: Agent, settings: IndexSettings, written: Enrichment
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    said = {
        part: _text(part, tool, agent, written) for part in settings.parts if part != "questions"
    }
    questions = (
        _questions(tool, written)[: settings.questions] if "questions" in settings.parts else ()
    )
    name = identifier_words(tool.name) or tool.name
    described = ". ".join(said[part] for part in ("agent", "name", "description") if said.get(part))
    arguments, topics = said.get("arguments", ""), said.get("topics", "")
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
    asked = questions if settings.shape == "centroid" else (" ".join(questions),)
    texts = tuple(text for text in (head, *asked) if text) or (name,)
    yield "document", 0, texts if settings.shape == "centroid" else ("\n".join(texts),)


def _text(part: str, tool: Tool, agent: Agent, written: Enrichment) -> str:
    if part == "name":
        return identifier_words(tool.name) or tool.name
    if part == "agent":
        return identifier_words(agent.name)
    if part == "arguments":
        return _arguments(tool.input_schema, written.arguments)
    if part == "topics":
        return f"Topics: {'; '.join(written.topics)}" if written.topics else ""
    return " ".join((written.description or tool.description).split())


def _questions(tool: Tool, written: Enrichment) -> tuple[str, ...]:
    """The catalog's own examples first, then what was written; each once."""
    return tuple(
        dict.fromkeys(text for text in (*tool.examples, *written.questions) if text.strip())
    )


def _arguments(schema: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return ""
    described: list[str] = []
    for name, spec in properties.items():
        text = notes.get(name) or (spec.get("description") if isinstance(spec, Mapping) else None)
        words = identifier_words(str(name))
        described.append(
            f"{words}: {' '.join(text.split())}"
            if isinstance(text, str) and text.strip()
            else words
        )
    return f"Arguments: {'; '.join(described)}"
