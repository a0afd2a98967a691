"""Everything that a report says of a release, as JSON values: from its manifest, its tables, the
lake, and what the run told.

The page is made from these values alone. Lists have `total`, and under `shown` as many as fit on a
page. What is not known is None, with the reason beside it under `missing`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pegboard.board import IN_MEMORY_ROWS
from pegboard.errors import PegboardError
from pegboard.evaluation.collisions import collisions
from pegboard.search.loaded import LoadedRelease
from pegboard.store.contract import embedding_table
from pegboard.store.database import public_uri, store_errors
from pegboard.store.releases import Channel, Release, ReleaseStore
from pegboard.store.tables import open_table
from tasks.report.compared import changes_data, listed
from tasks.report.judged import gate_data, history_data, verdict_data
from tasks.report.map import map_data
from tasks.report.texts import SHORT, cut
from tasks.report.told import llm_data, rejected_data, run_data, sources_data

logger = logging.getLogger(__name__)

FORMAT = 1
"""Of the JSON; grows when a place in it gets another meaning."""
LISTED = 200
"""Rows of a list that are shown; it counts them all."""
PAIRS = 100
PAIRED = 400
"""Characters of a description that is shown beside another."""
LEAST_COSINE = 0.9
MOST_ROWS = 25_000
"""Vectors of an index between which collisions are looked for: every pair is compared, in about 5 s
at so many.
"""


def report_data(
    uri: str,
    release: str,
    run: Mapping[str, Any] | None = None,
    earlier: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What is known of a release of the board at `uri`.

    Args:
        release: its id, or the beginning of one.
        run: what `RunSummary.end` said of the run that made it.
        earlier: the JSON of an earlier report on the release, for what only its run knew.

    Raises BoardNotFound if there is no such release, StoreError if the store refuses.
    """
    store = ReleaseStore(uri)
    subject, every, channels = store.get(release), store.all(), store.channels()
    loaded = LoadedRelease(store, subject, IN_MEMORY_ROWS)
    told = run_data(subject, run) or (earlier or {}).get("run")
    gate, details = gate_data(uri, subject)
    changes = _tried("changes", lambda: changes_data(store, subject, every, loaded, LISTED))
    return {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "release": _release_data(uri, subject, channels),
        "verdict": verdict_data(
            gate, changes, [one.name for one in channels if one.release == subject.id]
        ),
        "counts": dict(subject.manifest.get("counts", {})),
        "gate": gate,
        "history": history_data(every, channels, subject),
        "changes": changes,
        **details,
        "collisions": _tried("collisions", lambda: collisions_data(loaded)),
        "map": _tried("map", lambda: map_data(loaded)),
        "llm": _tried("llm", lambda: llm_data(uri, told)),
        "sources": _tried("sources", lambda: sources_data(uri, subject, told)),
        "rejected": _tried("rejected", lambda: rejected_data(uri, subject, told, LISTED)),
        "flagged": _tried("flagged", lambda: flagged_data(store, subject, loaded)),
        "run": told,
        "indexes": _index_data(subject),
        "tables": [
            {
                "name": name,
                "table": pin.table,
                "version": pin.version,
                "rows": pin.rows,
                "indices": _indices(pin.search),
            }
            for name, pin in subject.tables.items()
        ],
    }


def collisions_data(loaded: LoadedRelease, most_rows: int = MOST_ROWS) -> dict[str, Any]:
    """The pairs of tools that the default index can hardly tell apart, closest first, with what the
    catalogs say of both.

    Args:
        most_rows: vectors of the index; of more, none are compared.
    """
    index = loaded.index_name(None)
    rows = loaded.release.tables[embedding_table(index)].rows
    if rows > most_rows:
        return {
            "missing": f"Index {index} has {rows:,} vectors, and each pair would have to be "
            f"compared; a report looks for "
            f"collisions among {most_rows:,} at most. `pegboard stress GOLDEN --collisions 0.9` "
            f"takes the time."
        }
    found = collisions(loaded, index, least=LEAST_COSINE, shown=PAIRS)
    tools = loaded.tools(sorted({one for pair in found.pairs for one in (pair.first, pair.second)}))
    return {
        **found.to_dict(),
        "index": index,
        "pairs": [
            {
                "cosine": pair.cosine,
                **{
                    side: {
                        "id": one,
                        "name": tools[one].name,
                        "description": cut(tools[one].description, PAIRED),
                    }
                    for side, one in (("first", pair.first), ("second", pair.second))
                },
            }
            for pair in found.pairs
        ],
    }


def flagged_data(store: ReleaseStore, release: Release, loaded: LoadedRelease) -> dict[str, Any]:
    """The tools whose text looks suspicious, with the codes of what it was."""
    if release.manifest.get("counts", {}).get("flagged") == 0:
        return listed([], LISTED)
    pin = release.tables["tools"]
    with store_errors(store.uri):
        rows = open_table(store.tables, pin.table, store.uri, pin.version).read(["id", "flags"])
    flags = dict(zip(rows.column("id").to_pylist(), rows.column("flags").to_pylist(), strict=True))
    ids = sorted(one for one, codes in flags.items() if codes)
    tools = loaded.tools(ids[:LISTED])
    return {
        "total": len(ids),
        "shown": [
            {
                "id": one,
                "flags": list(flags[one]),
                "description": cut(tools[one].description, SHORT),
            }
            for one in ids[:LISTED]
        ],
    }


def _tried(what: str, made: Callable[[], Any]) -> Any:
    """A part of the report; or, where the store or the lake lacks what it is made from, why it is
    missing.
    """
    try:
        return made()
    except PegboardError as error:
        logger.warning("The report goes without %s: %s", what, error)
        return {"missing": str(error)}


def _release_data(uri: str, release: Release, channels: Sequence[Channel]) -> dict[str, Any]:
    manifest = release.manifest
    shown = public_uri(uri)
    return {
        "id": release.id,
        "digest": release.digest,
        "contract": release.contract,
        "created_at": release.created_at.isoformat(timespec="seconds"),
        "board": shown,
        "name": shown if "://" in shown else "/".join(shown.rstrip("/").split("/")[-2:]),
        "channels": [one.name for one in channels if one.release == release.id],
        "pegboard": manifest.get("pegboard"),
        "default_index": manifest.get("default_index"),
        "strategy": (manifest.get("strategy") or {}).get("name"),
    }


def _index_data(release: Release) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "default": name == release.manifest.get("default_index"),
            "encoder": index.get("encoder"),
            "dimensions": index.get("dimensions"),
            "shape": index.get("shape"),
            "parts": list(index.get("parts", ())),
            "questions": index.get("questions"),
            "calibrated": "calibration" in index,
            "fingerprint": index.get("fingerprint"),
        }
        for name, index in release.manifest.get("indexes", {}).items()
    ]


def _indices(search: Mapping[str, Any] | None) -> str:
    """The indices of a table, in words."""
    if not search:
        return ""
    return ", ".join(str(search[name]) for name in ("vector", "text") if search.get(name))
