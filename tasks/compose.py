"""Step 3: the documents of an index configuration, made from the tools. Pure text; no encoder, no clock.

`single` joins the parts of a tool into one document (Toolshed, section 3.3). `multi` makes one document of the name and
description together, one of the arguments, and one of each question; a tool then scores by its best document.
A true name `getRecord_v2` is embedded as `get Record v2`; the true name stays in the tools table for the caller.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from pegboard.canonical import digest
from pegboard.contract import CURRENT, row_key
from pegboard.records import Agent, Tool
from pegboard.text import identifier_words, tokenize
from tasks.configuration import IndexSettings, load_configuration
from tasks.lake import Lake
from tasks.snapshot import load_snapshot

__all__ = ["Documents", "compose", "compose_index", "documents_of"]

COMPOSE_VERSION = 1
"""Changes when the same tools give other documents, so that no document of the old kind is taken for one of the new."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one index: a file in the lake with the columns of its table, text_digest in place of the vector."""

    index: str
    path: str
    rows: int


@task(name="compose", task_run_name="compose {index}", cache_policy=NO_CACHE)
def compose(config: str, index: str, snapshots: dict[str, str]) -> Documents:
    """The Prefect skin of `compose_index`."""
    configuration = load_configuration(config)
    return compose_index(configuration.uri, configuration.index(index), snapshots)


def compose_index(uri: str, settings: IndexSettings, snapshots: Mapping[str, str]) -> Documents:
    """Compose the documents of an index from the snapshots (catalog -> digest), or find them made before."""
    import polars as pl

    lake = Lake(uri)
    recipe = [COMPOSE_VERSION, settings.parts, settings.shape, settings.questions, dict(snapshots)]
    path = f"documents/{digest(recipe)}.parquet"
    if lake.exists(path):
        return Documents(settings.name, path, lake.read(path, ["key"]).height)
    rows: list[dict[str, Any]] = []
    for catalog, identity in sorted(snapshots.items()):
        listing = load_snapshot(lake, catalog, identity)
        agents = {agent.id: agent for agent in listing.agents}
        for tool in listing.tools:
            kind, tags = agents[tool.agent].kind, list(tool.tags)
            for part, number, text in documents_of(tool, agents[tool.agent], settings):
                row = {
                    "key": row_key(tool.id, part, number),
                    "tool": tool.id,
                    "part": part,
                    "catalog": tool.catalog,
                    "agent": tool.agent,
                    "kind": kind,
                    "tags": tags,
                    "text": text,
                    "tokens": " ".join(tokenize(text)),
                    "text_digest": digest(text),
                }
                row["digest"] = digest(row)
                rows.append(row)
    columns = [name for name in CURRENT.embeddings(1).names if name != "vector"]
    schema = dict.fromkeys((*columns, "text_digest"), pl.String) | {"tags": pl.List(pl.String)}
    lake.write(path, pl.DataFrame(rows, schema=schema))
    return Documents(settings.name, path, len(rows))


def documents_of(tool: Tool, agent: Agent, settings: IndexSettings) -> Iterator[tuple[str, int, str]]:
    """The documents of one tool as (part, number, text); every tool has at least one that is not blank."""
    texts = {part: _text(part, tool, agent) for part in settings.parts if part != "questions"}
    questions = list(tool.examples[: settings.questions]) if "questions" in settings.parts else []
    name_and_description = ". ".join(texts[part] for part in ("agent", "name", "description") if texts.get(part))
    arguments = texts.get("arguments", "")
    if settings.shape == "single":
        lines = [name_and_description, arguments, " ".join(questions)]
        yield "document", 0, "\n".join(line for line in lines if line) or identifier_words(tool.name) or tool.name
        return
    yield "description", 0, name_and_description or identifier_words(tool.name) or tool.name
    if arguments:
        yield "arguments", 0, f"{identifier_words(tool.name)}. {arguments}"
    for number, question in enumerate(questions):
        yield "question", number, question


def _text(part: str, tool: Tool, agent: Agent) -> str:
    if part == "name":
        return identifier_words(tool.name) or tool.name
    if part == "agent":
        return identifier_words(agent.name)
    if part == "arguments":
        return _arguments(tool.input_schema)
    return " ".join(tool.description.split())


def _arguments(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return ""
    described: list[str] = []
    for name, spec in properties.items():
        text = spec.get("description") if isinstance(spec, Mapping) else None
        words = identifier_words(str(name))
        described.append(f"{words}: {' '.join(text.split())}" if isinstance(text, str) and text.strip() else words)
    return f"Arguments: {'; '.join(described)}"
