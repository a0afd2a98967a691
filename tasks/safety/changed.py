"""Agents and tools whose definition changed since the live release.

- `unapproved`: a definition of a catalog with `trust = "limited"` is new or changed. It holds the
  release until a person promotes it (`pegboard promote`), which makes its texts the live ones.
- `new-text`: a changed definition has a new address, or a new sentence that tells a model what to
  do."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

from catalogs.shared.tool_row import tool_of
from pegboard.records import Agent, Dependency, Tool
from pegboard.store.diff import IDS_AT_ONCE, tools_with_kinds
from pegboard.store.releases import Release, ReleaseStore
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agents_of, snapshot_rows
from tasks.safety.readings import readings
from tasks.safety.untrusted import comparable, texts_of
from tasks.settings.configuration import Configuration

UNAPPROVED = "unapproved"
NEW_TEXT = "new-text"
READ = ("description", "input_schema", "output_schema", "annotations")
"""The fields of a tool that a model reads, besides its name."""
DEFINITION = (*READ, "examples", "dependencies", "tags")
"""Everything that a source says of a tool: what is read, ranks it, or leads to other tools."""
MAX_TEXT = 2_000
"""Largest number of characters shown of the old and of the new text of a field; `pegboard diff
--texts` shows all."""
CONTEXT = 60
"""Number of equal characters shown before and after a difference."""
MAX_NEW = 5
"""Largest number of new addresses, and of new sentences, named for one tool."""

_ADDRESS = re.compile(
    r"\b(?:https?|ftp|wss?)://[^\s\"'<>()\[\]{}?#]{1,200}"
    r"|\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{2,64}){1,4}"
    r"|\b(?:[\w-]{1,64}\.){1,4}[a-z]{2,12}/[\w./-]{0,200}"
)
_DIALECT = "://json-schema.org/"
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n+")
_INSTRUCTION = re.compile(
    r"\b(?:you (?:must|should|have to|need to|are required)|always|never|ignore|disregard"
    r"|(?:do not|don'?t) (?:tell|mention|ask|inform|show|reveal|use|call|run)"
    r"|without (?:telling|asking|informing)|instead of|before (?:using|calling|any|every|each)"
    r"|assistants?|llms?|language models?|system prompt|(?:chat|conversation) history"
    r"|(?:this|the|full|entire|whole) (?:conversation|chat))\b"
    r"|\b(?:pass|send|forward|include|attach|copy|share|upload|post|append|give|read|fetch|collect)"
    r"\b[^.\n]{0,40}\b(?:user'?s|users'|their|credentials|passwords?|secrets?|tokens?)\b"
)


def unapproved(suspicious: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the changed fields of the tools that wait for approval, by id."""
    return {
        tool: row["fields"]
        for tool, rows in suspicious.items()
        for row in rows
        if row["flag"] == UNAPPROVED
    }


def new_texts(old_tool: Tool, new_tool: Tool) -> list[str]:
    """Return the addresses and the instructions to a model that only the new tool has."""
    old_text = _readings_of(old_tool)
    new_text = _readings_of(new_tool)
    old_addresses = set(_addresses(old_text))
    old_sentences = set(_SENTENCE.split(old_text))
    addresses = dict.fromkeys(
        address for address in _addresses(new_text) if address not in old_addresses
    )
    # A single word, such as a value of an enumeration, is not an instruction.
    sentences = [text for text in _SENTENCE.split(new_text) if len(text.split()) > 1]
    instructions = dict.fromkeys(
        sentence.strip()[:MAX_TEXT]
        for sentence in sentences
        if sentence not in old_sentences and _INSTRUCTION.search(sentence)
    )
    return [*list(addresses)[:MAX_NEW], *list(instructions)[:MAX_NEW]]


def _readings_of(tool: Tool) -> str:
    """Return all readings of the texts of a tool's definition, one a line."""
    texts = texts_of(replace(tool, examples=(), tags=(), dependencies=()))
    return "\n".join(reading for text in texts for reading in readings(comparable(text)))


def _addresses(text: str) -> list[str]:
    matches: list[str] = _ADDRESS.findall(text)
    return [address.rstrip(".,;:") for address in matches if _DIALECT not in address]


