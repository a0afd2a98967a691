"""Revise the snapshots: apply `[overrides]`, add learned requests as examples, hold out examples
that are golden queries (both `golden/reading.py`), remove what a catalog of limited `trust` may not
contribute, and quarantine tools with suspicious text (`[untrusted]`).

A catalog that changes gets a revised snapshot in the lake, with its own digest; `latest.json` still
names the listed one. Other catalogs keep their snapshot, and are not read if nothing applies to
them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from catalogs.shared.tool_row import tool_of
from pegboard.canonical import digest
from pegboard.formatting import list_text
from pegboard.records import Agent, Rejected, Tool
from tasks.golden.reading import (
    held_out,
    learned_examples,
    remaining_examples,
    with_learned,
)
from tasks.lake.files import Lake
from tasks.lake.row_sets import point_to
from tasks.lake.snapshot_rows import agent_frame, snapshot_rows, store_snapshot, tool_frame
from tasks.safety.untrusted import flags_of, flags_of_text
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import OverrideSettings

if TYPE_CHECKING:
    import polars as pl

MAX_ARGUMENTS = 20
"""Largest number of arguments of a tool that a problem names."""
NOTHING: frozenset[str] = frozenset()
"""The held-out examples of a tool that has none."""


@dataclass(slots=True)
class Revision:
    """The revised snapshots, and what was changed.

    Attributes:
        digests: catalog -> digest.
        quarantined: tools and descriptions of agents that were left out, and why.
        problems: overrides that apply to nothing.
        held_out: number of examples that were removed because they are golden queries.
    """

    digests: dict[str, str]
    quarantined: list[Rejected] = field(default_factory=list[Rejected])
    problems: list[str] = field(default_factory=list[str])
    held_out: int = 0

    def add_problem(self, key: str, text: str) -> None:
        """Add a problem of the override with this key."""
        self.problems.append(f'overrides."{key}": {text}')

    def quarantine(self, subject: Agent | Tool, flags: Iterable[str], consequence: str) -> None:
        """Record the consequence of an agent's or tool's flags."""
        why = (
            f"{'; '.join(sorted(flags))}; {consequence}. Describe it in your own words under "
            f'[overrides."{subject.id}"], or correct it at its source.'
        )
        self.quarantined.append(Rejected(subject.catalog, subject.id, why, "quarantine"))


def revise_snapshots(configuration: Configuration, snapshots: Mapping[str, str]) -> Revision:
    """Apply overrides, hold-out and quarantine to snapshots, and store those that change.

    Args:
        snapshots: catalog -> digest.
    """
    quarantine = configuration.untrusted.flagged == "quarantine"
    revision = Revision(dict(snapshots))
    overrides = _by_catalog(configuration, revision)
    lake = Lake(configuration.uri)
    held_out_queries = held_out(configuration, lake, snapshots)
    learned = learned_examples(configuration, lake, snapshots)
    for catalog, snapshot in snapshots.items():
        rules = _Rules(
            overrides=overrides.get(catalog, {}),
            held_out=held_out_queries.get(catalog, {}),
            learned=learned.get(catalog, {}),
            quarantine=quarantine,
            limited=configuration.options(catalog).trust == "limited",
        )
        if rules != _Rules():
            revision.digests[catalog] = _revise_catalog(lake, catalog, snapshot, rules, revision)
    return revision


@dataclass(frozen=True, slots=True)
class _Rules:
    """What to change in one catalog.

    Attributes:
        overrides: by the id of a tool or agent.
        held_out: the queries to remove from each tool's examples, as their words.
        learned: the requests to add to each tool's examples.
        quarantine: leave out tools and descriptions with suspicious text.
        limited: leave out examples and the reasons of dependencies, which cannot be checked.
    """

    overrides: Mapping[str, OverrideSettings] = field(default_factory=dict[str, OverrideSettings])
    held_out: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    learned: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    quarantine: bool = False
    limited: bool = False


def _by_catalog(
    configuration: Configuration, revision: Revision
) -> dict[str, dict[str, OverrideSettings]]:
    grouped: dict[str, dict[str, OverrideSettings]] = {}
    for key, override in sorted(configuration.overrides.items()):
        catalog, *rest = key.split("/")
        if catalog not in configuration.catalogs:
            names = ", ".join(configuration.catalogs)
            revision.add_problem(key, f"no catalog '{catalog}'; expected one of {names}.")
        elif len(rest) not in (1, 2):
            revision.add_problem(
                key, "expected the id of a tool or agent: catalog/agent/tool or catalog/agent."
            )
        else:
            grouped.setdefault(catalog, {})[key] = override
    return grouped


def _revise_catalog(
    lake: Lake, catalog: str, snapshot: str, rules: _Rules, revision: Revision
) -> str:
    """Store the revised snapshot and return its digest. Only changed rows are rebuilt."""
    import polars as pl

    old_agents = snapshot_rows(lake, {catalog: snapshot}, "agents")
    old_tools = snapshot_rows(lake, {catalog: snapshot}, "tools")
    ids = set(old_agents.get_column("id")) | set(old_tools.get_column("id"))
    _log_missing(rules.overrides, ids, revision)

    agents, skipped = _revised_agents(old_agents, rules.overrides, revision)
    tools = _revised_tools(old_tools, agents, skipped, rules, revision)
    if rules.quarantine:
        hostile = _flagged_names(agents, revision)
        agents = [
            _without_flagged_description(agent, revision)
            for agent in agents
            if agent.id not in hostile
        ]
        tools = _without_flagged(tools.filter(~pl.col("agent").is_in(hostile)), revision)

    new_agents = agent_frame(agents)
    digests = [frame.get_column("digest").to_list() for frame in (new_agents, tools)]
    if digests == [frame.get_column("digest").to_list() for frame in (old_agents, old_tools)]:
        return snapshot
    revised = digest("revised", *digests)
    store_snapshot(lake, catalog, revised, new_agents, tools, snapshot)
    point_to(lake, f"snapshots/{catalog}/latest-revised", f"snapshots/{catalog}/{revised}/tools")
    return revised


def _revised_agents(
    rows: "pl.DataFrame", overrides: Mapping[str, OverrideSettings], revision: Revision
) -> tuple[list[Agent], set[str]]:
    """Return the agents with their overrides, and the ids of agents that are skipped with their
    tools.
    """
    agents = {row["id"]: Agent(**row) for row in rows.drop("digest").to_dicts()}
    skipped: set[str] = set()
    for key in sorted(agents.keys() & overrides.keys()):
        override = overrides[key]
        if override.model_fields_set - {"description", "skip"}:
            revision.add_problem(key, "an agent has only a description; set the rest on its tools.")
        if override.skip:
            del agents[key]
            skipped.add(key)
        elif override.description is not None:
            agents[key] = replace(agents[key], description=override.description.strip())
    return list(agents.values()), skipped


def _revised_tools(
    frame: "pl.DataFrame",
    agents: Sequence[Agent],
    skipped: set[str],
    rules: _Rules,
    revision: Revision,
) -> "pl.DataFrame":
    import polars as pl

    frame = frame.filter(~pl.col("agent").is_in(sorted(skipped)))
    ids = sorted(rules.overrides.keys() | rules.held_out.keys() | rules.learned.keys())
    affected = pl.lit(value=True) if rules.limited else pl.col("id").is_in(ids)
    rows = frame.filter(affected).to_dicts()
    revised = [_revised_tool(tool_of(row), rules, revision) for row in rows]
    if not rows:
        return frame
    unaffected = frame.filter(~pl.col("id").is_in([row["id"] for row in rows]))
    tools = [tool for tool in revised if tool is not None]
    return pl.concat([unaffected, tool_frame(agents, tools)]).sort("id")


def _revised_tool(tool: Tool, rules: _Rules, revision: Revision) -> Tool | None:
    """Return the tool with its override, and without held-out and untrusted texts; None if it is
    skipped.
    """
    if rules.limited:
        dependencies = tuple(replace(dependency, reason="") for dependency in tool.dependencies)
        tool = replace(tool, examples=(), dependencies=dependencies)
    if (override := rules.overrides.get(tool.id)) is not None:
        changes = _changes(tool, override, revision)
        if override.skip:
            return None
        tool = replace(tool, **changes)
    learned = () if tool.is_destructive else rules.learned.get(tool.id, ())
    tool = replace(tool, examples=with_learned(tool, learned))
    examples = remaining_examples(tool, rules.held_out.get(tool.id, NOTHING))
    revision.held_out += len(tool.examples) - len(examples)
    return replace(tool, examples=examples)


def _changes(tool: Tool, override: OverrideSettings, revision: Revision) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if override.description is not None:
        changes["description"] = override.description.strip()
    if override.examples is not None:
        texts = (text.strip() for text in override.examples)
        changes["examples"] = tuple(dict.fromkeys(text for text in texts if text))
    if override.tags is not None:
        changes["tags"] = tuple(sorted({tag.strip() for tag in override.tags if tag.strip()}))
    if override.arguments and (properties := _described(tool, override.arguments, revision)):
        changes["input_schema"] = {**tool.input_schema, "properties": properties}
    return changes


def _described(tool: Tool, texts: Mapping[str, str], revision: Revision) -> dict[str, Any] | None:
    """Return the tool's properties with these descriptions; None if it has none of the arguments.

    Args:
        texts: descriptions by the name of an argument.
    """
    schema = tool.input_schema.get("properties")
    properties: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
    valid = [
        name
        for name in texts
        if properties.get(name) is True or isinstance(properties.get(name), Mapping)
    ]
    if unknown := [name for name in texts if name not in valid]:
        names = list_text(properties, MAX_ARGUMENTS) or "none"
        revision.add_problem(tool.id, f"no argument {', '.join(unknown)}; the tool has {names}.")
    for name in valid:
        spec = properties[name]
        properties[name] = {
            **(spec if isinstance(spec, Mapping) else {}),
            "description": texts[name].strip(),
        }
    return properties if valid else None


def _flagged_names(agents: Iterable[Agent], revision: Revision) -> list[str]:
    """Return the ids of agents with a suspicious name. It is part of the ids of their tools, so
    they are left out whole.
    """
    flagged: list[str] = []
    for agent in agents:
        if flags := flags_of_text(agent.name):
            names = "; ".join(sorted(flags))
            why = f"its name is suspicious ({names}); it is left out with its tools. Rename it."
            revision.quarantined.append(Rejected(agent.catalog, agent.id, why, "quarantine"))
            flagged.append(agent.id)
    return flagged


def _without_flagged_description(agent: Agent, revision: Revision) -> Agent:
    flags = flags_of_text(agent.description)
    if not flags:
        return agent
    revision.quarantine(agent, flags, "the agent is published without its description")
    return replace(agent, description="")


def _without_flagged(frame: "pl.DataFrame", revision: Revision) -> "pl.DataFrame":
    import polars as pl

    flagged: list[str] = []
    for row in frame.iter_rows(named=True):
        tool = tool_of(row)
        if flags := flags_of(tool):
            revision.quarantine(tool, flags, "the tool is left out")
            flagged.append(tool.id)
    return frame.filter(~pl.col("id").is_in(flagged))


def _log_missing(
    overrides: Mapping[str, OverrideSettings], ids: set[str], revision: Revision
) -> None:
    for key in sorted(overrides.keys() - ids):
        kind = "tool" if key.count("/") == 2 else "agent"
        candidates = [name for name in sorted(ids) if name.count("/") == key.count("/")]
        hint = "Correct the id, or remove the override."
        if similar := get_close_matches(key, candidates):
            hint = f"The nearest: {', '.join(similar)}."
        revision.add_problem(key, f"no such {kind}. {hint}")
