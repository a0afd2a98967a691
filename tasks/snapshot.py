"""Step 1: list each source and store its snapshot in the lake. A source that fails keeps its last
good snapshot, and is reported.

A source made of files that are what they were is not read again; see `fingerprint_of`.
"""

import hashlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import catalogs
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing
from catalogs.shared.tool_row import tool_row
from pegboard import canonical, records
from pegboard.canonical import digest
from pegboard.cli.tables import count_text
from pegboard.errors import SourceError, StoreError
from pegboard.records import Rejected
from tasks import progress
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import (
    agent_frame,
    agents_of,
    has_snapshot,
    snapshot_rows,
    store_snapshot,
    tool_frame,
    tools_of,
)
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one catalog.

    Attributes:
        digest: the digest of the snapshot in the lake.
        problems: what went wrong this time.
        kept: the agents (or, as `*`, the whole catalog) whose last good tools replace a listing
            that failed or was suddenly empty.
        failed: the agents (or `*`) that could not be listed; missing unless they are in `kept`.
    """

    catalog: str
    digest: str
    tools: int
    agents: int
    rejected: tuple[Rejected, ...] = ()
    problems: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def take_snapshot(
    configuration: Configuration, catalog: str, *, allow_empty: bool = False, fresh: bool = True
) -> Snapshot:
    """List a catalog's source and store its snapshot, with the last good one where it failed.

    Args:
        allow_empty: accept an empty listing from a source that had tools.
        fresh: false: take the stored snapshot, if there is one, without listing the source.
    """
    snapshot = None if fresh else stored_snapshot(configuration, catalog)
    if snapshot and not has_snapshot(Lake(configuration.uri), catalog, snapshot.digest):
        snapshot = None
    snapshot = snapshot or _list_and_store(configuration, catalog, allow_empty=allow_empty)
    counts = f"{count_text(snapshot.tools, 'tool')} of {count_text(snapshot.agents, 'agent')}"
    progress.advance("snapshot", text=f"{catalog}: {counts}")
    return snapshot


def _list_and_store(configuration: Configuration, catalog: str, *, allow_empty: bool) -> Snapshot:
    same = unchanged_snapshot(configuration, catalog, allow_empty=allow_empty)
    if same is not None:
        return same
    lake, before = Lake(configuration.uri), stored_snapshot(configuration, catalog)
    # Taken before the source is read: a file that changes meanwhile is read again in the next run.
    inputs = fingerprint_of(configuration, catalog)
    listing, snapshot = list_source(configuration, catalog, allow_empty=allow_empty)
    folder = f"snapshots/{catalog}"
    earlier = before.digest if before else None
    if earlier != snapshot.digest or not has_snapshot(lake, catalog, snapshot.digest):
        store_snapshot(
            lake,
            catalog,
            snapshot.digest,
            agent_frame(listing.agents),
            tool_frame(listing),
            earlier,
        )
    rejected = digest([asdict(row) for row in listing.rejected])
    lake.write(_rejected_path(catalog, rejected), _rejected_frame(listing.rejected))
    if "*" not in (*snapshot.kept, *snapshot.failed):
        latest = {
            "snapshot": snapshot.digest,
            "rejected": rejected,
            "tools": snapshot.tools,
            "agents": snapshot.agents,
            "kept": snapshot.kept,
            "problems": snapshot.problems,
            "inputs": inputs if _is_repeatable(listing) else None,
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        lake.write_json(f"{folder}/latest.json", latest)
    return snapshot


def _is_repeatable(listing: Listing) -> bool:
    return listing.repeatable and not listing.failures and not listing.unreadable


def unchanged_snapshot(
    configuration: Configuration, catalog: str, *, allow_empty: bool = False
) -> Snapshot | None:
    """Return what `take_snapshot` would return, without reading the source; None if the files of
    the source changed, or it has none.
    """
    lake = Lake(configuration.uri)
    latest = lake.read_json(f"snapshots/{catalog}/latest.json")
    if latest is None or not latest.get("inputs") or (allow_empty and latest["kept"]):
        return None
    if latest["inputs"] != fingerprint_of(configuration, catalog) or not has_snapshot(
        lake, catalog, latest["snapshot"]
    ):
        return None
    try:
        rows = lake.read(_rejected_path(catalog, latest["rejected"])).iter_rows(named=True)
    except StoreError:
        return None
    return Snapshot(
        catalog=catalog,
        digest=latest["snapshot"],
        tools=latest["tools"],
        agents=latest["agents"],
        rejected=tuple(Rejected(**row) for row in rows),
        problems=tuple(latest["problems"]),
        kept=tuple(latest["kept"]),
    )


def stored_snapshot(configuration: Configuration, catalog: str) -> Snapshot | None:
    """Return the last good snapshot of a catalog, without listing its source; None without one."""
    latest = Lake(configuration.uri).read_json(f"snapshots/{catalog}/latest.json")
    if latest is None:
        return None
    return Snapshot(
        catalog, latest["snapshot"], latest["tools"], latest["agents"], kept=tuple(latest["kept"])
    )


def list_source(
    configuration: Configuration, catalog: str, *, allow_empty: bool = False
) -> tuple[Listing, Snapshot]:
    """List a catalog's source, without storing anything."""
    listing = list_isolated(catalog, configuration.base, configuration.options(catalog))
    problems = [
        failure.why if failure.agent == "*" else f"{failure.agent}: {failure.why}"
        for failure in listing.failures
    ]
    problems += [
        f"{why} The catalog's other files are listed; no tool is removed from it until all can be "
        f"read."
        for why in listing.unreadable
    ]
    lake = Lake(configuration.uri)
    stored = stored_snapshot(configuration, catalog)
    merged, kept = _merge(listing, lake, stored, allow_empty=allow_empty)
    failed = {failure.agent for failure in listing.failures}
    problems += [
        f"{agent} lists no tools any more; its last good ones are kept. Give --allow-empty "
        f"if that is intended."
        for agent in kept
        if agent not in failed and not listing.unreadable
    ]
    identity = digest(
        [agent.digest for agent in merged.agents], [row["digest"] for row in merged.rows]
    )
    snapshot = Snapshot(
        catalog=catalog,
        digest=identity,
        tools=len(merged.tools),
        agents=len(merged.agents),
        rejected=merged.rejected,
        problems=tuple(problems),
        kept=tuple(kept),
        failed=tuple(sorted(failed)),
    )
    return merged, snapshot


