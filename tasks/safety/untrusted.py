"""Catalog text is untrusted data: flag suspicious text, clean it, and fence it in prompts.

A flag starts with a code. `hidden-instructions` and `exfiltration` are followed by a colon and what
the text asks for:

- `hidden-instructions`: text addressed to a model, which tells it to ignore its instructions, to
  call this tool before or instead of others, or to hide something from the user; pseudo tags such
  as <IMPORTANT>, markers of chat templates, and comments that a page does not show. A classifier
  (`hostile.py`) covers some forty languages, and also look-alike letters, leet, base64 and other
  disguises (`readings.py`).
- `exfiltration`: a request to send conversations, keys or files elsewhere, or to put them into an
  address or an argument.
- `invisible-unicode`: invisible characters that no script or emoji in the text needs. They can
  carry text that only a model reads, split the words that a check matches, or reorder a text.
- `credential`: a value that looks like a credential (`pegboard.text.redaction`).

A flag is a reason to review a tool, not a verdict. An instruction on how to use the tool itself
("you must call this before get_library_docs"), a tool that sends e-mail and an argument that takes
a key are not suspicious."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pegboard.llm import prompts
from pegboard.records import Tool
from pegboard.text.redaction import redact_credentials, takes_credential
from tasks.safety.hostile import hostile_reasons
from tasks.safety.readings import readings

INVISIBLE = "invisible-unicode"
CREDENTIAL = "credential"

_VALUES = ("default", "example", "examples", "const", "enum")
"""Keywords of a JSON Schema that contain values of the argument."""
_KEYWORDS = frozenset(_VALUES) | {
    *("type", "properties", "description", "title", "required", "items", "format", "anyOf"),
    *("minimum", "maximum"),
}
"""Common keywords of a schema. They are not checked, and neither are properties named like them."""
_TYPES = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
MAX_CACHED_TEXT = 1_000
"""Largest number of characters of a text whose flags are cached."""

_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_UNSEEN = (
    # soft hyphen, joiners and selectors of single scripts
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # zero width, marks and embeddings of direction
    # Hangul fillers, variation selectors, interlinear marks
    "\u3164\uffa0\ufe00-\ufe0f\ufff9-\ufffb"
    # musical formatting; tag characters and more selectors
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_REMOVED = re.compile(f"[{_CONTROL}{_UNSEEN}\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_SUSPICIOUS = re.compile(
    "[\u180e\u200b-\u200d\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\u3164\uffa0\U000e0000-\U000e007f]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}"
)
_LEGITIMATE = re.compile(
    # the flags of England, Scotland, Wales
    "\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f"
    "|(?<=[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])"  # emoji and their sequences
    "(?:[\ufe0e\ufe0f](?:\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff]))?|\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff]))"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # keycaps
    "|(?<=[\u0600-\u07ff\u08a0-\u0dff\u1000-\u109f\u1780-\u18af])[\u200c\u200d](?=[\u0600-\u07ff\u08a0-\u0dff\u1000-\u109f\u1780-\u18af]|\\s|$)"
    # breaks between words
    "|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b(?=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"
    "|(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\ufe00-\ufe02\U000e0100-\U000e01ef](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_OVERRIDE = re.compile("[\u202d\u202e]")
_MARKS_OF_DIRECTION = re.compile("[\u200e\u200f\u061c\u202a-\u202c\u2066-\u2069]")


def flags_of(tool: Tool) -> tuple[str, ...]:
    """Return the sorted flags of what is suspicious in a tool's texts."""
    flags = (
        _cached_flags_of_text(text) if len(text) <= MAX_CACHED_TEXT else flags_of_text(text)
        for text in texts_of(tool)
    )
    return tuple(sorted(frozenset().union(*flags)))


def texts_of(tool: Tool) -> list[str]:
    """Return the distinct texts of a tool, including those of its schemas."""
    values: list[Any] = [tool.name, tool.description, tool.annotations]
    values += [tool.input_schema, tool.output_schema, tool.examples, tool.tags]
    for dependency in tool.dependencies:
        values += [dependency.tool, dependency.reason]
    return list(dict.fromkeys(text for value in values for text in strings_of(value)))


def flags_of_text(text: str) -> frozenset[str]:
    """Return the flags of what is suspicious in a text."""
    flags: set[str] = set()
    if has_invisible(text):
        flags.add(INVISIBLE)
    text = comparable(text)
    for number, reading in enumerate(readings(text)):
        flags |= hostile_reasons(reading, disguised=number > 0)
    if redact_credentials(text) != text:
        flags.add(CREDENTIAL)
    return frozenset(flags)


def comparable(text: str) -> str:
    """Return the visible part of a text in NFKC, the input of `readings`."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", visible(text.replace("\x00", "\n\n")))


_cached_flags_of_text = lru_cache(maxsize=20_000)(flags_of_text)
"""`flags_of_text` with a cache: tools of one API share texts. The schemas of 450 tools were 78 MB
of text, and 0.6 MB without repeated texts."""


def strings_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield every string of a JSON value. A value of an argument that takes a credential has the
    argument's name before it.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _KEYWORDS:
                yield str(key)
            owner = name if key in _VALUES else str(key)
            if takes_credential(owner):
                yield from (f"{owner}: {text}" for text in strings_of(item, ""))
            elif not (key == "type" and isinstance(item, str) and item in _TYPES):
                yield from strings_of(item, owner)
    elif isinstance(value, Sequence):
        for item in value:
            yield from strings_of(item, name)


def has_invisible(text: str) -> bool:
    """Return whether the text has invisible characters that no script or emoji in it needs."""
    if text.isascii() or not _SUSPICIOUS.search(text):
        return False
    text = _LEGITIMATE.sub("", text).removeprefix("\ufeff")
    if _RIGHT_TO_LEFT.search(text) and not _OVERRIDE.search(text):
        text = _MARKS_OF_DIRECTION.sub("", text)
    return _SUSPICIOUS.search(text) is not None


def visible(text: str) -> str:
    """Return the text in NFC without invisible characters, and without control characters except
    line breaks and tabs.
    """
    if text.isascii() and text.isprintable():
        return text
    text = re.sub("\r\n?|\x85|\u2028|\u2029", "\n", text)
    legitimate = iter(_LEGITIMATE.findall(text))
    pieces = (_REMOVED.sub("", piece) for piece in _LEGITIMATE.split(text))
    joined = "".join(piece + next(legitimate, "") for piece in pieces)
    return unicodedata.normalize("NFC", joined)


def clean(value: Any) -> Any:
    """Return a JSON value with invisible characters and credentials removed from its strings and
    keys.
    """
    return prompts.cleaned(value, _clean_text)


def fence_untrusted(label: str, value: Any) -> str:
    """Return a cleaned JSON value, fenced for a prompt: the data cannot close the fence."""
    return prompts.fenced(label, value, _clean_text)


def _clean_text(text: str) -> str:
    return redact_credentials(visible(text))
