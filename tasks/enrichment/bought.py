"""What was written about tools and agents, as row sets of the lake: before the filter (`bought`)
and after it (`enriched`).

    <kind>/<digest>/tools    id, description, avoid, arguments (a JSON object), questions, topics;
    one row per tool that has anything
    <kind>/<digest>/agents   id, description
    <kind>/<digest>/dependencies   id, dependencies (a JSON list); there only if anything was said
    of any

Every row has a `digest` over the others. The name is the digest of the content, so the same
writings are stored once, whoever made them and when; and each set is stored as the difference to
the one before."""

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
class Writings:
    """A folder of the lake with what was written, and for how many tools and agents there is
    anything.
    """

    path: str
    tools: int
    agents: int


def write_writings(
    lake: Lake,
    kind: Literal["bought", "enriched"],
    tools: Mapping[str, Enrichment],
    agents: Mapping[str, str],
) -> Writings:
    """Store what was written about tools (by id) and agents (id -> description); what is empty is
    left out.
    """
    import polars as pl

    rows = [row for row in (_row(key, tools[key]) for key in sorted(tools)) if row is not None]
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
    path = f"{kind}/{digest([[row['id'], row['digest']] for row in (*rows, {'id': '', 'digest': ''}, *described)])}"
    columns: dict[str, Any] = dict.fromkeys(("id", "description", "avoid", "arguments"), pl.String)
    columns |= dict.fromkeys(("questions", "topics"), pl.List(pl.String)) | {"digest": pl.String}
    said = pl.DataFrame(described, schema=dict.fromkeys(("id", "description", "digest"), pl.String))
    _store(lake, kind, f"{path}/agents", said)
    if judged:
        verdicts = pl.DataFrame(
            judged, schema=dict.fromkeys(("id", "dependencies", "digest"), pl.String)
        )
        _store(lake, kind, f"{path}/dependencies", verdicts)
    written = [{name: row[name] for name in columns} for row in rows]
    _store(lake, kind, f"{path}/tools", pl.DataFrame(written, schema=columns))
    return Writings(path, len(rows), len(described))


def read_writings(lake: Lake, path: str) -> tuple[dict[str, Enrichment], dict[str, str]]:
    """What a folder holds: the enrichments by tool id and the descriptions by agent id, both
    ordered by id.
    """
    return read_written(lake, path), read_described(lake, path)


def read_written(
    lake: Lake, path: str, ids: Collection[str] | None = None
) -> dict[str, Enrichment]:
    """The enrichments by tool id, ordered by id.

    Args:
        ids: only of these tools.
    """
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


def read_described(lake: Lake, path: str) -> dict[str, str]:
    """The descriptions by agent id, ordered by id."""
    return dict(read_rows(lake, f"{path}/agents", ["id", "description"]).rows())


def written_digests(lake: Lake, path: str | None) -> "pl.DataFrame":
    """The tools (`id`) about which anything was written, with a `digest` that is equal when and
    only when the writing is.
    """
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
        row["dependencies"] = [dict(one) for one in written.dependencies]
    return {"id": key, **row, "digest": digest(row)}