def _merge(
    new: Listing, lake: Lake, stored: Snapshot | None, *, allow_empty: bool
) -> tuple[Listing, list[str]]:
    """The new listing, with the last good agents and tools where the source failed or is suddenly
    empty; and whose tools were kept.
    """
    failed = {failure.agent for failure in new.failures}
    silent = (
        {agent.id for agent in new.agents} - {row["agent"] for row in new.rows}
        if not allow_empty
        else set[str]()
    )
    empty = not new.tools and not allow_empty and not failed
    if stored is None or not (failed or silent or empty or new.unreadable):
        return new, []
    last = {stored.catalog: stored.digest}
    if "*" in failed or (empty and stored.tools):
        tools = tools_of(lake, last)
        return replace(
            new, agents=agents_of(lake, last), tools=tools, rows=tuple(map(tool_row, tools))
        ), ["*"]
    listed = {row["id"] for row in new.rows}
    before = snapshot_rows(lake, last, "tools", ["id", "agent"]).rows()
    keep = {
        tool: agent
        for tool, agent in before
        if agent in failed | silent or (new.unreadable and tool not in listed)
    }
    owners = set(keep.values())
    agents = {agent.id: agent for agent in agents_of(lake, last, owners)}
    if new.unreadable:
        agents |= {agent.id: agent for agent in new.agents}
    else:
        agents = {agent.id: agent for agent in new.agents} | agents
    tools = {tool.id: tool for tool in (*new.tools, *tools_of(lake, last, list(keep)))}
    rows = {row["id"]: row for row in new.rows}
    rows |= {tool: tool_row(tools[tool]) for tool in keep}
    merged = replace(
        new,
        agents=tuple(agents[key] for key in sorted(agents)),
        tools=tuple(tools[key] for key in sorted(tools)),
        rows=tuple(rows[key] for key in sorted(rows)),
    )
    return merged, sorted(owners)


def _rejected_path(catalog: str, rejected: str) -> str:
    return f"snapshots/{catalog}/rejected-{rejected}.parquet"


def _rejected_frame(rejected: tuple[Rejected, ...]) -> "pl.DataFrame":
    import polars as pl

    columns = ("catalog", "where", "why", "raw")
    return pl.DataFrame([asdict(row) for row in rejected], schema=dict.fromkeys(columns, pl.String))


READERS = ("jsonschema-rs", "openapi-spec-validator", "polars", "pydantic", "pyyaml")
"""Other people's packages that decide what is in a listing, and what is rejected."""


def fingerprint_of(configuration: Configuration, catalog: str) -> str | None:
    """Return a digest over all that decides the listing of a catalog.

    Files are known by their content, not by their dates: a checkout gives every file a new date.
    None for a source that asks a server or runs code: it is listed in every run.
    """
    options = configuration.options(catalog)
    kind = source_kind(options.type)
    if kind.inputs is None:
        return None
    try:
        files = kind.inputs(configuration.base, options)
        code = _code(inspect.getsourcefile(kind.read))
        if files is None or code is None:
            return None
        contents = [[file.name, _file_digest(file)] for file in files]
    except (SourceError, OSError):
        return None  # the listing reports it
    return digest(code, catalog, options.model_dump(mode="json"), contents)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _code(reader: str | None) -> str | None:
    """A digest over the code that lists sources; None where it is not there as files."""
    folders = [Path(folder) for folder in catalogs.__path__]
    own: Sequence[Path] = sorted(file for folder in folders for file in folder.rglob("*.py"))
    others = [Path(file) for file in (canonical.__file__, records.__file__, reader) if file]
    if not own or reader is None:
        return None
    texts = [_file_digest(file) for file in (*own, *others)]
    return digest(texts, [[name, version(name)] for name in READERS], sys.version)
