"""What was written about tools and agents, as a folder of the lake: before the filter (`bought`) and after it (`enriched`).

    tools.parquet    id, description, avoid, arguments (a JSON object), questions, topics; one row per tool that has anything
    agents.parquet   id, description

The folder's name is the digest of its content, so the same writings are stored once, whoever made them and when.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pegboard.canonical import canonical_json, digest
from pegboard.records import Enrichment
from tasks.lake import Lake

__all__ = ["Writings", "read_writings", "write_writings"]


@dataclass(frozen=True, slots=True)
class Writings:
    """A folder of the lake with what was written, and for how many tools and agents there is anything."""

    path: str
    tools: int
    agents: int


def write_writings(
    lake: Lake, kind: Literal["bought", "enriched"], tools: Mapping[str, Enrichment], agents: Mapping[str, str]
) -> Writings:
    """Store what was written about tools (by id) and agents (id -> description); what is empty is left out."""
    import polars as pl

    rows = [row for row in (_row(key, tools[key]) for key in sorted(tools)) if row is not None]
    described = [{"id": key, "description": agents[key]} for key in sorted(agents) if agents[key]]
    path = f"{kind}/{digest(rows, described)}"
    columns: dict[str, Any] = dict.fromkeys(("id", "description", "avoid", "arguments"), pl.String)
    columns |= dict.fromkeys(("questions", "topics"), pl.List(pl.String))
    agent_frame = pl.DataFrame(described, schema=dict.fromkeys(("id", "description"), pl.String))
    lake.write(f"{path}/agents.parquet", agent_frame)
    lake.write(f"{path}/tools.parquet", pl.DataFrame(rows, schema=columns))
    return Writings(path, len(rows), len(described))


def read_writings(lake: Lake, path: str) -> tuple[dict[str, Enrichment], dict[str, str]]:
    """What a folder holds: the enrichments by tool id and the descriptions by agent id, both ordered by id."""
    tools = {
        row["id"]: Enrichment(
            description=row["description"],
            avoid=row["avoid"],
            arguments=json.loads(row["arguments"]),
            questions=tuple(row["questions"]),
            topics=tuple(row["topics"]),
        )
        for row in lake.read(f"{path}/tools.parquet").iter_rows(named=True)
    }
    return tools, dict(lake.read(f"{path}/agents.parquet", ["id", "description"]).rows())


def _row(key: str, written: Enrichment) -> dict[str, Any] | None:
    if written == Enrichment():
        return None
    return {
        "id": key,
        "description": written.description,
        "avoid": written.avoid,
        "arguments": canonical_json(written.arguments),
        "questions": list(written.questions),
        "topics": list(written.topics),
    }
