"""List each source and store its snapshot in the lake. If a source fails, its last good snapshot is
kept, and the failure is reported.

Unchanged file sources are skipped; see `fingerprint_of`.
"""

import hashlib
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import catalogs
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing
from catalogs.shared.tool_row import row_frame
from pegboard import canonical, foreign, records, schemas
from pegboard.canonical import canonical_json, digest
from pegboard.errors import SourceError
from pegboard.formatting import count_text
from pegboard.records import Agent, Notice, Rejected
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import (
    agent_frame,
    agents_of,
    has_snapshot,
    snapshot_rows,
    store_snapshot,
)
from tasks.runtime import progress
from tasks.settings.configuration import Configuration

if TYPE_CHECKING:
    import polars as pl

MIN_HELD_REMOVAL = 5
"""Smallest number of removed tools that is held back; fewer may go at once in any catalog."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one catalog.

    Attributes:
        digest: the digest of the snapshot in the lake.
        problems: what went wrong in this listing.
        kept: the agents (`*` for the whole catalog) whose last good tools replace a listing that
            failed, was suddenly empty, or lacked too many tools.
        failed: the agents (`*` for the whole catalog) that could not be listed. Their tools are
            missing unless they are in `kept`.
    """

    catalog: str
    digest: str
    tools: int
    agents: int
    rejected: tuple[Rejected, ...] = ()
    notices: tuple[Notice, ...] = ()
    problems: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether the source failed, and no tools of an earlier listing replace it."""
        return bool(self.failed) and not self.kept and not self.tools


def take_snapshot(
    configuration: Configuration,
    catalog: str,
    *,
    allow_removal: bool = False,
    fresh: bool = True,
    dry_run: bool = False,
) -> Snapshot:
    """List a catalog's source and store its snapshot. Where listing fails, the last good tools are
    kept.

    Args:
        allow_removal: accept a listing with far fewer tools than before, or with none.
        fresh: list the source; if false, return the stored snapshot if there is one.
        dry_run: do not record allowed removals.
    """
    snapshot = None if fresh else stored_snapshot(configuration, catalog)
    if snapshot and has_snapshot(Lake(configuration.uri), catalog, snapshot.digest):
        # Rejected records, notices and problems were reported when the source was listed.
        snapshot = replace(snapshot, rejected=(), notices=(), problems=())
    else:
        snapshot = _list_and_store(
            configuration, catalog, allow_removal=allow_removal, dry_run=dry_run
        )
    counts = f"{count_text(snapshot.tools, 'tool')} of {count_text(snapshot.agents, 'agent')}"
    progress.advance("snapshot", text=f"{catalog}: {counts}")
    return snapshot


def last_snapshots(configuration: Configuration) -> dict[str, str]:
    """Return the snapshots of all catalogs as last listed, catalog -> digest. A catalog that was
    never listed is listed now, and its snapshot stored.
    """
    return {
        catalog: take_snapshot(configuration, catalog, fresh=False).digest
        for catalog in configuration.catalogs
    }


def _list_and_store(
    configuration: Configuration, catalog: str, *, allow_removal: bool, dry_run: bool
) -> Snapshot:
    unchanged = unchanged_snapshot(configuration, catalog, allow_removal=allow_removal)
    if unchanged is not None:
        return unchanged
    lake = Lake(configuration.uri)
    previous = stored_snapshot(configuration, catalog)
    # Before the source is read, so that a file that changes meanwhile is read again in the next
    # run.
    inputs = fingerprint_of(configuration, catalog)
    listing = list_isolated(catalog, configuration.base, configuration.options(catalog))
    rows = _with_earlier_order(row_frame(listing.rows), lake, previous)
    max_removal = 1.0 if allow_removal else configuration.board.max_removal
    held_removal = _held_removal(listing, rows, lake, previous, max_removal)
    agents, tools, kept = _merge(
        listing,
        rows,
        lake,
        previous,
        allow_removal=allow_removal,
        keep_catalog=held_removal is not None,
    )
    snapshot = Snapshot(
        catalog=catalog,
        digest=digest([agent.digest for agent in agents], tools.get_column("digest").to_list()),
        tools=tools.height,
        agents=len(agents),
        rejected=listing.rejected,
        notices=listing.notices,
        problems=tuple(_problems(catalog, listing, kept, held_removal)),
        kept=tuple(kept),
        failed=tuple(sorted({failure.agent for failure in listing.failures})),
    )
    previous_digest = previous.digest if previous else None
    if previous_digest != snapshot.digest or not has_snapshot(lake, catalog, snapshot.digest):
        store_snapshot(lake, catalog, snapshot.digest, agent_frame(agents), tools, previous_digest)
    if "*" not in (*kept, *snapshot.failed) and not (allow_removal and dry_run):
        is_repeatable = listing.repeatable and not listing.failures and not listing.unreadable
        latest = {
            "snapshot": snapshot.digest,
            "rejected": [asdict(row) for row in snapshot.rejected],
            "notices": [asdict(row) for row in snapshot.notices],
            "tools": snapshot.tools,
            "agents": snapshot.agents,
            "kept": snapshot.kept,
            "problems": snapshot.problems,
            "inputs": inputs if is_repeatable else None,
        }
        lake.write_json(f"snapshots/{catalog}/latest.json", latest)
    return snapshot


def unchanged_snapshot(
    configuration: Configuration, catalog: str, *, allow_removal: bool = False
) -> Snapshot | None:
    """Return the stored snapshot if the files of the source are unchanged; None if they changed, or
    the source does not consist of files.
    """
    lake = Lake(configuration.uri)
    latest = lake.read_json(f"snapshots/{catalog}/latest.json")
    if latest is None or not latest.get("inputs") or (allow_removal and latest["kept"]):
        return None
    if latest["inputs"] != fingerprint_of(configuration, catalog) or not has_snapshot(
        lake, catalog, latest["snapshot"]
    ):
        return None
    return _snapshot_of(catalog, latest)


def stored_snapshot(configuration: Configuration, catalog: str) -> Snapshot | None:
    """Return the last good snapshot of a catalog, without listing its source; None without one."""
    latest = Lake(configuration.uri).read_json(f"snapshots/{catalog}/latest.json")
    return None if latest is None else _snapshot_of(catalog, latest)


def _snapshot_of(catalog: str, latest: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that a `latest.json` of a catalog describes."""
    return Snapshot(
        catalog=catalog,
        digest=latest["snapshot"],
        tools=latest["tools"],
        agents=latest["agents"],
        # Boards of earlier versions have a digest instead of rows.
        rejected=tuple(Rejected(**row) for row in latest["rejected"] if isinstance(row, dict)),
        notices=tuple(Notice(**row) for row in latest.get("notices", ())),
        problems=tuple(latest["problems"]),
        kept=tuple(latest["kept"]),
    )


