"""The catalog of these tests: its n-th state follows from n alone, so any answer can be checked."""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

TOOLS = 48
DIMENSIONS = 256
ENCODER = f"hashing/{DIMENSIONS}"
CONFIGURATION = f"""
[board]
uri = "../board"
report = false
{{keep}}

[catalogs.kit]
type = "mcp-dump"
path = "servers.json"

[[indexes]]
name = "full"
encoder = "{ENCODER}"

[[indexes]]
name = "fine"
shape = "multi"
encoder = "{ENCODER}"
"""


def _words() -> list[str]:
    """A word for each tool; no two of them share a place of the hashing encoder's vectors."""
    common = ("handle", "tool", "revision", "please", "argument")
    words = {crc32(word.encode()) % DIMENSIONS: word for word in common}
    for number in range(10 * TOOLS):
        word = f"zorb{number:03d}x"
        words.setdefault(crc32(word.encode()) % DIMENSIONS, word)
    return list(words.values())[len(common) :][:TOOLS]


WORDS = _words()


def exists(tool: int, n: int) -> bool:
    """Whether the n-th state has that tool: every publish adds some and removes some."""
    return (tool * 7 + n * 3) % 11 != 0


def description(tool: int, n: int) -> str:
    """The tool's description in the n-th state; that of every fifth tool differs in the next."""
    return f"Handle {WORDS[tool]}. Revision r{(n + tool) // 5}."


def identity(tool: int) -> str:
    """The id under which the tool is published."""
    return f"kit/server{tool % 4}/tool_{WORDS[tool]}"


def content(n: int) -> dict[str, str]:
    """The n-th state: the description of every tool by its id."""
    return {identity(tool): description(tool, n) for tool in range(TOOLS) if exists(tool, n)}


def check_hits(tool: int, n: int, hits: list[str]) -> None:
    """Check that a search for the tool's word shows the n-th state: it is first, or absent."""
    assert hits[0] == identity(tool) if exists(tool, n) else identity(tool) not in hits, (n, hits)


def servers(n: int) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The n-th state as MCP servers answer it."""
    listed = {f"server{number}": {"tools": list[dict[str, Any]]()} for number in range(4)}
    schema = {"type": "object", "properties": {"argument": {"type": "string"}}}
    for tool in range(TOOLS):
        if exists(tool, n):
            record = {"name": f"tool_{WORDS[tool]}", "description": description(tool, n)}
            listed[f"server{tool % 4}"]["tools"].append({**record, "inputSchema": schema})
    return listed


def write(folder: Path, n: int, keep: str = "") -> Path:
    """Write the n-th state below a folder, with the configuration that publishes it to
    `folder/board`; returns its path.

    Args:
        keep: further lines of the table [board].
    """
    home = folder / f"catalog-{n}"
    home.mkdir(exist_ok=True)
    (home / "servers.json").write_text(json.dumps(servers(n)), "utf-8")
    configuration = home / "pegboard.toml"
    configuration.write_text(CONFIGURATION.format(keep=keep), "utf-8")
    return configuration
