"""Removes secrets that are known by value, in every encoding in which they may be repeated.

A value is removed wherever it occurs literally. A value that cannot be a word is also matched by
its letters and digits alone: split over lines or by punctuation, in another case, escaped as in
JSON, a URL or HTML, as hexadecimal digits, or within the base64 of a longer text."""

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

HIDDEN = "***"
"""Replaces a secret in a message."""
SHORTEST_SECRET = 4
"""Minimum length of a secret in characters. Hiding shorter values (`1`, `on`) would garble
messages."""
SHORTEST_ENCODED = 8
"""Minimum number of letters and digits in a value, or in an encoding of it, that is matched by
these alone."""

_ESCAPE = re.compile(r"\\[nrtbf]")
"""Escaped line breaks and tabs of JSON; their letters are not part of the text."""
_IGNORED = re.compile(r"[\W_]")


class SecretValues:
    """A set of secrets to remove from texts.

    Args:
        values: the secrets; a mapping has the replacement of each.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._replacements: dict[str, str] = {}
        self._forms: list[tuple[str, str]] = []
        self._encodings: dict[str, str] = {}
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Add secrets; values shorter than `SHORTEST_SECRET` are ignored."""
        pairs = values.items() if isinstance(values, Mapping) else ((v, HIDDEN) for v in values)
        self._replacements |= {
            value: replacement for value, replacement in pairs if len(value) >= SHORTEST_SECRET
        }
        # Longest first, since a secret may begin with another.
        by_length = sorted(self._replacements.items(), key=lambda pair: len(pair[0]), reverse=True)
        self._forms = [
            (form, replacement)
            for value, replacement in by_length
            for form in (value, quote(value, safe=""))
        ]
        self._encodings = {
            encoding: replacement
            for value, replacement in by_length
            for encoding in _encodings(value)
        }

    def hide(self, text: str) -> str:
        """Return a text without the secrets."""
        for form, replacement in self._forms:
            text = text.replace(form, replacement)
        return _without(text, self._encodings) if self._encodings else text

    def hide_in(self, value: Any) -> Any:
        """Return a JSON value without the secrets, also in property names; the same object if it
        contains none.
        """
        if not self._replacements:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            items = {self.hide_in(name): self.hide_in(item) for name, item in value.items()}
            return value if items == value else items
        if isinstance(value, list | tuple):
            items = [self.hide_in(item) for item in value]
            return value if items == list(value) else type(value)(items)
        return value


@lru_cache(maxsize=1_000)
def _encodings(value: str) -> tuple[str, ...]:
    """Return the letters and digits of a value and of its encodings, the longest first."""
    if not _is_random(value):
        return ()
    encodings = (value, *_escaped(value), *_in_base64(value))
    squashed = {_squashed(text) for text in encodings}
    return tuple(
        sorted((text for text in squashed if len(text) >= SHORTEST_ENCODED), key=len, reverse=True)
    )


def _is_random(value: str) -> bool:
    """Return whether a value cannot be a word or a phrase, which are only hidden literally."""
    has_mixed_case = value.upper() != value != value.lower() and not value.istitle()
    return len(value) >= 20 or has_mixed_case or any(char.isdigit() for char in value)


def _escaped(value: str) -> Iterable[str]:
    data = value.encode("utf-8", "surrogatepass")
    yield json.dumps(value)
    yield quote(data, safe="")
    yield html.escape(value)
    yield data.hex()  # also found in a URL that escapes every character
    yield "".join(f"u{ord(char):04x}" for char in value)
    yield "".join(f"x{byte:02x}" for byte in data)
    yield "".join(f"{ord(char)}" for char in value)  # `&#116;`


def _in_base64(value: str) -> Iterable[str]:
    """Yield the base64 characters that encode only the value, for each offset modulo 3."""
    data = value.encode("utf-8", "surrogatepass")
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode("ascii")
        yield encoded[(8 * offset + 5) // 6 : 8 * (offset + len(data)) // 6]


def _squashed(text: str) -> str:
    return _IGNORED.sub("", _ESCAPE.sub("", text)).lower()


def _without(text: str, encodings: Mapping[str, str]) -> str:
    """Replace each encoding by its replacement."""
    squashed = _squashed(text)
    for encoding, replacement in encodings.items():
        if encoding in squashed:
            text = _spread(encoding).sub(lambda _, literal=replacement: literal, text)
    return text


@lru_cache(maxsize=1_000)
def _spread(encoding: str) -> re.Pattern[str]:
    """Return a pattern for letters and digits with any ignored characters between them."""
    ignored = rf"(?:(?-i:{_ESCAPE.pattern})|{_IGNORED.pattern})*+"
    return re.compile(ignored.join(map(re.escape, encoding)), re.IGNORECASE)
