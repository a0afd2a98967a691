"""Compose the documents of an index from the tools, their agents and their enrichments, and store
them as row sets of the lake. `pegboard.documents` defines their texts.

Each index also has one document per agent, so that a request finds the owner of tools by its
description (Tool-to-Agent Retrieval). Agent documents are the same in all indexes of one language.
They are stored once, and each index has a table `agents_<index>` with vectors of its encoder.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.documents import (
    NOTHING,
    agent_text,
    documents_of,
    search_words,
    searched_tokens,
    summary_of,
)
from pegboard.ranker.actions import tool_actions
from pegboard.records import Enrichment, Tool
from pegboard.store.contract import (
    CHECKSUM,
    agent_embedding_table,
    column_names,
    embedding_table,
    row_key,
)
from pegboard.text.boilerplate import most_tools, sentence_keys
from pegboard.text.words import tokenize
from tasks.enrichment.enrichment_sets import read_agent_descriptions, read_tool_enrichments
from tasks.lake.files import Lake
from tasks.lake.incremental import row_inputs, tool_rows, update_rows
from tasks.lake.row_sets import find_rows, store_latest
from tasks.lake.snapshot_rows import agents_of
from tasks.settings.configuration import WRITTEN_TEXTS, IndexSettings, WrittenText

if TYPE_CHECKING:
    import polars as pl

COMPOSE_VERSION = 7
AGENTS_VERSION = 4
SENTENCES_VERSION = 1
"""Raise these when the same tools or agents give other documents or sentences, so that stored ones
are not reused.
"""


WHOLE_TOOL = ("document", "description")
"""Parts of which every tool has one, and which stand for it as a whole."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one table of an index, as a row set of the lake.

    Its columns are those of the table, with the lists `texts` and `text_digests` instead of the
    vector. Documents of tools also have their inputs; see `lake/incremental.py`."""

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
    recipe = [
        COMPOSE_VERSION,
        settings.parts,
        settings.shape,
        settings.questions,
        settings.language,
        *settings.written_recipe,
    ]
    path = f"documents/{digest([*recipe, dict(snapshots), enrichment_set])}"
    row_set = find_rows(lake, path, _stored_columns("emb_full"))
    if row_set is None:
        shared = _boilerplate(lake, snapshots)
        row_set = update_rows(
            lake,
            path,
            f"documents/latest-{digest(recipe)}",
            snapshots,
            key="key",
            tool="tool",
            inputs=row_inputs(lake, snapshots, enrichment_set).join(shared, on="tool", how="left"),
            make=partial(_tool_documents, uri, settings, snapshots, enrichment_set),
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
    recipe = [AGENTS_VERSION, settings.language]
    path = f"documents/{digest(['agents', *recipe], dict(snapshots), enrichment_set)}"
    row_set = find_rows(lake, path, _stored_columns("agents_full")) or store_latest(
        lake,
        path,
        f"documents/latest-agents-{digest(recipe)}",
        "key",
        _agent_documents(lake, settings.language, snapshots, enrichment_set),
        ["digest"],
    )
    return Documents(settings.name, path, row_set.rows, agent_embedding_table(settings.name))


def _boilerplate(lake: Lake, snapshots: Mapping[str, str]) -> "pl.DataFrame":
    """Return the tools that have boilerplate: `tool`, and `boilerplate`, the sorted keys of the
    sentences that many tools of its catalog have, separated by spaces.
    """
    import polars as pl

    columns = ("tool", "catalog", "sentences")
    tools = tool_rows(
        lake, "sentences", SENTENCES_VERSION, snapshots, columns, make=_tool_sentences
    )
    sizes = tools.group_by("catalog").len().rows()
    limits = pl.DataFrame(
        [(catalog, most_tools(size)) for catalog, size in sizes],
        schema={"catalog": pl.String, "most": pl.Float64},
        orient="row",
    )
    sentences = tools.explode("sentences").drop_nulls("sentences")
    counts = sentences.group_by("catalog", "sentences").len().join(limits, on="catalog")
    shared = counts.filter(pl.col("len") > pl.col("most"))
    return (
        sentences.join(shared, on=["catalog", "sentences"], how="semi")
        .group_by("tool")
        .agg(pl.col("sentences").sort().str.join(" ").alias("boilerplate"))
    )


def _tool_sentences(tools: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    rows = [
        (tool.id, tool.catalog, sorted(sentence_keys(tool)))
        for tool in map(tool_of, tools.iter_rows(named=True))
    ]
    schema = {"tool": pl.String, "catalog": pl.String, "sentences": pl.List(pl.String)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _tool_documents(
    uri: str,
    settings: IndexSettings,
    snapshots: Mapping[str, str],
    enrichment_set: str | None,
    tools: "pl.DataFrame",
) -> "pl.DataFrame":
    """Return the rows of these tools."""
    lake = Lake(uri)
    ids = tools.get_column("id")
    enrichments = read_tool_enrichments(lake, enrichment_set, ids) if enrichment_set else {}
    owners = tools.get_column("agent").unique()
    agents = {agent.id: agent for agent in agents_of(lake, snapshots, owners)}
    rows: list[dict[str, Any]] = []
    documents = partial(
        documents_of, parts=settings.parts, shape=settings.shape, questions=settings.questions
    )
    for tool_row in tools.iter_rows(named=True):
        tool = tool_of(tool_row)
        boilerplate = (tool_row["boilerplate"] or "").split()
        agent = agents[tool.agent]
        enrichment = _indexed_texts(enrichments.get(tool.id, NOTHING), settings.written)
        summary = summary_of(tool, settings.parts, enrichment, boilerplate)
        tool_columns = _tool_columns(tool, agent.kind, summary, settings.language)
        words = search_words(tool, settings.parts)
        for part, number, texts in documents(tool, agent, enrichment, boilerplate):
            row = {"key": row_key(tool.id, part, number), "part": part, **tool_columns}
            row_words = words if number == 0 and part in WHOLE_TOOL else ""
            rows.append(_with_texts(row, texts, settings.language, [summary], row_words))
    return _frame(rows, "emb_full")


def _indexed_texts(enrichment: Enrichment, written: Collection[WrittenText]) -> Enrichment:
    """Return an enrichment with those texts alone."""
    if enrichment is NOTHING or len(written) == len(WRITTEN_TEXTS):
        return enrichment
    return replace(NOTHING, **{text: getattr(enrichment, text) for text in written})


def _agent_documents(
    lake: Lake, language: str, snapshots: Mapping[str, str], enrichment_set: str | None
) -> "pl.DataFrame":
    descriptions = read_agent_descriptions(lake, enrichment_set) if enrichment_set else {}
    rows = [
        _with_texts(
            {
                "key": row_key(agent.id, "document"),
                "part": "document",
                "catalog": agent.catalog,
                "agent": agent.id,
                "kind": agent.kind,
            },
            [agent_text(agent, descriptions.get(agent.id, ""))],
            language,
        )
        for agent in agents_of(lake, snapshots)
    ]
    return _frame(rows, "agents_full")


def _tool_columns(tool: Tool, kind: str, summary: str, language: str) -> dict[str, Any]:
    """Return the columns that are equal in all rows of a tool."""
    return {
        "tool": tool.id,
        "catalog": tool.catalog,
        "agent": tool.agent,
        "kind": kind,
        "tags": list(tool.tags),
        "name_tokens": " ".join(tokenize(tool.name, language)),
        "actions": " ".join(sorted(tool_actions(tool))),
        "summary": summary,
    }


def _with_texts(
    row: Mapping[str, Any],
    texts: Sequence[str],
    language: str,
    more: Sequence[str] = (),
    words: str = "",
) -> dict[str, Any]:
    """Return a row with its text, its words, and the texts to encode.

    Args:
        more: texts that are encoded, but not part of the row's text.
        words: a text whose words are searched, but which is not part of the row's text.
    """
    text = "\n".join(texts)
    encoded_texts = [*texts, *more]
    row = {
        **row,
        "text": text,
        "tokens": " ".join(searched_tokens(text, words, language)),
        "text_digests": [digest(encoded_text) for encoded_text in encoded_texts],
    }
    return {**row, "digest": digest(row), "texts": encoded_texts}


def _stored_columns(table: str) -> list[str]:
    """Return the columns of a table's documents in the lake: texts instead of vectors."""
    left_out = ("vector", "summary_vector", CHECKSUM)
    names = [name for name in column_names(table) if name not in left_out]
    return [*names, "texts", "text_digests"]


def _frame(rows: Sequence[Mapping[str, Any]], table: str) -> "pl.DataFrame":
    import polars as pl

    schema: dict[str, Any] = dict.fromkeys(_stored_columns(table), pl.String)
    lists = {"tags", "texts", "text_digests"} & schema.keys()
    schema |= dict.fromkeys(lists, pl.List(pl.String))
    return pl.DataFrame(rows, schema=schema)
