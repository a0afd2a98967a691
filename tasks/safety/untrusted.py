"""What a catalog says is data, and some of it was written for the model that reads it: how that is
noticed, and shown as data.

Codes of what is suspicious in a tool:
    hidden-instructions   text addressed to a model: to forget its instructions, to call this tool
    before all others, to keep something from
                          the user; pseudo tags such as <IMPORTANT> and markers of chat templates
    invisible-unicode     characters that nobody sees and that no script or emoji there needs
    exfiltration          a request to send conversations, keys or files elsewhere, or to put them
    into an address or an argument
    credential            a value that looks like a credential

A code is a reason to look at a tool, not a verdict. The patterns were held against the benchmarks'
5,800 tools: an instruction on how to use the tool itself ("you must call this before
get_library_docs"), a tool that sends e-mail and an argument that takes a key are not suspicious.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.records import Tool
from pegboard.redaction import redact_credentials, takes_credential
from tasks.safety.patterns import EXFILTRATION, INSTRUCTIONS
from tasks.safety.text import has_invisible, visible

INSTRUCTS = "hidden-instructions"
INVISIBLE = "invisible-unicode"
EXFILTRATES = "exfiltration"
CREDENTIAL = "credential"
FLAGS = (CREDENTIAL, EXFILTRATES, INSTRUCTS, INVISIBLE)

_VALUES = ("default", "example", "examples", "const", "enum")
"""Keywords of a JSON Schema that hold values, which are told apart from words by the argument's
name.
"""
_KEYWORDS = frozenset(
    (
        *_VALUES,
        "type",
        "properties",
        "description",
        "title",
        "required",
        "items",
        "format",
        "anyOf",
        "minimum",
        "maximum",
    )
)
"""The usual keywords of a schema, which say nothing; a property of such a name says nothing either.
"""
_TYPES = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_BREAK = "\n\x00\n"
"""Between the strings of a tool: no pattern reaches over it."""


def flags_of(tool: Tool) -> tuple[str, ...]:
    """The codes of what is suspicious in anything that the catalog says of a tool, sorted."""
    said: list[Any] = [
        tool.name,
        tool.description,
        tool.input_schema,
        tool.output_schema,
        tool.annotations,
    ]
    texts = [text for value in (*said, tool.examples, tool.tags) for text in _strings(value, "")]
    return tuple(sorted(flags_of_text(_BREAK.join(texts))))


def flags_of_text(text: str) -> set[str]:
    """The codes of what is suspicious in a text."""
    flags: set[str] = set()
    if has_invisible(text):
        flags.add(INVISIBLE)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", visible(text.replace("\x00", "\n\n")))
    low = text.lower()
    if any(pattern.found(low) for pattern in INSTRUCTIONS):
        flags.add(INSTRUCTS)
    if any(pattern.found(low) for pattern in EXFILTRATION):
        flags.add(EXFILTRATES)
    if redact_credentials(text) != text:
        flags.add(CREDENTIAL)
    return flags


def _strings(value: Any, name: str) -> Iterator[str]:
    """Every string of a JSON value; a value that stands for an argument is led by the argument's
    name.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _KEYWORDS:
                yield str(key)
            owner = name if key in _VALUES else str(key)
            if takes_credential(owner):
                yield from (f"{owner}: {text}" for text in _strings(item, ""))
            elif not (key == "type" and isinstance(item, str) and item in _TYPES):
                yield from _strings(item, owner)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _strings(item, name)
