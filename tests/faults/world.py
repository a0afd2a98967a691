"""What the boards of these tests hold: a catalog whose n-th state follows from n alone, so that any
answer can be checked.
"""

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
    words: list[str] = []
    places = {
        crc32(common.encode()) % DIMENSIONS
        for common in ("handle", "tool", "revision", "please", "argument")
    }
    number = 0
    while len(words) < TOOLS:
        word = f"zorb{number:03d}x"
        number += 1
        if (place := crc32(word.encode()) % DIMENSIONS) not in places:
            places.add(place)
            words.append(word)
    return words


WORDS = _words()


def exists(tool: int, n: int) -> bool:
    """Whether the n-th state has that tool: every publish adds some and removes some."""
    return (tool * 7 + n * 3) % 11 != 0


def description(tool: int, n: int) -> str:
    """The tool's description in the n-th state: that of every fifth tool is another one in the
    next.
    """
    return f"Handle {WORDS[tool]}. Revision r{(n + tool) // 5}."


def identity(tool: int) -> str:
    """The id under which the tool is published."""
    return f"kit/server{tool % 4}/tool_{WORDS[tool]}"


def content(n: int) -> dict[str, str]:
    """The n-th state: the description of every tool by its id."""
    return {identity(tool): description(tool, n) for tool in range(TOOLS) if exists(tool, n)}


def servers(n: int) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The n-th state as MCP servers answer it."""
    listed: dict[str, dict[str, list[dict[str, Any]]]] = {
        f"server{number}": {"tools": []} for number in range(4)
    }
    for tool in range(TOOLS):
        if exists(tool, n):
            schema = {"type": "object", "properties": {"argument": {"type": "string"}}}
            record = {
                "name": f"tool_{WORDS[tool]}",
                "description": description(tool, n),
                "inputSchema": schema,
            }
            listed[f"server{tool % 4}"]["tools"].append(record)
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
