"""Texts of which everything can be seen, and their place in a prompt.

Characters that nobody sees can carry text that only a model reads (Unicode tag characters,
variation selectors), split the words that a check looks for, or show a text in another order than
it has. Some belong to a script or an emoji, and stay there."""

import html
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.redaction import redact_credentials

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


def has_invisible(text: str) -> bool:
    """Whether there are characters in it that nobody sees and that no script or emoji there
    needs.
    """
    if text.isascii() or not _SUSPICIOUS.search(text):
        return False
    text = _LEGITIMATE.sub("", text).removeprefix("\ufeff")
    if _RIGHT_TO_LEFT.search(text) and not _OVERRIDE.search(text):
        text = _MARKS_OF_DIRECTION.sub("", text)
    return _SUSPICIOUS.search(text) is not None


def visible(text: str) -> str:
    """The text without control characters (line breaks and tabs stay) and invisible ones, in
    Unicode form NFC.
    """
    if text.isascii() and text.isprintable():
        return text
    text = re.sub("\r\n?|\x85|\u2028|\u2029", "\n", text)
    kept = iter(_LEGITIMATE.findall(text))
    pieces = (_REMOVED.sub("", piece) for piece in _LEGITIMATE.split(text))
    joined = "".join(piece + next(kept, "") for piece in pieces)
    return unicodedata.normalize("NFC", joined)


def clean(value: Any) -> Any:
    """A JSON value whose strings, keys included, are visible and without credentials."""
    if isinstance(value, str):
        return redact_credentials(visible(value))
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [clean(item) for item in value]
    return value


def fenced(label: str, value: Any) -> str:
    """A JSON value as a prompt shows it: data that cannot close its own fence, visible and without
    credentials.
    """
    text = json.dumps(clean(value), ensure_ascii=False, default=str).replace("<", "\\u003c")
    return f'<data label="{html.escape(label)}">\n{text}\n</data>'
