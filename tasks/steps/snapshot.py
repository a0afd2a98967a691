"""List each source and store its snapshot in the lake. A source that fails keeps its last
good snapshot, and is reported.

A source made of files that are what they were is not read again; see `fingerprint_of`.
"""

import hashlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import catalogs
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing
from catalogs.shared.tool_row import row_frame
from pegboard import canonical, foreign, records, schemas
from pegboard.canonical import digest
from pegboard.errors import SourceError
from pegboard.formatting import count_text
from pegboard.records import Agent, Rejected
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
"""Tools: fewer may go at once, however small the catalog."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one catalog.

    Attributes:
        digest: the digest of the snapshot in the lake.
        problems: what went wrong this time.
        kept: the agents (or, as `*`, the whole catalog) whose last good tools replace a listing
            that failed, was suddenly empty, or lacked too many of them.
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
    configuration: Configuration,
    catalog: str,
    *,
    allow_removal: bool = False,
    fresh: bool = True,
    dry_run: bool = False,
) -> Snapshot:
    """List a catalog's source and store its snapshot, with the last good one where it failed.

    Args:
        allow_removal: accept that a source lists far fewer tools than before, or none.
        dry_run: a removal that is allowed is no precedent for a later run.
        fresh: false: take the stored snapshot, if there is one, without listing the source.
    """
    snapshot = None if fresh else stored_snapshot(configuration, catalog)
    if snapshot and has_snapshot(Lake(configuration.uri), catalog, snapshot.digest):
        snapshot = replace(snapshot, rejected=(), problems=())  # reported when it was listed
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
    same = unchanged_snapshot(configuration, catalog, allow_removal=allow_removal)
    if same is not None:
        return same
    lake, before = Lake(configuration.uri), stored_snapshot(configuration, catalog)
    # Taken before the source is read: a file that changes meanwhile is read again in the next run.
    inputs = fingerprint_of(configuration, catalog)
    listing = list_isolated(catalog, configuration.base, configuration.options(catalog))
    rows = row_frame(listing.rows)
    share = 1.0 if allow_removal else configuration.board.max_removal
    held = _held_removal(listing, rows, lake, before, share)
    agents, tools, kept = _merge(
        listing, rows, lake, before, allow_removal=allow_removal, held=bool(held)
    )
    snapshot = Snapshot(
        catalog=catalog,
        digest=digest([agent.digest for agent in agents], tools.get_column("digest").to_list()),
        tools=tools.height,
        agents=len(agents),
        rejected=listing.rejected,
        problems=tuple(_problems(catalog, listing, kept, held)),
        kept=tuple(kept),
        failed=tuple(sorted({failure.agent for failure in listing.failures})),
    )
    earlier = before.digest if before else None
    if earlier != snapshot.digest or not has_snapshot(lake, catalog, snapshot.digest):
        store_snapshot(lake, catalog, snapshot.digest, agent_frame(agents), tools, earlier)
    if "*" not in (*kept, *snapshot.failed) and not (allow_removal and dry_run):
        repeatable = listing.repeatable and not listing.failures and not listing.unreadable
        latest = {
            "snapshot": snapshot.digest,
            "rejected": [asdict(row) for row in snapshot.rejected],
            "tools": snapshot.tools,
            "agents": snapshot.agents,
            "kept": snapshot.kept,
            "problems": snapshot.problems,
            "inputs": inputs if repeatable else None,
        }
        lake.write_json(f"snapshots/{catalog}/latest.json", latest)
    return snapshot


def unchanged_snapshot(
    configuration: Configuration, catalog: str, *, allow_removal: bool = False
) -> Snapshot | None:
    """Return what `take_snapshot` would return, without reading the source; None if the files of
    the source changed, or it has none.
    """
    lake = Lake(configuration.uri)
    latest = lake.read_json(f"snapshots/{catalog}/latest.json")
    if latest is None or not latest.get("inputs") or (allow_removal and latest["kept"]):
        return None
    if latest["inputs"] != fingerprint_of(configuration, catalog) or not has_snapshot(
        lake, catalog, latest["snapshot"]
    ):
        return None
    return stored_snapshot(configuration, catalog)


def stored_snapshot(configuration: Configuration, catalog: str) -> Snapshot | None:
    """Return the last good snapshot of a catalog, without listing its source; None without one."""
    latest = Lake(configuration.uri).read_json(f"snapshots/{catalog}/latest.json")
    return latest and Snapshot(
        catalog=catalog,
        digest=latest["snapshot"],
        tools=latest["tools"],
        agents=latest["agents"],
        # Boards of earlier versions have a digest there.
        rejected=tuple(Rejected(**row) for row in latest["rejected"] if isinstance(row, dict)),
        problems=tuple(latest["problems"]),
        kept=tuple(latest["kept"]),
    )


def _problems(catalog: str, listing: Listing, kept: Sequence[str], held: str | None) -> list[str]:
    """What went wrong with a listing, and why last good tools are kept.

    Args:
        held: why the whole catalog is kept, if it is.
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
    if held:
        return [*problems, f"{held}, so the catalog keeps its last good tools. {allow}"]
    failed = {failure.agent for failure in listing.failures}
    silent = [agent for agent in kept if agent not in failed and not listing.unreadable]
    return problems + [
        f"{catalog if agent == '*' else agent} lists no tools any more, so its last good ones "
        f"are kept. {allow}"
        for agent in silent
    ]


