"""Catalog text is data, and some of it was written for the model that reads it: flag it, clean it,
and show it as data.

Flags of what is suspicious in a tool begin with a code; after the first two a colon follows and
what the text asks for:

- `hidden-instructions`: text addressed to a model: to forget its instructions, to call this tool
  before all others or in their place, to keep something from the user; pseudo tags such as
  <IMPORTANT>, markers of chat templates, and comments that a page does not show. A classifier
  (`hostile.py`) knows some forty languages, and also reads what look-alike letters, leet, base64
  and the like say (`readings.py`).
- `invisible-unicode`: invisible characters that no script or emoji there needs. They can carry text
  that only a model reads, split the words that a check looks for, or reorder a text.
- `exfiltration`: a request to send conversations, keys or files elsewhere, or to put them into an
  address or an argument.
- `credential`: a value that looks like a credential (`pegboard.text.redaction`).

A flag is a reason to look at a tool, not a verdict. An instruction on how to use the tool itself
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
"""Keywords of a JSON Schema that hold values of the argument."""
_KEYWORDS = frozenset(_VALUES) | {
    *("type", "properties", "description", "title", "required", "items", "format", "anyOf"),
    *("minimum", "maximum"),
}
"""Usual keywords of a schema, which are not checked; nor is a property of such a name."""
_TYPES = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
REPEATED = 1_000
"""Characters of a text whose flags are remembered."""

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
        _flags_of_repeated(text) if len(text) <= REPEATED else flags_of_text(text)
        for text in texts_of(tool)
    )
    return tuple(sorted(frozenset().union(*flags)))


def texts_of(tool: Tool) -> list[str]:
    """Return the different texts of a tool, those of its schemas included."""
    fields: list[Any] = [tool.name, tool.description, tool.annotations]
    fields += [tool.input_schema, tool.output_schema]
    needs = [text for need in tool.dependencies for text in (need.tool, need.reason)]
    lists = (tool.examples, tool.tags, needs)
    return list(dict.fromkeys(text for value in (*fields, *lists) for text in strings_of(value)))


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
    """Return what is visible of a text in NFKC, of which `readings` are made."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", visible(text.replace("\x00", "\n\n")))


_flags_of_repeated = lru_cache(maxsize=20_000)(flags_of_text)
"""Tools of one API share texts: schemas written out for each of 450 tools were 78 MB of text, and
0.6 MB without what repeats."""


def strings_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield every string of a JSON value, values of an argument after the argument's name."""
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
    """Whether the text has invisible characters that no script or emoji there needs."""
    if text.isascii() or not _SUSPICIOUS.search(text):
        return False
    text = _LEGITIMATE.sub("", text).removeprefix("\ufeff")
    if _RIGHT_TO_LEFT.search(text) and not _OVERRIDE.search(text):
        text = _MARKS_OF_DIRECTION.sub("", text)
    return _SUSPICIOUS.search(text) is not None


def visible(text: str) -> str:
    """Return the text in NFC without control (but line breaks, tabs) and invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    text = re.sub("\r\n?|\x85|\u2028|\u2029", "\n", text)
    kept = iter(_LEGITIMATE.findall(text))
    pieces = (_REMOVED.sub("", piece) for piece in _LEGITIMATE.split(text))
    joined = "".join(piece + next(kept, "") for piece in pieces)
    return unicodedata.normalize("NFC", joined)


def clean(value: Any) -> Any:
    """Return a JSON value whose strings, keys included, are visible and without credentials."""
    return prompts.cleaned(value, _clean_text)


def fence_untrusted(label: str, value: Any) -> str:
    """Return a cleaned JSON value as a prompt shows it: data that cannot close its own fence."""
    return prompts.fenced(label, value, _clean_text)


def _clean_text(text: str) -> str:
    return redact_credentials(visible(text))
