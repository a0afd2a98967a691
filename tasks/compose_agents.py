"""Step 3, beside the tools: one document for each agent of an index, so that a request finds an
owner of tools by what it says of itself.

The text is the agent's name in words and its description, the written one if there is one
(Tool-to-Agent Retrieval). It is the same in every index; what differs is the encoder, so the rows
are stored once and every index has a table `agents_<index>` of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pegboard.canonical import digest
from pegboard.records import Agent
from pegboard.redaction import redact_credentials
from pegboard.search.text import identifier_words, tokenize
from pegboard.store.contract import CHECKSUM, agent_embedding_table, column_names, row_key
from tasks.compose import Documents
from tasks.enrichment.bought import read_described
from tasks.lake.files import Lake
from tasks.lake.row_sets import RowSet, find_rows, latest_rows, point_to, write_frame
from tasks.lake.snapshot_rows import agents_of
from tasks.settings.configuration import IndexSettings

if TYPE_CHECKING:
    import polars as pl

AGENTS_VERSION = 1
"""Changes when the same agents give other documents."""


def compose_agents_of(
    uri: str, settings: IndexSettings, snapshots: Mapping[str, str], writings: str | None = None
) -> Documents:
    """Compose the documents of an index's agents from the snapshots (catalog -> digest), or find
    them made before.

    Args:
        writings: the folder of the lake with what was written about the agents; None if nothing
            was.
    """
    lake = Lake(uri)
    path = f"documents/{digest(['agents', AGENTS_VERSION], dict(snapshots), writings)}"
    done = find_rows(lake, path) or _store(lake, path, _composed(lake, snapshots, writings))
    return Documents(settings.name, path, done.rows, agent_embedding_table(settings.name))


def agent_text(agent: Agent, described: str = "") -> str:
    """What of an agent is encoded: its name in words, and its description, or the one that was
    `described` instead.
    """
    said = " ".join((described or agent.description).split())
    name = identifier_words(agent.name) or agent.name
    return redact_credentials(". ".join(text for text in (name, said) if text))


def _composed(lake: Lake, snapshots: Mapping[str, str], writings: str | None) -> "pl.DataFrame":
    import polars as pl

    described = read_described(lake, writings) if writings else {}
    rows = [_row(agent, described.get(agent.id, "")) for agent in agents_of(lake, snapshots)]
    columns = [name for name in column_names("agents_full") if name not in ("vector", CHECKSUM)]
    schema: dict[str, Any] = dict.fromkeys((*columns, "texts", "text_digests"), pl.String)
    schema |= dict.fromkeys(("texts", "text_digests"), pl.List(pl.String))
    return pl.DataFrame(rows, schema=schema)


def _row(agent: Agent, described: str) -> dict[str, Any]:
    text = agent_text(agent, described)
    row: dict[str, Any] = {
        "key": row_key(agent.id, "document"),
        "part": "document",
        "catalog": agent.catalog,
        "agent": agent.id,
        "kind": agent.kind,
        "text": text,
        "tokens": " ".join(tokenize(text)),
        "text_digests": [digest(text)],
    }
    return row | {"digest": digest(row), "texts": [text]}


def _store(lake: Lake, path: str, rows: "pl.DataFrame") -> RowSet:
    pointer = f"documents/latest-agents-{AGENTS_VERSION}"
    done = write_frame(lake, path, "key", rows, latest_rows(lake, pointer), ["digest"])
    point_to(lake, pointer, done.path)
    return done
