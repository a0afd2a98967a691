"""Sentences that many tools of one catalog share, such as "Anyone with read access can use this
endpoint." They tell no tool from another and crowd out what does, so documents leave them out."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.canonical import digest
from pegboard.records import Tool
from pegboard.text.plain_text import sentences

MOST_TOOLS = 5
MOST_SHARE = 0.02
"""A sentence in more tools of a catalog than both the number and the share is boilerplate."""


def sentence_key(sentence: str) -> str:
    """Return the key by which equal sentences are counted."""
    return digest(sentence)[:16]


def sentence_keys(tool: Tool) -> frozenset[str]:
    """Return the keys of all sentences of a tool's description and of its arguments'."""
    texts = (tool.description, *argument_descriptions(tool.input_schema).values())
    return frozenset(sentence_key(sentence) for text in texts for sentence in sentences(text))


def most_tools(tools: int) -> float:
    """Return in how many of a catalog's tools a sentence may stand without being boilerplate."""
    return max(MOST_TOOLS, MOST_SHARE * tools)


def boilerplate(tools: Iterable[Tool]) -> frozenset[str]:
    """Return the keys of the sentences that too many tools of a catalog share.

    Args:
        tools: all tools of one catalog.
    """
    keys = [sentence_keys(tool) for tool in tools]
    counts = Counter(key for tool_keys in keys for key in tool_keys)
    return frozenset(key for key, count in counts.items() if count > most_tools(len(keys)))


def argument_descriptions(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the name and the description of each argument; an empty one if it has none."""
    properties = schema.get("properties")
    described: dict[str, str] = {}
    for name, spec in properties.items() if isinstance(properties, Mapping) else ():
        text = spec.get("description") if isinstance(spec, Mapping) else None
        described[str(name)] = text if isinstance(text, str) else ""
    return described
