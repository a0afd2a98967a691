"""Step 1b: what people decided about tools (`[overrides]`), which of their examples are golden
queries and so held out of the index (`golden_queries/held.py`), and what is kept out because its
text is suspicious (`[untrusted]`).

A catalog that this changes gets a revised snapshot beside the others in the lake, under a digest of
its own; `latest.json` goes on to name what the source said. A catalog that it does not change keeps
its snapshot, and if nothing is asked of a catalog, it is not even read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from catalogs.shared.listing import Listing
from pegboard.canonical import canonical_json, digest
from pegboard.records import Agent, Rejected, Tool
from tasks.golden.reading import held_out, remaining_examples
from tasks.lake.files import Lake
from tasks.lake.row_sets import point_to
from tasks.lake.snapshot_rows import agent_frame, snapshot_rows, store_snapshot, tool_frame, tool_of
from tasks.near_names import nearest_names
from tasks.safety.text import clean
from tasks.safety.untrusted import flags_of, flags_of_text
from tasks.settings.configuration import Configuration
from tasks.settings.enrichment import OverrideSettings

if TYPE_CHECKING:
    import polars as pl

RAW_KEPT = 2_000
"""Characters of a quarantined tool that are kept, so that a person can recognise it."""
ARGUMENTS_NAMED = 20
"""Arguments that a tool has which are named when an override is for another."""
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Revised:
    """The snapshots to go on with (catalog -> digest), and what was changed on the way.

    `applied` names the tools and agents that an override changed or took out, `quarantined` what
    was left out and why; `problems` are overrides that have nothing to apply to; `held_out` says
    how many examples are golden queries instead."""

    identities: dict[str, str]
    applied: tuple[str, ...] = ()
    quarantined: tuple[Rejected, ...] = ()
    problems: tuple[str, ...] = ()
    held_out: int = 0


def revise_snapshots(configuration: Configuration, snapshots: Mapping[str, str]) -> Revised:
    """Apply overrides, held-out examples and quarantine to snapshots (catalog -> digest), storing
    those that change.
    """
    quarantine = configuration.untrusted.flagged == "quarantine"
    identities, notes = dict(snapshots), _Notes()
    overrides = _by_catalog(configuration, notes)
    lake = Lake(configuration.uri)
    held = held_out(configuration, lake, snapshots)
    for catalog, identity in snapshots.items():
        asked = _Asked(overrides.get(catalog, {}), held.get(catalog, {}), quarantine)
        if asked.anything:
            identities[catalog] = _revise_catalog(lake, catalog, identity, asked, notes)
    return Revised(
        identities,
        tuple(sorted(notes.applied)),
        tuple(notes.quarantined),
        tuple(notes.problems),
        notes.held_out,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of one catalog; `held` are the requests, as their words, that are taken from
    the examples of tools.
    """

    overrides: Mapping[str, OverrideSettings]
    held: Mapping[str, frozenset[str]]
    quarantine: bool

    @property
    def anything(self) -> bool:
        return bool(self.overrides or self.held or self.quarantine)


@dataclass(slots=True)
class _Notes:
    applied: set[str] = field(default_factory=set[str])
    quarantined: list[Rejected] = field(default_factory=list[Rejected])
    problems: list[str] = field(default_factory=list[str])
    held_out: int = 0

    def problem(self, key: str, text: str) -> None:
        self.problems.append(f'overrides."{key}": {text}')

    def quarantine(
        self, catalog: str, identity: str, flags: Iterable[str], consequence: str, said: Any
    ) -> None:
        remedy = (
            f'Say it in your own words under [overrides."{identity}"], or mend it at its source.'
        )
        why = f"{', '.join(sorted(flags))}: {consequence}. {remedy}"
        self.quarantined.append(
            Rejected(catalog, identity, why, canonical_json(clean(said))[:RAW_KEPT])
        )


def _by_catalog(
    configuration: Configuration, notes: _Notes
) -> dict[str, dict[str, OverrideSettings]]:
    grouped: dict[str, dict[str, OverrideSettings]] = {}
    for key, override in sorted(configuration.overrides.items()):
        catalog, *rest = key.split("/")
        if catalog not in configuration.catalogs:
            notes.problem(
                key,
                f"there is no catalog '{catalog}'. There is: {', '.join(configuration.catalogs)}.",
            )
        elif len(rest) not in (1, 2):
            notes.problem(
                key, "expected a tool's id, catalog/agent/tool, or an agent's, catalog/agent."
            )
        else:
            grouped.setdefault(catalog, {})[key] = override
    return grouped


def _revise_catalog(lake: Lake, catalog: str, identity: str, asked: _Asked, notes: _Notes) -> str:
    """The identity of the revised snapshot, stored. Rows are replaced: a large catalog is not made
    anew for one override.
    """
    old_agents = snapshot_rows(lake, {catalog: identity}, "agents")
    old_tools = snapshot_rows(lake, {catalog: identity}, "tools")
    _note_missing(
        asked.overrides, set(old_agents.get_column("id")) | set(old_tools.get_column("id")), notes
    )

    agents, gone = _revised_agents(old_agents, asked.overrides, notes)
    tools = _revised_tools(old_tools, agents, gone, asked, notes)
    if asked.quarantine:
        agents = [_without_flagged_description(agent, notes) for agent in agents]
        tools = _without_flagged(tools, notes)

    new_agents = agent_frame(agents)
    changed = [frame.get_column("digest").to_list() for frame in (new_agents, tools)]
    if changed == [frame.get_column("digest").to_list() for frame in (old_agents, old_tools)]:
        return identity
    revised = digest("revised", *changed)
    store_snapshot(lake, catalog, revised, new_agents, tools, identity)
    point_to(lake, f"snapshots/{catalog}/latest-revised", f"snapshots/{catalog}/{revised}/tools")
    return revised