def _problems(
    catalog: str, listing: Listing, kept: Sequence[str], held_removal: str | None
) -> list[str]:
    """Return what went wrong in a listing, and why last good tools are kept.

    Args:
        held_removal: why the whole catalog is kept; None if it is not.
    """
    problems = [
        failure.why if failure.agent == "*" else f"{failure.agent}: {failure.why}"
        for failure in listing.failures
    ]
    problems += [
        f"{why} The catalog's other files are listed; no tool is removed from it until all can be "
        f"read."
        for why in listing.unreadable
    ]
    allow = "If that is intended, run once with --allow-removal (allow_removal in a flow)."
    if held_removal:
        return [*problems, f"{held_removal}, so the catalog keeps its last good tools. {allow}"]
    failed = {failure.agent for failure in listing.failures}
    silent = [agent for agent in kept if agent not in failed and not listing.unreadable]
    return problems + [
        f"{catalog if agent == '*' else agent} lists no tools any more, so its last good ones "
        f"are kept. {allow}"
        for agent in silent
    ]


def _held_removal(
    listing: Listing,
    tools: "pl.DataFrame",
    lake: Lake,
    previous: Snapshot | None,
    max_removal: float,
) -> str | None:
    """Return how many of its tools a catalog lost if that is more than allowed, otherwise None.

    `_merge` handles empty listings, failed agents and unreadable files, which keep their tools."""
    if previous is None or tools.is_empty() or listing.failures or listing.unreadable:
        return None
    if not has_snapshot(lake, previous.catalog, previous.digest):
        return None
    previous_tools = snapshot_rows(lake, {previous.catalog: previous.digest}, "tools", ["id"])
    removed = set(previous_tools.get_column("id")) - set(tools.get_column("id"))
    if len(removed) < MIN_HELD_REMOVAL or len(removed) <= max_removal * previous_tools.height:
        return None
    return (
        f"{len(removed)} of the {previous_tools.height} tools of {previous.catalog} are no longer "
        f"listed, more than [board] max_removal = {max_removal:g} allows"
    )


