"""The tools of a release that a person should look at, and what shows it.

Tools that would take the requests of others (`safety/capture.py`), definitions that changed since
the live release (`safety/changed.py`), and those that the lock file does not approve
(`safety/lock.py`)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agents_of, snapshot_rows, tools_of
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
from tasks.safety.lock import compare_with_lock, lock_file, read_lock
from tasks.settings.configuration import Configuration
from tasks.settings.encoders import encoder_for
from tasks.steps.plan import Plan

MAX_WARNINGS = 10

Suspicious = dict[str, list[dict[str, Any]]]


def find_suspicious(
    configuration: Configuration,
    plan: Plan,
    snapshots: Mapping[str, str],
    *,
    locked: bool = False,
) -> Suspicious:
    """Return the suspicious tools of a release by id, each with its flags and what shows them;
    those that wait for approval first.

    Of a copy and its original, only what is new or changed since the live release is flagged; both
    are where nothing is live.

    Args:
        snapshots: catalog -> digest.
        locked: the lock file approves definitions, instead of the live release those of catalogs
            with limited trust.
    """
    import polars as pl

    lake = Lake(configuration.uri)
    found: Suspicious = defaultdict(list)
    examples = snapshot_rows(lake, snapshots, "tools", ["id", "examples"])
    if (examples.get_column("examples").list.len() >= MIN_EXAMPLES).any():
        encoder = encoder_for(configuration.index(configuration.default))
        agents = {agent.id: agent for agent in agents_of(lake, snapshots)}
        ids = examples.get_column("id")
        sample = tools_of(lake, snapshots, ids.gather_every(-(-len(ids) // MAX_TOOLS)))
        own = examples.filter(pl.col("examples").list.len() >= MIN_EXAMPLES).get_column("id")
        rows = snapshot_rows(lake, snapshots, "tools", ids=own)
        for tool, evidence in stuffed(lake, encoder, rows, sample, agents):
            found[tool].append(evidence)
    fresh = {*plan.new, *plan.changed} if plan.live else set(examples.get_column("id"))
    shingles = stored_shingles(lake, snapshots)
    for tool, evidence in (*near_copies(shingles, fresh), *clones(shingles, fresh)):
        found[tool].append(evidence)
    for tool, evidence in changed_definitions(configuration, plan, snapshots, locked=locked):
        found[tool].append(evidence)
    if locked:
        lock = read_lock(lock_file(configuration))
        for tool, evidence in compare_with_lock(configuration, plan.live, snapshots, lock):
            found[tool].append(evidence)
    waiting = unapproved(found)
    order = sorted(found, key=lambda tool: (tool not in waiting, tool))
    return {tool: found[tool] for tool in order}


def warnings_of(suspicious: Suspicious) -> list[str]:
    """Return a sentence for each suspicious tool, the first `MAX_WARNINGS`, and what to do."""
    lines: list[str] = []
    suspicious = {
        tool: rows
        for tool, rows in suspicious.items()
        if any(row["flag"] != UNAPPROVED for row in rows)
    }
    for tool, rows in list(suspicious.items())[:MAX_WARNINGS]:
        reasons = [_reason(row) for row in rows if row["flag"] != UNAPPROVED]
        lines.append(
            f"{tool} is suspicious: {' and '.join(reasons)}. Look at it; skip it under "
            f'[overrides], or set trust = "limited" for its catalog.'
        )
    if more := len(suspicious) - len(lines):
        lines.append(f"{more} more tools are suspicious; the report has all.")
    return lines


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
    """Yield the tools whose definition waits for approval or says something new, with what shows
    it; none without a live release.

    In a catalog of limited trust that is live, a new tool waits, too: a changed name is one.

    Args:
        snapshots: catalog -> digest, revised.
        locked: a lock file approves definitions, so that none waits for its limited trust.
    """
    if plan.live is None:
        return
    listed = ReleaseStore(configuration.uri).get(plan.live).manifest.get("catalogs", ())
    limited = {
        name
        for name in configuration.catalogs
        if configuration.options(name).trust == "limited" and name in listed and not locked
    }
    new = [tool for tool in plan.new if tool.partition("/")[0] in limited]
    ids = (*plan.changed, *new)
    for before, tool, fields in definitions_since(configuration, plan.live, snapshots, ids):
        if fields and tool.catalog in limited:
            yield tool.id, {"flag": UNAPPROVED, "fields": fields}
        if before and fields and (texts := new_texts(before, tool)):
            yield tool.id, {"flag": NEW_TEXT, "texts": texts}
