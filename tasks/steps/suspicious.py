"""Find the tools of a release that a person should review, with the evidence.

They may capture the requests of others (`safety/capture.py`), have a definition that changed since
the live release (`safety/changed.py`), or have one that the lock file does not approve
(`safety/lock.py`)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pegboard.formatting import count_text
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agents_of, snapshot_rows, tools_of
from tasks.safety.accounts import servers_of_agents, with_servers
from tasks.safety.capture import (
    CLONE,
    MAX_TOOLS,
    MIN_EXAMPLES,
    NEAR_COPY,
    clones,
    near_copies,
    stored_shingles,
    stuffed,
)
from tasks.safety.changed import NEW_TEXT, UNAPPROVED, definitions_since, new_texts, unapproved
from tasks.safety.lock import compare_with_lock, definitions, lock_file, read_lock
from tasks.settings.configuration import Configuration
from tasks.settings.encoders import encoder_for
from tasks.steps.plan import Plan

if TYPE_CHECKING:
    import polars as pl

MAX_WARNINGS = 10
"""Largest number of warnings about suspicious tools."""
MAX_NAMED = 5
"""Most tools that a warning names."""

Suspicious = dict[str, list[dict[str, Any]]]


def find_suspicious(
    configuration: Configuration,
    plan: Plan,
    snapshots: Mapping[str, str],
    listed: Mapping[str, str],
    *,
    locked: bool = False,
) -> Suspicious:
    """Return the suspicious tools of a release by id, each with its flags and their evidence. Those
    that wait for approval come first.

    Only tools that are new or changed since the live release are flagged as copies. Without a live
    release all may be.

    Args:
        snapshots: catalog -> digest of the revised snapshots.
        listed: the same, as listed.
        locked: definitions are approved by the lock file. Otherwise those of catalogs with limited
            trust are approved by the live release.
    """
    lake = Lake(configuration.uri)
    suspicious: Suspicious = defaultdict(list)
    examples = snapshot_rows(lake, snapshots, "tools", ["id", "examples"])
    ids = examples.get_column("id")
    for tool, evidence in _stuffed_tools(configuration, lake, snapshots, examples):
        suspicious[tool].append(evidence)
    fresh = {*plan.new, *plan.changed} if plan.live else set(ids)
    shingles = stored_shingles(lake, snapshots)
    # Two accounts of one server are no copies of each other.
    by_server = with_servers(shingles, servers_of_agents(configuration))
    for tool, evidence in (*near_copies(by_server, fresh), *clones(shingles, fresh)):
        suspicious[tool].append(evidence)
    for tool, evidence in changed_definitions(configuration, plan, snapshots, locked=locked):
        suspicious[tool].append(evidence)
    if locked:
        lock = read_lock(lock_file(configuration))
        current = definitions(configuration, snapshots, listed)
        for tool, evidence in compare_with_lock(configuration, plan.live, snapshots, current, lock):
            suspicious[tool].append(evidence)
    waiting = unapproved(suspicious)
    order = sorted(suspicious, key=lambda tool: (tool not in waiting, tool))
    return {tool: suspicious[tool] for tool in order}


def _stuffed_tools(
    configuration: Configuration,
    lake: Lake,
    snapshots: Mapping[str, str],
    examples: "pl.DataFrame",
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools that are stuffed with examples.

    Args:
        examples: `id` and `examples` of all tools.
    """
    import polars as pl

    ids = examples.get_column("id")
    has_examples = pl.col("examples").list.len() >= MIN_EXAMPLES
    ids_with_examples = examples.filter(has_examples).get_column("id")
    if not len(ids_with_examples):
        return
    encoder = encoder_for(configuration.index(configuration.default))
    agents = {agent.id: agent for agent in agents_of(lake, snapshots)}
    sample = tools_of(lake, snapshots, ids.gather_every(-(-len(ids) // MAX_TOOLS)))
    rows = snapshot_rows(lake, snapshots, "tools", ids=ids_with_examples)
    yield from stuffed(lake, encoder, rows, sample, agents)


def warnings_of(suspicious: Suspicious) -> list[str]:
    """Return a sentence with the next step for each suspicious tool that does not wait for
    approval, at most `MAX_WARNINGS`. Tools that repeat each other share one.
    """
    groups = [group for group in _repeating(suspicious) if len(group.flagged) > 1]
    grouped = {tool for group in groups for tool in group.flagged}
    lines: list[tuple[str, int]] = [(group.warning(), len(group.flagged)) for group in groups]
    for tool, rows in suspicious.items():
        reasons = [
            _reason(row)
            for row in rows
            if row["flag"] != UNAPPROVED and not (row["flag"] == NEAR_COPY and tool in grouped)
        ]
        if reasons:
            line = (
                f"{tool} is suspicious: {' and '.join(reasons)}. Look at it; skip it under "
                f'[overrides], or set trust = "limited" for its catalog.'
            )
            lines.append((line, 1))
    warnings = [line for line, _ in lines[:MAX_WARNINGS]]
    if more := sum(count for _, count in lines[MAX_WARNINGS:]):
        warnings.append(f"{more} more tools are suspicious; the report has all.")
    return warnings


@dataclass(slots=True)
class _Repeating:
    """Tools whose descriptions repeat each other.

    Attributes:
        flagged: those that are suspicious for it.
        originals: the others, which they repeat.
    """

    flagged: list[str] = field(default_factory=list[str])
    originals: list[str] = field(default_factory=list[str])

    def warning(self) -> str:
        """Return a sentence with the next step."""
        owners = {tool.rpartition("/")[0] for tool in self.flagged}
        whose = f"the descriptions of {_named(self.originals)}" if self.originals else "each other"
        return (
            f"{len(self.flagged)} tools of {count_text(len(owners), 'agent')} are suspicious: they "
            f"repeat {whose}: {_named(self.flagged)}. Look at them; unless they are one service's, "
            f'skip some under [overrides], or set trust = "limited" for a catalog.'
        )


def _repeating(suspicious: Suspicious) -> list[_Repeating]:
    """Return the tools that repeat each other, such as the health checks of many services. Those of
    the same agents, such as one server with two accounts, are together.
    """
    originals = {
        tool: row["of"]
        for tool, rows in suspicious.items()
        for row in rows
        if row["flag"] == NEAR_COPY
    }
    sets: dict[str, set[str]] = {}
    for tool, original in originals.items():
        pair = sets.setdefault(tool, {tool}), sets.setdefault(original, {original})
        smaller, larger = sorted(pair, key=len)
        if smaller is not larger:
            larger |= smaller
            sets |= dict.fromkeys(smaller, larger)
    groups: dict[frozenset[str], _Repeating] = defaultdict(_Repeating)
    for tools in {id(tools): tools for tools in sets.values()}.values():
        group = groups[frozenset(tool.rpartition("/")[0] for tool in tools)]
        group.flagged += sorted(tools & originals.keys())
        group.originals += sorted(tools - originals.keys())
    return [*groups.values()]


def _named(tools: list[str]) -> str:
    more = f" and {len(tools) - MAX_NAMED:,} others" if len(tools) > MAX_NAMED else ""
    return f"{', '.join(tools[:MAX_NAMED])}{more}"


def _reason(row: Mapping[str, Any]) -> str:
    match row["flag"]:
        case code if code == NEAR_COPY:
            return f"it repeats the description of {row['of']}"
        case code if code == CLONE:
            return f"it is one of {row['clones']} near-copies of each other in its catalog"
        case code if code == NEW_TEXT:
            return f"its changed text has {', '.join(map(repr, row['texts']))}"
        case _:
            return "its examples are nearer to many other tools than to itself"


def changed_definitions(
    configuration: Configuration, plan: Plan, snapshots: Mapping[str, str], *, locked: bool = False
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools whose definition waits for approval or has a new address or instruction, with
    the evidence; none without a live release.

    New tools of a catalog of limited trust wait, too, if the live release has the catalog: a
    renamed tool is a new one.

    Args:
        snapshots: catalog -> digest of the revised snapshots.
        locked: a lock file approves definitions, so that none waits because of limited trust.
    """
    if plan.live is None:
        return
    live_catalogs = ReleaseStore(configuration.uri).get(plan.live).manifest.get("catalogs", ())
    limited = {
        name
        for name in configuration.catalogs
        if configuration.options(name).trust == "limited" and name in live_catalogs and not locked
    }
    new_tools = [tool for tool in plan.new if tool.partition("/")[0] in limited]
    ids = (*plan.changed, *new_tools)
    for live_tool, tool, fields in definitions_since(configuration, plan.live, snapshots, ids):
        if fields and tool.catalog in limited:
            yield tool.id, {"flag": UNAPPROVED, "fields": fields}
        if live_tool and fields and (texts := new_texts(live_tool, tool)):
            yield tool.id, {"flag": NEW_TEXT, "texts": texts}
