"""Step 1: what each source says now, kept in the lake. A source that fails keeps its last good snapshot and says so."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from catalogs.kinds import source_kind
from catalogs.listing import Failure, Listing, ListingBuilder
from pegboard.canonical import canonical_json, digest
from pegboard.contract import CATALOG_AGENT, CATALOG_TOOL
from pegboard.errors import SourceError
from pegboard.records import Agent, Dependency, Rejected, Tool
from tasks import progress
from tasks.configuration import Configuration, load_configuration
from tasks.lake import Lake

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Snapshot",
    "agent_frame",
    "list_source",
    "load_snapshot",
    "snapshot",
    "stored_snapshot",
    "take_snapshot",
    "tool_frame",
    "tool_of",
]


@task(name="snapshot", task_run_name="snapshot {catalog}", cache_policy=NO_CACHE)
def snapshot(config: str, catalog: str, *, allow_empty: bool = False, fresh: bool = True) -> "Snapshot":
    """The Prefect skin of `take_snapshot`; not `fresh`, the stored snapshot is taken where there is one."""
    configuration = load_configuration(config)
    taken = None if fresh else stored_snapshot(configuration, catalog)
    taken = taken or take_snapshot(configuration, catalog, allow_empty=allow_empty)
    progress.advance("snapshot", text=f"{catalog}: {taken.tools} tools of {taken.agents} agents")
    return taken


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of one catalog: the digest under which the lake has it, counts, and what went wrong this time.

    `failed` names the agents (or, as `*`, the whole catalog) that could not be listed; `kept` those whose last good tools
    stand in for a listing that failed or was suddenly empty. What failed and was not kept is missing.
    """

    catalog: str
    digest: str
    tools: int
    agents: int
    rejected: tuple[Rejected, ...] = ()
    problems: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def take_snapshot(configuration: Configuration, catalog: str, *, allow_empty: bool = False) -> Snapshot:
    """List a catalog's source, merge it with the last good snapshot where the source failed, and store the result."""
    lake = Lake(configuration.uri)
    listing, snapshot = list_source(configuration, catalog, allow_empty=allow_empty)
    folder = f"snapshots/{catalog}"
    lake.write(f"{folder}/{snapshot.digest}/agents.parquet", agent_frame(listing.agents))
    lake.write(f"{folder}/{snapshot.digest}/tools.parquet", tool_frame(listing))
    rejected = digest([asdict(row) for row in listing.rejected])
    lake.write(f"{folder}/rejected-{rejected}.parquet", _rejected_frame(listing.rejected))
    if "*" not in (*snapshot.kept, *snapshot.failed):
        latest = {
            "snapshot": snapshot.digest,
            "rejected": rejected,
            "tools": snapshot.tools,
            "agents": snapshot.agents,
            "kept": snapshot.kept,
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        lake.write_json(f"{folder}/latest.json", latest)
    return snapshot


def stored_snapshot(configuration: Configuration, catalog: str) -> Snapshot | None:
    """The last good snapshot of a catalog as it is stored, without listing its source; None if there never was one."""
    latest = Lake(configuration.uri).read_json(f"snapshots/{catalog}/latest.json")
    if latest is None:
        return None
    return Snapshot(catalog, latest["snapshot"], latest["tools"], latest["agents"], kept=tuple(latest["kept"]))


def list_source(configuration: Configuration, catalog: str, *, allow_empty: bool = False) -> tuple[Listing, Snapshot]:
    """What a catalog would be now, without storing anything."""
    options = configuration.options(catalog)
    builder = ListingBuilder(catalog, configuration.base, options.tags)
    problems: list[str] = []
    try:
        source_kind(options.type).read(builder, options)
        listing = builder.build()
    except SourceError as error:
        problems.append(str(error))
        listing = Listing(rejected=builder.build().rejected, failures=(Failure("*", str(error)),))
    problems += [f"{failure.agent}: {failure.why}" for failure in listing.failures if failure.agent != "*"]
    lake = Lake(configuration.uri)
    stored = stored_snapshot(configuration, catalog)
    last = load_snapshot(lake, catalog, stored.digest) if stored else None
    merged, kept = _merge(listing, last, allow_empty=allow_empty)
    known = {failure.agent for failure in listing.failures}
    problems += [
        f"{agent} suddenly lists no tools; its last good ones are kept. Give --allow-empty if that is meant."
        for agent in kept
        if agent not in known
    ]
    identity = digest([agent.digest for agent in merged.agents], [tool.digest for tool in merged.tools])
    snapshot = Snapshot(
        catalog=catalog,
        digest=identity,
        tools=len(merged.tools),
        agents=len(merged.agents),
        rejected=merged.rejected,
        problems=tuple(problems),
        kept=tuple(kept),
        failed=tuple(sorted(known)),
    )
    return merged, snapshot


def load_snapshot(lake: Lake, catalog: str, identity: str) -> Listing:
    """The agents and tools of a stored snapshot. Its files have the columns `CATALOG_AGENT`, `CATALOG_TOOL`, and a digest."""
    folder = f"snapshots/{catalog}/{identity}"
    agents = tuple(Agent(**row) for row in lake.read(f"{folder}/agents.parquet").drop("digest").to_dicts())
    tools = tuple(tool_of(row) for row in lake.read(f"{folder}/tools.parquet").to_dicts())
    return Listing(agents=agents, tools=tools)


def _merge(new: Listing, last: Listing | None, *, allow_empty: bool) -> tuple[Listing, list[str]]:
    """The new listing, with the last good agents and tools where the source failed or suddenly lists nothing."""
    failed = {failure.agent for failure in new.failures}
    if last is None:
        return new, []
    if "*" in failed or (not new.tools and last.tools and not allow_empty and not failed):
        return Listing(last.agents, last.tools, new.rejected, new.failures), ["*"]
    listing = {tool.agent for tool in new.tools}
    silent = {agent.id for agent in new.agents} - listing if not allow_empty else set[str]()
    had_tools = {tool.agent for tool in last.tools}
    keep = (failed | silent) & had_tools
    agents = {agent.id: agent for agent in new.agents} | {a.id: a for a in last.agents if a.id in keep}
    tools = [*new.tools, *(tool for tool in last.tools if tool.agent in keep)]
    merged = Listing(
        tuple(agents[key] for key in sorted(agents)),
        tuple(sorted(tools, key=lambda tool: tool.id)),
        new.rejected,
        new.failures,
    )
    return merged, sorted(keep)


def agent_frame(agents: Sequence[Agent]) -> "pl.DataFrame":
    """The agents as rows of `agents.parquet`."""
    import polars as pl

    rows = [{**asdict(agent), "digest": agent.digest} for agent in agents]
    names = (*(column.name for column in CATALOG_AGENT), "digest")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))


