"""Generated texts about tools and agents, as row sets of the lake: before the filter (`generated`)
and after it (`enriched`).

    <kind>/<digest>/tools          id, description, avoid, arguments (a JSON object), questions,
                                   topics; one row per tool that has any
    <kind>/<digest>/agents         id, description
    <kind>/<digest>/dependencies   id, dependencies (a JSON list); only if there are any

Every row has a `digest` over the others. The name is the digest of the content, so the same texts
are stored once, whoever made them and when; each set is stored as the difference to the last."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pegboard.canonical import canonical_json, digest
from pegboard.records import Enrichment
from tasks.lake.files import Lake
from tasks.lake.row_sets import find_rows, latest_rows, point_to, read_rows, write_frame

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class EnrichmentSet:
    """A folder of the lake with generated texts, and the number of tools and agents in it."""

    path: str
    tools: int
    agents: int


def write_enrichments(
    lake: Lake,
    kind: Literal["generated", "enriched"],
    tools: Mapping[str, Enrichment],
    agents: Mapping[str, str],
) -> EnrichmentSet:
    """Store enrichments of tools and descriptions of agents, by id, without empty ones."""
    import polars as pl

    rows = [row for key in sorted(tools) if (row := _row(key, tools[key])) is not None]
    described = [
        {"id": key, "description": agents[key], "digest": digest(agents[key])}
        for key in sorted(agents)
        if agents[key]
    ]
    judged = [
        {
            "id": key,
            "dependencies": canonical_json(tools[key].dependencies),
            "digest": digest(tools[key].dependencies),
        }
        for key in sorted(tools)
        if tools[key].dependencies
    ]
    separator = {"id": "", "digest": ""}
    contents = [[row["id"], row["digest"]] for row in (*rows, separator, *described)]
    path = f"{kind}/{digest(contents)}"
    columns: dict[str, Any] = dict.fromkeys(("id", "description", "avoid", "arguments"), pl.String)
    columns |= dict.fromkeys(("questions", "topics"), pl.List(pl.String)) | {"digest": pl.String}
    _store(lake, kind, f"{path}/agents", _texts_frame("description", described))
    if judged:
        _store(lake, kind, f"{path}/dependencies", _texts_frame("dependencies", judged))
    tool_rows = [{name: row[name] for name in columns} for row in rows]
    _store(lake, kind, f"{path}/tools", pl.DataFrame(tool_rows, schema=columns))
    return EnrichmentSet(path, len(rows), len(described))


def _texts_frame(column: str, rows: list[dict[str, Any]]) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(rows, schema=dict.fromkeys(("id", column, "digest"), pl.String))


def read_enrichments(lake: Lake, path: str) -> tuple[dict[str, Enrichment], dict[str, str]]:
    """Return the enrichments by tool id and the descriptions by agent id, ordered by id."""
    return read_tool_enrichments(lake, path), read_agent_descriptions(lake, path)


def read_tool_enrichments(
    lake: Lake, path: str, ids: Collection[str] | None = None
) -> dict[str, Enrichment]:
    """Return the enrichments by tool id, ordered by id; with `ids`, only of these tools."""
    verdicts = _verdicts(lake, f"{path}/dependencies", ids)
    return {
        row["id"]: Enrichment(
            description=row["description"],
            avoid=row["avoid"],
            arguments=json.loads(row["arguments"]),
            questions=tuple(row["questions"]),
            topics=tuple(row["topics"]),
            dependencies=verdicts.get(row["id"], ()),
        )
        for row in read_rows(lake, f"{path}/tools", keys=ids).iter_rows(named=True)
    }


def _verdicts(
    lake: Lake, path: str, ids: Collection[str] | None
) -> dict[str, tuple[dict[str, Any], ...]]:
    if find_rows(lake, path) is None:
        return {}
    rows = read_rows(lake, path, ["id", "dependencies"], ids).rows()
    return {key: tuple(json.loads(text)) for key, text in rows}


def read_agent_descriptions(lake: Lake, path: str) -> dict[str, str]:
    """Return the descriptions by agent id, ordered by id."""
    return dict(read_rows(lake, f"{path}/agents", ["id", "description"]).rows())


def enrichment_digests(lake: Lake, path: str | None) -> "pl.DataFrame":
    """Return the tools (`id`) that have an enrichment, and the `digest` of each."""
    import polars as pl

    if path is None:
        return pl.DataFrame(schema={"id": pl.String, "digest": pl.String})
    return read_rows(lake, f"{path}/tools", ["id", "digest"])


def _store(lake: Lake, kind: str, path: str, rows: "pl.DataFrame") -> None:
    pointer = f"{kind}/latest-{path.rpartition('/')[2]}"
    done = find_rows(lake, path) or write_frame(
        lake, path, "id", rows, latest_rows(lake, pointer), ["digest"]
    )
    point_to(lake, pointer, done.path)


def _row(key: str, written: Enrichment) -> dict[str, Any] | None:
    if written == Enrichment():
        return None
    row: dict[str, Any] = {
        "description": written.description,
        "avoid": written.avoid,
        "arguments": canonical_json(written.arguments),
        "questions": list(written.questions),
        "topics": list(written.topics),
    }
    if (
        written.dependencies
    ):  # where there are none, a row's digest is what it was before there could be any
        row["dependencies"] = [dict(verdict) for verdict in written.dependencies]
    return {"id": key, **row, "digest": digest(row)}
