"""Everything that a report shows of a release, as JSON values.

They come from the manifest, the tables, the lake and the run; the page is made from them alone.
Lists have `total`, and under `shown` as many rows as fit on a page. What is not known is None, with
the reason beside it under `missing`."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pegboard.errors import PegboardError
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.database import public_uri, store_errors
from pegboard.store.releases import Channel, Release, ReleaseStore
from tasks.lake.files import Lake
from tasks.report.changes import changes_data
from tasks.report.checks import checks_data, verdict_data
from tasks.report.excerpts import excerpt, first_rows
from tasks.report.gate import channels_of, gate_data, history_data
from tasks.report.map import map_data
from tasks.report.run import llm_data, rejected_data, run_data, sources_data
from tasks.report.tools import dependencies_data, tools_data
from tasks.report.twins import twins_data
from tasks.report.vectors import ToolVectors

logger = logging.getLogger(__name__)

FORMAT = 1
"""Of the JSON; grows when a key gets another meaning."""
MAX_ROWS = 200
"""Rows of a list that are shown; all are counted."""
INDEX_KEYS = (
    *("encoder", "dimensions", "shape", "questions", "language", "understood", "fingerprint"),
)


def report_data(
    uri: str,
    release: str,
    outcome: Mapping[str, Any] | None = None,
    earlier: Mapping[str, Any] | None = None,
    *,
    keep: bool = True,
) -> dict[str, Any]:
    """Return what is known of a release of the board at `uri`.

    Args:
        release: its id, or the beginning of one.
        outcome: the outcome of the run that made it.
        earlier: the JSON of an earlier report on the release, for what only its run knew.
        keep: store in the lake what the next report goes on from.

    Raises:
        BoardNotFound: there is no such release.
        StoreError: the store refuses.
    """
    store = ReleaseStore(uri)
    subject, releases, channels = store.get(release), store.all(), store.channels()
    loaded = LoadedRelease(store, subject, IN_MEMORY_ROWS)
    run = run_data(subject, outcome) or (earlier or {}).get("run")
    gate, measurements = gate_data(uri, subject)
    changes = _try("changes", lambda: changes_data(store, subject, releases, loaded, MAX_ROWS))
    vectors = cache(lambda: ToolVectors.of(loaded))
    data = {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "release": _release_data(uri, subject, channels),
        "verdict": verdict_data(
            gate, changes, channels_of(subject, channels), measurements["queries"]["captured"]
        ),
        "counts": dict(subject.manifest.get("counts", {})),
        "gate": gate,
        "history": history_data(releases, channels, subject),
        "changes": changes,
        **measurements,
        "twins": _try("twins", lambda: twins_data(loaded, vectors())),
        "tools": _try("tools", lambda: tools_data(loaded)),
        "dependencies": _try("dependencies", lambda: dependencies_data(loaded)),
        "map": _try("map", lambda: map_data(loaded, vectors(), Lake(uri), store=keep)),
        "llm": _try("llm", lambda: llm_data(uri, run)),
        "sources": _try("sources", lambda: sources_data(uri, subject, run)),
        "rejected": _try("rejected", lambda: rejected_data(uri, subject, run, MAX_ROWS)),
        "flagged": _try("flagged", lambda: _flagged_data(store, subject, loaded)),
        "suspicious": first_rows(_suspicious(subject), MAX_ROWS),
        "run": run,
        "indexes": _index_data(subject),
        "tables": _table_data(subject),
    }
    return {**data, "checks": checks_data(data)}


def _try(part: str, make: Callable[[], Any]) -> Any:
    """A part of the report; or why it is missing, where the store or the lake lacks its data."""
    try:
        return make()
    except PegboardError as error:
        logger.warning("The report is made without %s: %s", part, error)
        return {"missing": str(error)}


def _flagged_data(store: ReleaseStore, release: Release, loaded: LoadedRelease) -> dict[str, Any]:
    """The tools whose text looks suspicious, with the codes of what was found."""
    if release.manifest.get("counts", {}).get("flagged") == 0:
        return first_rows([], MAX_ROWS)
    pin = release.tables["tools"]
    with store_errors(store.uri):
        rows = store.read_table(pin.table, pin.version).read(["id", "flags"])
    codes = dict(zip(rows.column("id").to_pylist(), rows.column("flags").to_pylist(), strict=True))
    flagged = sorted(tool for tool in codes if codes[tool])
    tools = loaded.tools(flagged[:MAX_ROWS])
    shown = [
        {"id": tool, "flags": list(codes[tool]), "description": excerpt(tools[tool].description)}
        for tool in flagged[:MAX_ROWS]
    ]
    return {"total": len(flagged), "shown": shown}


def _suspicious(release: Release) -> list[dict[str, Any]]:
    """The tools that are stuffed with examples or copy others, with what was found of each."""
    suspicious: Mapping[str, Any] = release.manifest.get("suspicious") or {}
    return [
        {"id": tool, "findings": [dict(finding) for finding in suspicious[tool]]}
        for tool in sorted(suspicious)
    ]


def _release_data(uri: str, release: Release, channels: Sequence[Channel]) -> dict[str, Any]:
    manifest = release.manifest
    board = public_uri(uri)
    return {
        "id": release.id,
        "digest": release.digest,
        "contract": release.contract,
        "created_at": release.created_at.isoformat(timespec="seconds"),
        "board": board,
        "name": board if "://" in board else "/".join(board.rstrip("/").split("/")[-2:]),
        "channels": channels_of(release, channels),
        "pegboard": manifest.get("pegboard"),
        "default_index": manifest.get("default_index"),
        "strategy": (manifest.get("strategy") or {}).get("name"),
    }


def _index_data(release: Release) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "default": name == release.manifest.get("default_index"),
            "parts": list(index.get("parts", ())),
            **{key: index.get(key) for key in INDEX_KEYS},
        }
        for name, index in release.manifest.get("indexes", {}).items()
    ]


def _table_data(release: Release) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, pin in release.tables.items():
        search = pin.search or {}
        indices = [str(search[kind]) for kind in ("vector", "text") if search.get(kind)]
        pinned = {"table": pin.table, "version": pin.version, "rows": pin.rows}
        rows.append({"name": name, **pinned, "indices": ", ".join(indices)})
    return rows
