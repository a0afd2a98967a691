"""Catalog files of any kind, and where in them each tool stands."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing
from pegboard.errors import SourceError
from pegboard.foreign.files import read_text
from pegboard.records import Rejected, Tool
from tasks.lint.findings import Finding
from tasks.settings.configuration import load_configuration

_OPENAPI = re.compile(
    r"""(?:^|[{,])\s{0,99}["']?(?:openapi|swagger)["']?\s{0,9}:\s{0,9}["']?[23]\b""", re.MULTILINE
)
_NAME_OR_PATH = re.compile(
    r"""\b(?:operationId|name)["']?\s{0,9}:\s{0,9}["']?([^"'\n]{1,200}?)["']?\s{0,9}(?=[,}\n])"""
    r"""|^\s{0,99}["']?(/[^"'\s]{0,500})["']?\s{0,9}:""",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Catalog:
    """The tools of a source, and the file that lists them.

    Attributes:
        file: as it was given; empty where the source is no file.
        agents: names of agents by id.
    """

    name: str
    file: str
    tools: tuple[Tool, ...]
    agents: Mapping[str, str]
    rejected: tuple[Rejected, ...]

    def placed(self, finding: Finding) -> Finding:
        """Return the finding with its place in the file."""
        if not self.file:
            return finding
        tool = self._by_id.get(finding.tool)
        pointer, line = self._place(tool) if tool else ("", 0)
        return replace(finding, file=self.file, pointer=pointer, line=line)

    def _place(self, tool: Tool) -> tuple[str, int]:
        """The pointer and the line of a tool. Servers may have tools of one name."""
        lines = self._lines.get(tool.name, [])
        if path := tool.annotations.get("path"):
            pointer = f"/paths/{_escaped(str(path))}/{str(tool.annotations['method']).lower()}"
            return pointer, next(iter(lines or self._lines.get(str(path), [])), 0)
        pointers = self._pointers.get(tool.name, [])
        of_agent = f"/{_escaped(self.agents[tool.agent])}/"
        at = next((at for at, pointer in enumerate(pointers) if of_agent in pointer), 0)
        return next(iter(pointers[at:]), ""), next(iter(lines[at:]), 0)

    @cached_property
    def _by_id(self) -> dict[str, Tool]:
        return {tool.id: tool for tool in self.tools}

    @cached_property
    def _lines(self) -> dict[str, list[int]]:
        """The lines that have a name, or a path."""
        text = read_text(Path(self.file))
        lines: dict[str, list[int]] = {}
        line, end = 1, 0
        for match in _NAME_OR_PATH.finditer(text):
            start = match.start(match.lastindex or 0)
            line, end = line + text.count("\n", end, start), start
            lines.setdefault(match[1] or match[2], []).append(line)
        return lines

    @cached_property
    def _pointers(self) -> dict[str, list[str]]:
        pointers: dict[str, list[str]] = {}
        with suppress(ValueError):
            for name, pointer in _named(json.loads(read_text(Path(self.file))), ""):
                pointers.setdefault(name, []).append(pointer)
        return pointers


def _named(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """The records of tools within a JSON value: their names and pointers."""
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and value.keys() & {"description", "inputSchema"}:
            yield value["name"], pointer
            return
        for key, part in value.items():
            yield from _named(part, f"{pointer}/{_escaped(key)}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _named(part, f"{pointer}/{number}")


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def read_catalogs(given: str) -> list[Catalog]:
    """Return the catalog of a file, whose format is detected, or all that a pegboard.toml names.

    Raises:
        SourceError: a source cannot be listed.
        ConfigurationError: the pegboard.toml has problems.
    """
    path = Path(given)
    if path.suffix == ".toml":
        configuration = load_configuration(path)
        named = {
            name: (configuration.base, options) for name, options in configuration.catalogs.items()
        }
    else:
        kind = _kind(read_text(path))
        options = source_kind(kind).options.model_validate({"type": kind, "path": path.name})
        named = {path.stem: (path.resolve().parent, options)}
    return [
        _catalog(name, given, list_isolated(name, base, options))
        for name, (base, options) in named.items()
    ]


def _kind(text: str) -> str:
    if _OPENAPI.search(text):
        return "openapi"
    return "mcp-dump" if '"inputSchema"' in text else "functions"


def _catalog(name: str, given: str, listing: Listing) -> Catalog:
    problems = [failure.why for failure in listing.failures] + list(listing.unreadable)
    if problems:
        raise SourceError(f"{name}: {'; '.join(problems)}")
    agents = {agent.id: agent.name for agent in listing.agents}
    file = "" if given.endswith(".toml") else given
    return Catalog(name, file, listing.tools, agents, listing.rejected)