def tool_frame(listing: Listing) -> "pl.DataFrame":
    """The tools of a listing, whose agents are in it, as rows of `tools.parquet`."""
    import polars as pl

    schema = {column.name: pl.List(pl.String) if column.several else pl.String() for column in CATALOG_TOOL}
    schema["digest"] = pl.String()
    kinds = {agent.id: agent.kind for agent in listing.agents}
    rows = [
        {
            "id": tool.id,
            "catalog": tool.catalog,
            "agent": tool.agent,
            "kind": kinds[tool.agent],
            "name": tool.name,
            "description": tool.description,
            "input_schema": canonical_json(tool.input_schema),
            "output_schema": canonical_json(tool.output_schema) if tool.output_schema is not None else None,
            "annotations": canonical_json(tool.annotations),
            "dependencies": canonical_json([asdict(one) for one in tool.dependencies]),
            "examples": list(tool.examples),
            "tags": list(tool.tags),
            "digest": digest(tool.digest, kinds[tool.agent]),
        }
        for tool in listing.tools
    ]
    return pl.DataFrame(rows, schema=schema)


def _rejected_frame(rejected: tuple[Rejected, ...]) -> "pl.DataFrame":
    import polars as pl

    columns = ("catalog", "where", "why", "raw")
    return pl.DataFrame([asdict(row) for row in rejected], schema=dict.fromkeys(columns, pl.String))


def tool_of(row: Mapping[str, Any]) -> Tool:
    """The tool of a row of `tools.parquet`."""
    return Tool(
        **{name: row[name] for name in ("id", "catalog", "agent", "name", "description")},
        input_schema=json.loads(row["input_schema"]),
        output_schema=json.loads(row["output_schema"]) if row["output_schema"] else None,
        annotations=json.loads(row["annotations"]),
        examples=tuple(row["examples"]),
        dependencies=tuple(Dependency(**one) for one in json.loads(row["dependencies"])),
        tags=tuple(row["tags"]),
    )
