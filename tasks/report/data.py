"""The contents of a report on a release, as JSON values.

They come from the manifest, the tables, the lake and the run; the page is made from them alone.
Lists have `total`, and a bounded number of rows in `shown`. Unknown values are None or absent, with
the reason in `missing`."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pegboard.errors import PegboardError, StoreError
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.database import public_uri
from pegboard.store.releases import Channel, Release, ReleaseStore
from tasks.lake.files import Lake
from tasks.lake.formats import FileKind
from tasks.report.changes import changes_data
from tasks.report.excerpts import LONG, excerpt, first_rows
from tasks.report.gate import channels_of, gate_data, verdict_data
from tasks.report.twins import twins_data

logger = logging.getLogger(__name__)

FORMAT = 1
"""The format of the JSON; raise it when a key gets another meaning."""
REPORT = FileKind("reports", ".*", FORMAT)
MAX_ROWS = 200
"""Largest number of rows of a list that are shown; all are counted."""
MAX_REJECTED = 1_000
"""Largest number of rejected rows in a report's JSON, which has them so that the report can be made
again without the run."""
MAX_NAMED = 50
"""Largest number of problems of the run in a report's JSON."""
INDEX_KEYS = ("encoder", "dimensions", "shape", "questions", "language", "understood")
RUN_KEYS = ("outcome", "encoded", "truncated", "catalogs", "enrichment", "seconds")


class Reports(Lake):
    """The folder of a board's reports, which is written and read like the lake."""

    def __init__(self, uri: str) -> None:
        self.uri = f"{uri.rstrip('/')}/reports"

    def kind_of(self, path: str) -> FileKind:
        return REPORT

    def values(self, release: str) -> dict[str, Any] | None:
        """Return the JSON of the report on a release; None if there is none or it is damaged."""
        try:
            values = self.read_json(f"{release}.json")
        except (StoreError, json.JSONDecodeError):
            return None
        return values if isinstance(values, dict) else None  # pyright: ignore[reportUnknownVariableType]


def report_data(uri: str, release: str, outcome: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the report on a release of the board at `uri`, as JSON values.

    Args:
        release: its id, or the start of the id.
        outcome: the outcome of the run that made the release; by default the values of that run in
            an earlier report are used.

    Raises:
        BoardNotFound: there is no such release.
        StoreError: the store fails.
    """
    store = ReleaseStore(uri)
    subject = store.get(release)
    releases = store.all()
    channels = store.channels()
    loaded = LoadedRelease(store, subject, IN_MEMORY_ROWS)
    previous_report = None if outcome else Reports(uri).values(subject.id)
    run = run_data(subject, outcome) or (previous_report or {}).get("run")
    gate, measurements = gate_data(uri, subject)
    changes = _try("changes", lambda: changes_data(store, subject, releases, loaded, MAX_ROWS))
    return {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "release": _release_data(uri, subject, channels),
        "verdict": verdict_data(
            gate,
            changes,
            channels_of(subject, channels),
            measurements["queries"]["captured"],
            subject.manifest.get("unapproved", 0),
        ),
        "counts": dict(subject.manifest.get("counts", {})),
        "gate": gate,
        "changes": changes,
        **measurements,
        "twins": _try("twins", lambda: twins_data(loaded)),
        "sources": _sources_data(subject, run),
        "rejected": _rejected_data(subject, run),
        "flagged": _try("flagged", lambda: _flagged_data(store, subject, loaded)),
        "suspicious": first_rows(_suspicious(subject), MAX_ROWS),
        "run": run,
        "indexes": _index_data(subject),
    }


def _try(part: str, make: Callable[[], Any]) -> Any:
    """Return a part of the report, or why it is missing if the store or the lake lacks its data."""
    try:
        return make()
    except PegboardError as error:
        logger.warning("The report is made without %s: %s", part, error)
        return {"missing": str(error)}


def _flagged_data(store: ReleaseStore, release: Release, loaded: LoadedRelease) -> dict[str, Any]:
    """Return the tools with flags, and their flags."""
    if release.manifest.get("counts", {}).get("flagged") == 0:
        return first_rows([], MAX_ROWS)
    pin = release.tables["tools"]
    rows = store.read_rows(pin, ["id", "flags"])
    ids = rows.column("id").to_pylist()
    flags = dict(zip(ids, rows.column("flags").to_pylist(), strict=True))
    flagged = sorted(tool for tool in flags if flags[tool])
    tools = loaded.tools(flagged[:MAX_ROWS])
    shown = [
        {"id": tool, "flags": list(flags[tool]), "description": excerpt(tools[tool].description)}
        for tool in flagged[:MAX_ROWS]
    ]
    return {"total": len(flagged), "shown": shown}


def _suspicious(release: Release) -> list[dict[str, Any]]:
    """Return the suspicious tools of a release, with the evidence."""
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


def run_data(release: Release, outcome: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the part of a report about a run; None without a run, or if it made another release.

    Args:
        outcome: the outcome of a run; see `flows.reindex`.
    """
    if not outcome or outcome.get("release") != release.id:
        return None
    rejected = [_rejected_row(what, row) for what, row in left_out(outcome)]
    return {
        **{name: outcome.get(name) for name in RUN_KEYS},
        "rejected": first_rows(rejected, MAX_REJECTED),
        "problems": first_rows(
            [*(outcome.get("problems") or ()), *(outcome.get("advice") or ())], MAX_NAMED
        ),
    }


def left_out(outcome: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what a run rejected and its notices, each as what was done and the row of it."""
    rejected = [("rejected", row) for row in outcome.get("rejected") or ()]
    return rejected + [(row["kind"], row) for row in outcome.get("notices") or ()]


def _sources_data(release: Release, run: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return each catalog with its counts, the agents whose last good tools were kept, and the
    run's problems.
    """
    listings = (run or {}).get("catalogs") or {}
    sources: list[dict[str, Any]] = []
    for name, catalog in release.manifest.get("catalogs", {}).items():
        problems: Sequence[str] | None = listings.get(name, {}).get("problems")
        excerpts = None if problems is None else [excerpt(text, LONG) for text in problems]
        sources.append(
            {
                "catalog": name,
                **{key: catalog.get(key) for key in ("tools", "agents", "rejected")},
                "kept": list(catalog.get("kept", ())),
                "problems": excerpts,
            }
        )
    return sources


def _rejected_data(release: Release, run: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the rejected records and the notices with places and reasons; without a run only the
    number of rejected records.
    """
    if run is not None:
        return {**run["rejected"], "shown": run["rejected"]["shown"][:MAX_ROWS]}
    total = sum(row.get("rejected", 0) for row in release.manifest.get("catalogs", {}).values())
    return {"total": total, "shown": []}


def _rejected_row(what: str, row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "what": what,
        "catalog": str(row["catalog"]),
        "where": excerpt(str(row["where"])),
        "why": excerpt(str(row["why"]), LONG),
    }