def _with_earlier_order(
    tools: "pl.DataFrame", lake: Lake, previous: Snapshot | None
) -> "pl.DataFrame":
    """Return the rows of a listing, but the earlier row of each tool that differs from it only in
    the order of lists that JSON Schema reads as sets. Some generators write them in any order, and
    a change of order would be a change of the tool's definition.
    """
    import polars as pl

    if previous is None or not has_snapshot(lake, previous.catalog, previous.digest):
        return tools
    snapshots = {previous.catalog: previous.digest}
    digests = snapshot_rows(lake, snapshots, "tools", ["id", "digest"])
    changed = tools.join(digests, on="id").filter(pl.col("digest") != pl.col("digest_right"))
    earlier_rows = snapshot_rows(lake, snapshots, "tools", ids=changed.get_column("id").to_list())
    earlier = {row["id"]: row for row in earlier_rows.iter_rows(named=True)}
    reordered = [
        row["id"]
        for row in changed.select(tools.columns).iter_rows(named=True)
        if _without_order(row) == _without_order(earlier[row["id"]])
    ]
    if not reordered:
        return tools
    is_reordered = pl.col("id").is_in(reordered)
    kept = earlier_rows.select(tools.columns).filter(is_reordered)
    return pl.concat([tools.filter(~is_reordered), kept]).sort("id")


def _without_order(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a tool with its schemas as values whose sets are sorted."""
    schemas = {
        key: row[key] and _sorted_sets(json.loads(row[key]))
        for key in ("input_schema", "output_schema")
    }
    return {key: value for key, value in row.items() if key != "digest"} | schemas


def _sorted_sets(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_sorted_sets(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: sorted(value, key=canonical_json)
        if key in ("enum", "type") and isinstance(value, list)
        else _sorted_sets(value)
        for key, value in schema.items()
    }


def _merge(
    listing: Listing,
    tools: "pl.DataFrame",
    lake: Lake,
    previous: Snapshot | None,
    *,
    allow_removal: bool,
    keep_catalog: bool,
) -> tuple[tuple[Agent, ...], "pl.DataFrame", list[str]]:
    """Return the agents and rows of tools, with the last good ones where the source failed or is
    suddenly empty, and the agents whose tools were kept.

    Args:
        tools: the rows of the listing.
        keep_catalog: keep the last good tools of the whole catalog.
    """
    import polars as pl

    failed = {failure.agent for failure in listing.failures}
    silent = set[str]()
    if not allow_removal:
        silent = {agent.id for agent in listing.agents} - set(tools.get_column("agent"))
    is_empty = tools.is_empty() and not allow_removal and not failed
    is_incomplete = failed or silent or is_empty or listing.unreadable or keep_catalog
    if previous is None or not is_incomplete:
        return listing.agents, tools, []
    previous_digests = {previous.catalog: previous.digest}
    previous_tools = snapshot_rows(lake, previous_digests, "tools")
    if "*" in failed or keep_catalog or (is_empty and previous.tools):
        return agents_of(lake, previous_digests), previous_tools, ["*"]
    listed_ids = set(tools.get_column("id"))
    kept_tools = previous_tools.filter(
        [
            agent in failed | silent or (bool(listing.unreadable) and tool not in listed_ids)
            for tool, agent in previous_tools.select("id", "agent").rows()
        ]
    )
    kept_owners = set(kept_tools.get_column("agent"))
    previous_agents = agents_of(lake, previous_digests, kept_owners)
    agents = {agent.id: agent for agent in listing.agents}
    for agent in previous_agents:
        # With unreadable files only some tools of an agent are kept; its new description stands.
        if not listing.unreadable or agent.id not in agents:
            agents[agent.id] = agent
    other_tools = tools.filter(~tools.get_column("id").is_in(kept_tools.get_column("id").to_list()))
    merged = pl.concat([other_tools, kept_tools.select(other_tools.columns)]).sort("id")
    return tuple(agents[key] for key in sorted(agents)), merged, sorted(kept_owners)


READERS = ("jsonschema-rs", "polars", "pydantic", "pyyaml")
"""Third-party packages whose version can change what a listing has, and what is rejected."""


def fingerprint_of(configuration: Configuration, catalog: str) -> str | None:
    """Return a digest of all inputs of a catalog's listing: files, options, code and packages.

    Files are compared by content, not by date: a checkout gives every file a new date. None for a
    source that calls a server or runs code, which is listed in every run.
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
    """Return a digest of the code that lists sources; None if it is not available as files."""
    packages = (catalogs, foreign, schemas)
    folders = [Path(folder) for package in packages for folder in package.__path__]
    modules: Sequence[Path] = sorted(file for folder in folders for file in folder.rglob("*.py"))
    single_modules = (canonical.__file__, records.__file__, reader)
    other_modules = [Path(file) for file in single_modules if file]
    if len(modules) < len(packages) or reader is None:
        return None
    digests = [_file_digest(file) for file in (*modules, *other_modules)]
    return digest(digests, [[name, version(name)] for name in READERS], sys.version)