def _held_removal(
    new: Listing, tools: "pl.DataFrame", lake: Lake, stored: Snapshot | None, share: float
) -> str | None:
    """Say how many of its tools a catalog lost, if that is more than a share of them.

    An empty listing, failed agents and unreadable files are `_merge`'s: they keep their tools."""
    if stored is None or tools.is_empty() or new.failures or new.unreadable:
        return None
    if not has_snapshot(lake, stored.catalog, stored.digest):
        return None
    before = snapshot_rows(lake, {stored.catalog: stored.digest}, "tools", ["id"])
    lost = set(before.get_column("id")) - set(tools.get_column("id"))
    if len(lost) < MIN_HELD_REMOVAL or len(lost) <= share * before.height:
        return None
    return (
        f"{len(lost)} of the {before.height} tools of {stored.catalog} are no longer listed, more "
        f"than [board] max_removal = {share:g} allows"
    )


def _merge(
    new: Listing,
    tools: "pl.DataFrame",
    lake: Lake,
    stored: Snapshot | None,
    *,
    allow_removal: bool,
    held: bool,
) -> tuple[tuple[Agent, ...], "pl.DataFrame", list[str]]:
    """Return the new agents and rows of tools, with the last good ones where the source failed or
    is suddenly empty; and whose tools were kept.

    Args:
        tools: the rows of the listing.
        held: keep the whole catalog.
    """
    import polars as pl

    failed = {failure.agent for failure in new.failures}
    silent = {agent.id for agent in new.agents} - set(tools.get_column("agent"))
    silent = set[str]() if allow_removal else silent
    empty = tools.is_empty() and not allow_removal and not failed
    if stored is None or not (failed or silent or empty or new.unreadable or held):
        return new.agents, tools, []
    last = {stored.catalog: stored.digest}
    before = snapshot_rows(lake, last, "tools")
    if "*" in failed or held or (empty and stored.tools):
        return agents_of(lake, last), before, ["*"]
    listed = set(tools.get_column("id"))
    keep = before.filter(
        [
            agent in failed | silent or (bool(new.unreadable) and tool not in listed)
            for tool, agent in before.select("id", "agent").rows()
        ]
    )
    owners = set(keep.get_column("agent"))
    first, then = new.agents, agents_of(lake, last, owners)
    if new.unreadable:
        first, then = then, first
    agents = {agent.id: agent for agent in (*first, *then)}
    rest = tools.filter(~tools.get_column("id").is_in(keep.get_column("id").to_list()))
    merged = pl.concat([rest, keep.select(rest.columns)]).sort("id")
    return tuple(agents[key] for key in sorted(agents)), merged, sorted(owners)


READERS = ("jsonschema-rs", "polars", "pydantic", "pyyaml")
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
    packages = (catalogs, foreign, schemas)
    folders = [Path(folder) for package in packages for folder in package.__path__]
    own: Sequence[Path] = sorted(file for folder in folders for file in folder.rglob("*.py"))
    others = [Path(file) for file in (canonical.__file__, records.__file__, reader) if file]
    if len(own) < len(packages) or reader is None:
        return None
    texts = [_file_digest(file) for file in (*own, *others)]
    return digest(texts, [[name, version(name)] for name in READERS], sys.version)
