"""What the boards of these tests hold: a catalog whose n-th state follows from n alone, so that any answer can be checked.

Read by the publisher, the readers and the tests, each a process of its own: nothing but the standard library and NumPy.
"""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

TOOLS = 48
DIMENSIONS = 256
INDEXES = """
[[indexes]]
name = "full"

[[indexes]]
name = "fine"
shape = "multi"
"""


def _words() -> list[str]:
    """A word for each tool; no two of them hash to one place of a vector."""
    words: list[str] = []
    places = {crc32(common.encode()) % DIMENSIONS for common in ("handle", "tool", "revision", "please", "argument")}
    number = 0
    while len(words) < TOOLS:
        word = f"zorb{number:03d}x"
        number += 1
        if (place := crc32(word.encode()) % DIMENSIONS) not in places:
            places.add(place)
            words.append(word)
    return words


WORDS = _words()


class HashingEncoder:
    """Counts words in the places to which they hash. Knows the contract's words only roughly, which is all that is needed."""

    name = "stub/hashing"
    dimensions = DIMENSIONS
    fingerprint = f"hashing-{DIMENSIONS}"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), DIMENSIONS), 0.001, np.float32)
        for row, text in enumerate(texts):
            for word in "".join(c if c.isalnum() else " " for c in text.lower()).split():
                vectors[row, crc32(word.encode()) % DIMENSIONS] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def exists(tool: int, n: int) -> bool:
    """Whether the n-th state has that tool: every publish adds some and removes some."""
    return (tool * 7 + n * 3) % 11 != 0


def description(tool: int, n: int) -> str:
    """The tool's description in the n-th state: that of every fifth tool is another one in the next."""
    return f"Handle {WORDS[tool]}. Revision r{(n + tool) // 5}."


def identity(tool: int) -> str:
    """The id under which the tool is published."""
    return f"kit/server{tool % 4}/tool_{WORDS[tool]}"


def content(n: int) -> dict[str, str]:
    """The n-th state: the description of every tool by its id."""
    return {identity(tool): description(tool, n) for tool in range(TOOLS) if exists(tool, n)}


def servers(n: int) -> dict[str, list[dict[str, Any]]]:
    """The n-th state as MCP servers answer it."""
    listed: dict[str, list[dict[str, Any]]] = {f"server{number}": [] for number in range(4)}
    for tool in range(TOOLS):
        if exists(tool, n):
            schema = {"type": "object", "properties": {"argument": {"type": "string"}}}
            record = {"name": f"tool_{WORDS[tool]}", "description": description(tool, n), "inputSchema": schema}
            listed[f"server{tool % 4}"].append(record)
    return listed
