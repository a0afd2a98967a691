"""Generated texts about tools and agents, as row sets of the lake.

    generated/<digest>/tools    id, description, avoid, arguments (a JSON object), questions,
                                topics; one row per tool that has any
    generated/<digest>/agents   id, description

Every row has a `digest` over the others. The name is the digest of the content, so equal texts
are stored once, whichever run made them; each set is stored as the difference to the last."""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pegboard.canonical import canonical_json, digest
from pegboard.errors import StoreError
from pegboard.records import Enrichment
from tasks.lake.files import Lake
from tasks.lake.row_sets import latest_rows, read_rows, store_latest
from tasks.settings.enrichment import Product

if TYPE_CHECKING:
    import polars as pl


logger = logging.getLogger(__name__)
TOOL_COLUMNS = ("id", "description", "avoid", "arguments", "questions", "topics", "digest")


def write_enrichments(
    lake: Lake,
    tools: Mapping[str, Enrichment],
    agents: Mapping[str, str],
) -> str:
    """Store enrichments of tools and descriptions of agents, by id, without empty ones; returns
    their folder of the lake.
    """
    rows = [_row(key, tools[key]) for key in sorted(tools) if tools[key] != Enrichment()]
    described = [
        {"id": key, "description": agents[key], "digest": digest(agents[key])}
        for key in sorted(agents)
        if agents[key]
    ]
    separator = {"id": "", "digest": ""}
    contents = [[row["id"], row["digest"]] for row in (*rows, separator, *described)]
    path = f"generated/{digest(contents)}"
    _store(lake, path, "agents", described, ("id", "description", "digest"))
    _store(lake, path, "tools", rows, TOOL_COLUMNS)
    return path


def read_tool_enrichments(
    lake: Lake, path: str, ids: Collection[str] | None = None
) -> dict[str, Enrichment]:
    """Return the enrichments by tool id, ordered by id; with `ids`, only of these tools."""
    return _enrichments(read_rows(lake, f"{path}/tools", keys=ids))


def read_agent_descriptions(lake: Lake, path: str) -> dict[str, str]:
    """Return the descriptions by agent id, ordered by id."""
    return dict(read_rows(lake, f"{path}/agents", ["id", "description"]).rows())


class PreviousTexts:
    """The texts of the set that the last run stored, for tools and agents that may lack new ones.

    Args:
        lake: the lake; nothing is read before the first text is asked for.
        ids: the tools and agents.
    """

    def __init__(self, lake: Lake, ids: Collection[str]) -> None:
        self._lake = lake
        self._ids = ids

    def value(self, product: Product, subject: str) -> Any:
        """Return the value of a product, in the form of an accepted reply; None if there is none.

        Args:
            subject: the id of the tool or agent.
        """
        if product == "agents":
            return self._agents.get(subject)
        texts = self._tools.get(subject, Enrichment())
        match product:
            case "description":
                described = {"description": texts.description, "avoid": texts.avoid}
                return described if texts.description else None
            case "arguments":
                return dict(texts.arguments) or None
            case "questions":
                return list(texts.questions) or None
            case "topics":
                return list(texts.topics) or None

    @cached_property
    def _tools(self) -> Mapping[str, Enrichment]:
        rows = self._rows("tools")
        return {} if rows is None else _enrichments(rows)

    @cached_property
    def _agents(self) -> Mapping[str, str]:
        rows = self._rows("agents")
        return {} if rows is None else dict(rows.select("id", "description").rows())

    def _rows(self, name: str) -> "pl.DataFrame | None":
        latest = latest_rows(self._lake, _pointer(name))
        if latest is None:
            return None
        try:
            return read_rows(self._lake, latest.path, keys=self._ids)
        except StoreError as error:  # written whole again at the end of this run
            logger.warning("Earlier texts of %s cannot be read: %s", name, error)
            return None


def enrichment_digests(lake: Lake, path: str | None) -> "pl.DataFrame":
    """Return the tools (`id`) that have an enrichment, and the `digest` of each."""
    import polars as pl

    if path is None:
        return pl.DataFrame(schema={"id": pl.String, "digest": pl.String})
    return read_rows(lake, f"{path}/tools", ["id", "digest"])


def _store(
    lake: Lake,
    path: str,
    name: str,
    rows: list[dict[str, Any]],
    columns: Sequence[str],
) -> None:
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys(columns, pl.String)
    if name == "tools":
        kinds |= dict.fromkeys(("questions", "topics"), pl.List(pl.String))
    frame = pl.DataFrame(rows, schema=kinds)
    store_latest(lake, f"{path}/{name}", _pointer(name), "id", frame, ["digest"])


def _pointer(name: str) -> str:
    return f"generated/latest-{name}-3"


def _enrichments(rows: "pl.DataFrame") -> dict[str, Enrichment]:
    return {
        row["id"]: Enrichment(
            description=row["description"],
            avoid=row["avoid"],
            arguments=json.loads(row["arguments"]),
            questions=tuple(row["questions"]),
            topics=tuple(row["topics"]),
        )
        for row in rows.iter_rows(named=True)
    }


def _row(key: str, written: Enrichment) -> dict[str, Any]:
    row: dict[str, Any] = {
        "description": written.description,
        "avoid": written.avoid,
        "arguments": canonical_json(written.arguments),
        "questions": list(written.questions),
        "topics": list(written.topics),
    }
    return {"id": key, **row, "digest": digest(row)}
