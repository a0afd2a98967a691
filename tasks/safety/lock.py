"""The lock file: the definitions that people approved, by their digests.

{"id": "kit/post/send", "definition": "8f14e45f...", "call": "a87ff679..."}

The file has one line for each agent and each tool, sorted by id, so that a pull request shows which
were added, removed and changed. `definition` covers everything that a model reads, that ranks the
tool or leads to other tools (`changed.DEFINITION`). `call` covers what a caller depends on, without
texts and results: if it is equal, the tool is called as before.

`pegboard build --locked` holds a release with a definition that is not in the file, with the same
flag as changed tools of limited trust (`changed.py`). Changes are shown against the live release.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

from pegboard.canonical import digest
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import write_lines
from pegboard.records import Tool
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agents_of, snapshot_rows, tool_of
from tasks.safety.changed import (
    READ,
    UNAPPROVED,
    agent_as_tool,
    definition_fields,
    definitions_since,
    new_texts,
)
from tasks.settings.configuration import Configuration
from tasks.settings.json_lines import read_lines

Change = Literal["new", "changed", "text"]
"""How a definition differs from the approved one; `text` means that only texts or results changed,
and the tool is called as before."""
DIGITS = 32
"""Number of hexadecimal digits of a digest in the file."""
TEXTS = frozenset({"title", "description", "examples", "example", "$comment"})
"""Keywords of a schema that do not change which arguments are valid."""
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""
DATA = frozenset({"const", "default", "enum", "required"})
"""Keywords whose value is not a schema."""
NEXT_STEP = "Resolve merge conflicts in it, or write it again with `pegboard lock`."


@dataclass(frozen=True, slots=True)
class Approved:
    """A line of the file: the digests of a definition, and of how the tool is called."""

    id: str
    definition: str
    call: str


def lock_file(configuration: Configuration) -> Path:
    """Return the path of a configuration's lock file."""
    return configuration.base / configuration.lock.file


def read_lock(file: Path) -> dict[str, Approved]:
    """Return the approved definitions by the ids of their agents and tools.

    Raises:
        ConfigurationError: the file cannot be read, or a line is invalid; lists all such lines.
    """
    rows = read_lines(file, Approved, NEXT_STEP)
    counts = Counter(row.id for row in rows)
    if repeated := [f"{tool} is listed twice" for tool, count in counts.items() if count > 1]:
        raise ConfigurationError.from_problems(str(file), repeated, NEXT_STEP)
    return {row.id: row for row in rows}


def write_lock(file: Path, lock: Mapping[str, Approved]) -> None:
    """Write the approved definitions. Raises ConfigurationError if the file cannot be written."""
    write_lines(file, (asdict(lock[tool]) for tool in sorted(lock)))


def definitions(
    configuration: Configuration, snapshots: Mapping[str, str], listed: Mapping[str, str]
) -> dict[str, Approved]:
    """Return the current definitions by the ids of all agents and tools.

    Args:
        snapshots: catalog -> digest of the revised snapshots.
        listed: the same, as listed. Their examples count: revised ones follow what was learned and
            what golden queries hold out.
    """
    lake = Lake(configuration.uri)
    rows = snapshot_rows(lake, listed, "tools", ["id", "examples"])
    examples = dict(rows.select("id", "examples").iter_rows())
    tools = (
        replace(tool_of(row), examples=tuple(examples.get(row["id"]) or ()))
        for row in snapshot_rows(lake, snapshots, "tools").iter_rows(named=True)
    )
    agents_and_tools = chain(map(agent_as_tool, agents_of(lake, snapshots)), tools)
    return {tool.id: _definition(configuration, tool) for tool in agents_and_tools}


def change_of(approved: Approved | None, definition: Approved) -> Change | None:
    """Return how a definition differs from the approved one; None if they are equal."""
    if approved is None:
        return "new"
    if approved == definition:
        return None
    return "text" if approved.call == definition.call else "changed"


def compare_with_lock(
    configuration: Configuration,
    live: str | None,
    snapshots: Mapping[str, str],
    current: Mapping[str, Approved],
    lock: Mapping[str, Approved],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ids of the agents and tools that wait for approval, each with its flag, its change
    since it was approved, and the fields that differ from the live release.

    With `[lock] text_changes = "pass"` a tool that is called as before needs no approval, unless it
    has a new address or a new instruction to a model.

    Args:
        live: the id of the live release; None if there is none.
        snapshots: catalog -> digest of the revised snapshots.
        current: the definitions in these snapshots.
    """
    changes = {
        tool: change
        for tool, definition in sorted(current.items())
        if (change := change_of(lock.get(tool), definition)) is not None
    }
    for live_tool, tool, fields in definitions_since(configuration, live, snapshots, changes):
        change = changes.get(tool.id)
        if change is None:
            continue
        may_pass = change == "text" and configuration.lock.text_changes == "pass"
        if may_pass and live_tool is not None and not new_texts(live_tool, tool):
            continue
        yield tool.id, {"flag": UNAPPROVED, "change": change, "fields": fields}


def _definition(configuration: Configuration, tool: Tool) -> Approved:
    fields = {
        name: getattr(tool, name)
        for name in definition_fields(configuration, tool.id)
        if name in READ or getattr(tool, name)
    }
    called: list[Any] = [_without_texts(fields[name]) for name in ("input_schema", "annotations")]
    if tool.dependencies:
        fields["dependencies"] = [asdict(dependency) for dependency in tool.dependencies]
        called.append([[dependency.tool, dependency.type] for dependency in tool.dependencies])
    definition = digest(tool.name, fields)
    call = digest(tool.name, called)
    return Approved(tool.id, definition[:DIGITS], call[:DIGITS])


def _without_texts(value: Any, *, named: bool = False) -> Any:
    """Return a schema without titles, descriptions, examples and comments.

    Args:
        named: the keys are names of properties, not keywords.
    """
    if isinstance(value, list):
        return [_without_texts(item) for item in cast("list[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    keywords = cast("Mapping[str, Any]", value)
    return {
        key: item
        if key in DATA and not named
        else _without_texts(item, named=not named and key in NAMED)
        for key, item in keywords.items()
        if named or key not in TEXTS
    }
