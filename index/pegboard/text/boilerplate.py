"""Sentences that many tools of one catalog share, such as "Anyone with read access can use this
endpoint." They do not distinguish tools and displace text that does, so documents omit them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pegboard.canonical import digest
from pegboard.records import Tool
from pegboard.text.plain_text import sentences

MOST_TOOLS = 5
"""Largest number of a catalog's tools in which a sentence never counts as boilerplate."""
MOST_SHARE = 0.02
"""Largest share of a catalog's tools in which a sentence never counts as boilerplate."""


def sentence_key(sentence: str) -> str:
    """Return a short digest of a sentence."""
    return digest(sentence)[:16]


def sentence_keys(tool: Tool) -> frozenset[str]:
    """Return the keys of all sentences in the descriptions of a tool and of its arguments."""
    texts = (tool.description, *argument_descriptions(tool.input_schema).values())
    return frozenset(sentence_key(sentence) for text in texts for sentence in sentences(text))


def most_tools(tools: int) -> float:
    """Return the number of tools above which a sentence is boilerplate.

    Args:
        tools: the number of tools of the catalog.
    """
    return max(MOST_TOOLS, MOST_SHARE * tools)


def boilerplate(tools: Iterable[Tool]) -> frozenset[str]:
    """Return the keys of the boilerplate sentences of a catalog.

    Args:
        tools: all tools of one catalog.
    """
    keys = [sentence_keys(tool) for tool in tools]
    counts = Counter(key for tool_keys in keys for key in tool_keys)
    return frozenset(key for key, count in counts.items() if count > most_tools(len(keys)))


def argument_descriptions(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the description of each argument by its name; an empty text if it has none."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    descriptions: dict[str, str] = {}
    for name, spec in properties.items():
        text = spec.get("description") if isinstance(spec, Mapping) else None
        descriptions[str(name)] = text if isinstance(text, str) else ""
    return descriptions
