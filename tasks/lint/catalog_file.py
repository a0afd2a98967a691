"""Catalog files of any kind, and where in them each tool stands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from catalogs.shared.listing import Listing
from pegboard.errors import SourceError
from pegboard.foreign.files import read_text
from pegboard.records import Notice, Rejected, Tool
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
        file: the path as the user wrote it; empty if the source is not a file.
        agents: names of agents by id.
    """

    name: str
    file: str
    tools: tuple[Tool, ...]
    agents: Mapping[str, str]
    rejected: tuple[Rejected, ...]
    notices: tuple[Notice, ...] = ()

    def placed(self, finding: Finding) -> Finding:
        """Return the finding with its place in the file."""
        if not self.file:
            return finding
        tool = self._by_id.get(finding.tool)
        return replace(finding, file=self.file, line=self._line(tool) if tool else 0)

    def _line(self, tool: Tool) -> int:
        """The line that has a tool's name, or its path, behind that of its server."""
        lines = self._lines.get(tool.name) or self._lines.get(tool.annotations.get("path", ""), [0])
        server = self._text.find(f'"{self.agents[tool.agent]}"')
        server_line = self._text.count("\n", 0, max(server, 0)) + 1
        return next((line for line in lines if line > server_line), lines[0])

    @cached_property
    def _by_id(self) -> dict[str, Tool]:
        return {tool.id: tool for tool in self.tools}

    @cached_property
    def _text(self) -> str:
        return read_text(Path(self.file))

    @cached_property
    def _lines(self) -> dict[str, list[int]]:
        """The lines that have a name, or a path."""
        lines: dict[str, list[int]] = {}
        line = 1
        end = 0
        for match in _NAME_OR_PATH.finditer(self._text):
            start = match.start(match.lastindex or 0)
            line += self._text.count("\n", end, start)
            end = start
            lines.setdefault(match[1] or match[2], []).append(line)
        return lines


def read_catalogs(file_name: str) -> list[Catalog]:
    """Return the catalog of a file, whose format is detected, or all that a pegboard.toml names.

    Raises:
        SourceError: a source cannot be listed.
        ConfigurationError: the pegboard.toml has problems.
    """
    path = Path(file_name)
    if path.suffix == ".toml":
        configuration = load_configuration(path)
        named = {
            name: (configuration.base, options) for name, options in configuration.catalogs.items()
        }
    else:
        kind = _kind(file_name, read_text(path))
        options = source_kind(kind).options.model_validate({"type": kind, "path": path.name})
        named = {path.stem: (path.resolve().parent, options)}
    return [
        _catalog(name, file_name, list_isolated(name, base, options))
        for name, (base, options) in named.items()
    ]


def _kind(file_name: str, text: str) -> str:
    if _OPENAPI.search(text):
        return "openapi"
    if not text.lstrip().startswith(("{", "[")):
        raise SourceError(
            f"{file_name} is not a catalog. Expected an OpenAPI document, the tools/list "
            "answer of an MCP server, or function schemas."
        )
    return "mcp-dump" if '"inputSchema"' in text else "functions"


def _catalog(name: str, file_name: str, listing: Listing) -> Catalog:
    problems = [failure.why for failure in listing.failures] + list(listing.unreadable)
    if problems:
        raise SourceError(f"{name}: {'; '.join(problems)}")
    agents = {agent.id: agent.name for agent in listing.agents}
    file = "" if file_name.endswith(".toml") else file_name
    return Catalog(name, file, listing.tools, agents, listing.rejected, listing.notices)