def _revised_agents(
    frame: "pl.DataFrame", overrides: Mapping[str, OverrideSettings], notes: _Notes
) -> tuple[list[Agent], set[str]]:
    """The agents that stay, and the ids of those that an override takes out with their tools."""
    agents = {row["id"]: Agent(**row) for row in frame.drop("digest").to_dicts()}
    gone: set[str] = set()
    for key in sorted(agents.keys() & overrides.keys()):
        override = overrides[key]
        if override.examples is not None or override.arguments or override.tags is not None:
            notes.problem(
                key, "an agent has no examples, arguments or tags; give them to its tools."
            )
        if override.skip:
            del agents[key]
            gone.add(key)
        elif override.description is not None:
            agents[key] = replace(agents[key], description=override.description.strip())
        if override.skip or override.description is not None:
            notes.applied.add(key)
    return list(agents.values()), gone


def _revised_tools(
    frame: "pl.DataFrame", agents: Sequence[Agent], gone: set[str], asked: _Asked, notes: _Notes
) -> "pl.DataFrame":
    import polars as pl

    frame = frame.filter(~pl.col("agent").is_in(sorted(gone)))
    rows = frame.filter(
        pl.col("id").is_in(sorted(asked.overrides.keys() | asked.held.keys()))
    ).to_dicts()
    revised = [_revised_tool(tool_of(row), asked, notes) for row in rows]
    if not rows:
        return frame
    rest = frame.filter(~pl.col("id").is_in([row["id"] for row in rows]))
    kept = tuple(tool for tool in revised if tool is not None)
    return pl.concat([rest, tool_frame(Listing(agents=tuple(agents), tools=kept))]).sort("id")


def _revised_tool(tool: Tool, asked: _Asked, notes: _Notes) -> Tool | None:
    """The tool as people want it, without the examples that are golden queries; None if they do not
    want it.
    """
    if (override := asked.overrides.get(tool.id)) is not None:
        changes = _changes(tool, override, notes)
        if override.skip or changes:
            notes.applied.add(tool.id)
        if override.skip:
            return None
        tool = replace(tool, **changes)
    left = remaining_examples(tool, asked.held.get(tool.id, NOTHING))
    notes.held_out += len(tool.examples) - len(left)
    return tool if len(left) == len(tool.examples) else replace(tool, examples=left)


def _changes(tool: Tool, override: OverrideSettings, notes: _Notes) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if override.description is not None:
        changes["description"] = override.description.strip()
    if override.examples is not None:
        changes["examples"] = tuple(
            dict.fromkeys(text.strip() for text in override.examples if text.strip())
        )
    if override.tags is not None:
        changes["tags"] = tuple(sorted({tag.strip() for tag in override.tags if tag.strip()}))
    if override.arguments and (properties := _described(tool, override.arguments, notes)):
        changes["input_schema"] = {**tool.input_schema, "properties": properties}
    return changes


def _described(tool: Tool, texts: Mapping[str, str], notes: _Notes) -> dict[str, Any] | None:
    """The properties of the tool with these descriptions; None if it has none of the arguments."""
    given = tool.input_schema.get("properties")
    properties: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
    known = [
        name
        for name in texts
        if properties.get(name) is True or isinstance(properties.get(name), Mapping)
    ]
    if unknown := [name for name in texts if name not in known]:
        has = ", ".join(list(properties)[:ARGUMENTS_NAMED]) or "none"
        notes.problem(tool.id, f"the tool has no argument {', '.join(unknown)}. It has: {has}.")
    for name in known:
        spec = properties[name]
        properties[name] = {
            **(spec if isinstance(spec, Mapping) else {}),
            "description": texts[name].strip(),
        }
    return properties if known else None


def _without_flagged_description(agent: Agent, notes: _Notes) -> Agent:
    flags = flags_of_text(agent.description)
    if not flags:
        return agent
    consequence = "the agent is published without its description"
    notes.quarantine(
        agent.catalog, agent.id, flags, consequence, {"description": agent.description}
    )
    return replace(agent, description="")


def _without_flagged(frame: "pl.DataFrame", notes: _Notes) -> "pl.DataFrame":
    import polars as pl

    out: list[str] = []
    for row in frame.iter_rows(named=True):
        tool = tool_of(row)
        if flags := flags_of(tool):
            said = {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
            }
            notes.quarantine(tool.catalog, tool.id, flags, "the tool is left out", said)
            out.append(tool.id)
    return frame.filter(~pl.col("id").is_in(out))


def _note_missing(overrides: Mapping[str, OverrideSettings], ids: set[str], notes: _Notes) -> None:
    for key in sorted(overrides.keys() - ids):
        what = "tool" if key.count("/") == 2 else "agent"
        near = nearest_names(key, [one for one in ids if one.count("/") == key.count("/")])
        hint = (
            f"The nearest: {', '.join(near)}."
            if near
            else "Correct the id, or take the override out."
        )
        notes.problem(key, f"there is no such {what} now. {hint}")
