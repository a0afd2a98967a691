"""Tools, and agents, whose definition changed since the live release.

- `unapproved`: text of a catalog with `trust = "limited"` is new or changed. It holds the release
  until a person promotes it (`pegboard promote`), which makes it the live text.
- `new-text`: a changed definition has an address that the old one lacks, or a sentence that tells
  a model what to do.

Old text is compared with new, so what did not change raises neither."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from catalogs.shared.tool_row import tool_of
from pegboard.records import Agent, Tool
from pegboard.store.diff import IDS_AT_ONCE, tools_with_kinds
from pegboard.store.releases import Release, ReleaseStore
from tasks.lake.files import Lake
from tasks.lake.snapshot_rows import agents_of, snapshot_rows
from tasks.safety.readings import readings
from tasks.safety.untrusted import comparable, texts_of
from tasks.settings.configuration import Configuration

UNAPPROVED = "unapproved"
NEW_TEXT = "new-text"
DEFINITION = ("description", "input_schema", "output_schema", "annotations")
"""The fields of a tool that a model reads, beside its name."""
MAX_TEXT = 2_000
"""Characters of what differs in a field, before and after; `pegboard diff --texts` has all."""
CONTEXT = 60
"""Equal characters shown before and after what differs."""
MAX_NEW = 5
"""Addresses and sentences that are named of one tool."""

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


def new_texts(before: Tool, after: Tool) -> list[str]:
    """Return the addresses and the instructions to a model that only the later state has."""
    old, new = (
        "\n".join(reading for text in _texts(tool) for reading in readings(comparable(text)))
        for tool in (before, after)
    )
    # A single word, such as a value of an enumeration, tells nobody what to do.
    sentences = [text for text in _SENTENCE.split(new) if len(text.split()) > 1]
    before_addresses, before_sentences = set(_addresses(old)), set(_SENTENCE.split(old))
    addresses = dict.fromkeys(
        address for address in _addresses(new) if address not in before_addresses
    )
    instructions = dict.fromkeys(
        sentence.strip()[:MAX_TEXT]
        for sentence in sentences
        if sentence not in before_sentences and _INSTRUCTION.search(sentence)
    )
    return [*list(addresses)[:MAX_NEW], *list(instructions)[:MAX_NEW]]


def _texts(tool: Tool) -> list[str]:
    return texts_of(replace(tool, examples=(), tags=(), dependencies=()))


def _addresses(text: str) -> list[str]:
    return [found.rstrip(".,;:") for found in _ADDRESS.findall(text) if _DIALECT not in found]


def definition_fields(configuration: Configuration, tool: str) -> Sequence[str]:
    """Return the fields of a tool, or agent, that its source defines: all of `DEFINITION` but a
    description that the configuration gives.
    """
    override = configuration.overrides.get(tool)
    described = override is not None and override.description is not None
    return DEFINITION[1:] if described else DEFINITION


def definitions_since(
    configuration: Configuration, live: str | None, snapshots: Mapping[str, str], ids: Iterable[str]
) -> Iterator[tuple[Tool | None, Tool, dict[str, Any]]]:
    """Yield all agents, as tools without arguments, and the tools of these ids: in the live
    release, None for a new one, and now; and the fields of their definition that differ.
    """
    uri = configuration.uri
    release = ReleaseStore(uri).get(live) if live else None
    for before, tool in chain(
        _agents_since(uri, release, snapshots), _tools_since(uri, release, snapshots, sorted(ids))
    ):
        yield before, tool, _changed_fields(before, tool, definition_fields(configuration, tool.id))


def _tools_since(
    uri: str, live: Release | None, snapshots: Mapping[str, str], ids: Sequence[str]
) -> Iterator[tuple[Tool | None, Tool]]:
    for start in range(0, len(ids), IDS_AT_ONCE):
        part = ids[start : start + IDS_AT_ONCE]
        before = tools_with_kinds(ReleaseStore(uri), live, part) if live else {}
        rows = snapshot_rows(Lake(uri), snapshots, "tools", ids=part)
        for row in rows.iter_rows(named=True):
            tool = tool_of(row)
            yield before[tool.id][0] if tool.id in before else None, tool


def _agents_since(
    uri: str, live: Release | None, snapshots: Mapping[str, str]
) -> Iterator[tuple[Tool | None, Tool]]:
    before: dict[str, str] = {}
    if live is not None:
        rows = ReleaseStore(uri).read_rows(live.tables["agents"], ["id", "description"])
        before = {row["id"]: row["description"] for row in rows.to_pylist()}
    for agent in agents_of(Lake(uri), snapshots):
        tool = agent_as_tool(agent)
        known = agent.id in before
        yield replace(tool, description=before[agent.id]) if known else None, tool


def agent_as_tool(agent: Agent) -> Tool:
    """Return an agent as a tool without arguments."""
    return Tool(agent.id, agent.catalog, agent.id, agent.name, agent.description)


def _changed_fields(before: Tool | None, after: Tool, names: Sequence[str]) -> dict[str, Any]:
    """Return what differs in these fields of a tool, as texts; of a new one its name, too."""
    fields: dict[str, Any] = {}
    for name in names if before else ("name", *names):
        old, new = _text(getattr(before, name, None)), _text(getattr(after, name))
        if old != new:
            fields[name] = dict(zip(("before", "after"), differing_parts(old, new), strict=True))
    return fields


def differing_parts(old: str, new: str) -> tuple[str, str]:
    """Return what differs of two texts, with what stands before and after it."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    return _part(old, start, end), _part(new, start, end)


def _text(value: Any) -> str:
    if not value or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _part(text: str, start: int, end: int) -> str:
    first, last = max(0, start - CONTEXT), min(len(text), len(text) - end + CONTEXT)
    part = text[first:last]
    cut = last < len(text) or len(part) > MAX_TEXT
    return f"{'…' if first else ''}{part[:MAX_TEXT]}{'…' if cut else ''}"