def definition_fields(configuration: Configuration, tool: str) -> Sequence[str]:
    """Return the fields of a tool, or agent, that its source defines: `DEFINITION`, without those
    that the configuration overrides, and without the examples of a catalog of limited trust, which
    are left out of its releases.
    """
    override = configuration.overrides.get(tool)
    catalog = tool.partition("/")[0]
    limited = configuration.options(catalog).trust == "limited"
    return [
        name
        for name in DEFINITION
        if getattr(override, name, None) is None and not (limited and name == "examples")
    ]


def definitions_since(
    configuration: Configuration, live: str | None, snapshots: Mapping[str, str], ids: Iterable[str]
) -> Iterator[tuple[Tool | None, Tool, dict[str, Any]]]:
    """Yield all agents, as tools without arguments, and the tools with these ids, each as it is in
    the live release (None if it is new), as it is listed now, and the fields of its definition that
    differ.
    """
    uri = configuration.uri
    release = ReleaseStore(uri).get(live) if live else None
    for live_tool, tool in chain(
        _agents_since(uri, release, snapshots), _tools_since(uri, release, snapshots, sorted(ids))
    ):
        names = definition_fields(configuration, tool.id)
        yield live_tool, tool, _changed_fields(live_tool, tool, names)


def _tools_since(
    uri: str, live: Release | None, snapshots: Mapping[str, str], ids: Sequence[str]
) -> Iterator[tuple[Tool | None, Tool]]:
    for start in range(0, len(ids), IDS_AT_ONCE):
        chunk = ids[start : start + IDS_AT_ONCE]
        live_tools = tools_with_kinds(ReleaseStore(uri), live, chunk) if live else {}
        rows = snapshot_rows(Lake(uri), snapshots, "tools", ids=chunk)
        for row in rows.iter_rows(named=True):
            tool = tool_of(row)
            yield live_tools[tool.id][0] if tool.id in live_tools else None, tool


def _agents_since(
    uri: str, live: Release | None, snapshots: Mapping[str, str]
) -> Iterator[tuple[Tool | None, Tool]]:
    live_descriptions: dict[str, str] = {}
    if live is not None:
        rows = ReleaseStore(uri).read_rows(live.tables["agents"], ["id", "description"])
        live_descriptions = {row["id"]: row["description"] for row in rows.to_pylist()}
    for agent in agents_of(Lake(uri), snapshots):
        tool = agent_as_tool(agent)
        if agent.id in live_descriptions:
            yield replace(tool, description=live_descriptions[agent.id]), tool
        else:
            yield None, tool


def agent_as_tool(agent: Agent) -> Tool:
    """Return an agent as a tool without arguments."""
    return Tool(agent.id, agent.catalog, agent.id, agent.name, agent.description)


def _changed_fields(live_tool: Tool | None, tool: Tool, names: Sequence[str]) -> dict[str, Any]:
    """Return the differing parts of these fields of a tool; of a new tool also its name."""
    fields: dict[str, Any] = {}
    for name in names if live_tool else ("name", *names):
        old, new = getattr(live_tool, name, None), getattr(tool, name)
        if name == "examples":  # a release has learned ones, too, and lacks those held out
            old, new = (), [text for text in new if text not in (old or ())]
        old_text, new_text = _text(old), _text(new)
        if old_text != new_text:
            old_part, new_part = differing_parts(old_text, new_text)
            fields[name] = {"before": old_part, "after": new_part}
    return fields


def differing_parts(old: str, new: str) -> tuple[str, str]:
    """Return the part of each text that differs from the other, with some context around it."""
    prefix = _common(old, new)
    suffix = _common(old[prefix:][::-1], new[prefix:][::-1])
    return _part(old, prefix, suffix), _part(new, prefix, suffix)


def _text(value: Any) -> str:
    if not value or isinstance(value, str):
        return value or ""
    if isinstance(value, tuple):
        value = [asdict(item) if isinstance(item, Dependency) else item for item in value]
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _common(left: str, right: str) -> int:
    """Return the length of the common prefix of two texts."""
    for position, (left_char, right_char) in enumerate(zip(left, right, strict=False)):
        if left_char != right_char:
            return position
    return min(len(left), len(right))


def _part(text: str, prefix: int, suffix: int) -> str:
    """Return a text without all but `CONTEXT` characters of its equal prefix and suffix."""
    start = max(0, prefix - CONTEXT)
    end = min(len(text), len(text) - suffix + CONTEXT)
    part = text[start:end]
    is_cut = end < len(text) or len(part) > MAX_TEXT
    return f"{'…' if start else ''}{part[:MAX_TEXT]}{'…' if is_cut else ''}"
