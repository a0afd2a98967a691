"""Checks of single texts of a reply: refusals, marks of the prompt, language, names of tools."""

import re
from collections.abc import Container, Iterable
from functools import cache, lru_cache
from pathlib import Path

from pegboard.languages import language_of
from pegboard.search.text import stop_word_languages
from tasks.enrichment.near_duplicates import words_in
from tasks.enrichment.products import REPLIES, ArgumentNote, Avoid
from tasks.enrichment.prompts import LANGUAGES

MIN_LANGUAGE_CHARACTERS = 80
"""In shorter texts identifiers and names weigh too much to tell the language."""
REFUSALS = Path(__file__).with_name("refusals.txt")
"""How refusals begin, one a line, in lower case."""
_ALIKE = ({"danish", "norwegian"}, {"spanish", "portuguese", "italian"})
"""Languages whose short texts share most function words."""
_MARKS = re.compile(r"<data label=|</data>|\\u003c|\{%|\[credential\]|\[cut\]|\{\{ *\w+ *\}\}")
"""Markup around data and values in a prompt."""

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*")
_PARTS = re.compile(r"[.-]")
_SNAKE = re.compile(r"[A-Za-z0-9]+_[A-Za-z0-9_]*[A-Za-z0-9]")
_CAMEL = re.compile(r"[a-z]{2}[a-z0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z][a-z]+(?:[A-Z][a-z0-9]*){2,}")
"""`getWeather` and `AirQualityForecast`; two capitals alone may be a brand (`GitHub`, `iPhone`)."""
_KEBAB = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+){2,}")
"""Two hyphens and more: with one, `check-in` would be the name of a tool in every second hotel."""
_DOTTED = re.compile(r"[A-Za-z]\w+(?:\.[A-Za-z]\w+)+")


def is_refusal(text: str) -> bool:
    """Return whether a text begins like a refusal; "I am sorry for being late" does not."""
    return text.strip().casefold().replace("’", "'").startswith(_refusals())


def copies_prompt(text: str, own: str = "") -> bool:
    """Return whether a text holds a mark of a prompt, or is what a field is described by.

    Args:
        own: the catalog's own text, which may hold such marks.
    """
    marks = set(_MARKS.findall(text))
    return not marks <= set(_MARKS.findall(own)) or normalised(text) in _field_descriptions()


def normalised(text: str) -> str:
    """Return a text without case and punctuation."""
    return " ".join(words_in(text))


def wrong_language(text: str, code: str | None, own: str) -> bool:
    """Return whether a text is clearly not in the requested language.

    Args:
        code: the ISO 639-1 code of the requested language; None means that of `own`.
        own: the catalog's own text.
    """
    if len(text) < MIN_LANGUAGE_CHARACTERS:
        return False
    if code is not None:
        expected = LANGUAGES.get(code, code).lower()
        if expected not in stop_word_languages():
            return False
    else:
        expected = language_of(own) if len(own) >= MIN_LANGUAGE_CHARACTERS else None
    found = language_of(text)
    alike = any({found, expected} <= group for group in _ALIKE)
    return None not in (found, expected) and found != expected and not alike


def is_identifier(name: str) -> bool:
    """Return whether a name joins several words as identifiers do, and so is no chance phrase."""
    return any(form.fullmatch(name) for form in (_SNAKE, _CAMEL, _KEBAB, _DOTTED))


class ToolNameMatcher:
    """The tool names of a catalog that are identifiers, to be found in texts."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_folded(name) for name in names if is_identifier(name))

    def find(self, text: str, allowed: Container[str] = ()) -> str | None:
        """Return the first tool name in the text, as written there, that is not allowed."""
        for token in filter(_may_be_identifier, _TOKEN.findall(text)):
            for candidate in dict.fromkeys((token, token.replace(".", "_"), *_PARTS.split(token))):
                if (
                    _folded(candidate) in self._names
                    and candidate not in allowed
                    and token not in allowed
                ):
                    return candidate
        return None


def _may_be_identifier(token: str) -> bool:
    return any(mark in token for mark in "_-.") or not (token.islower() or token.istitle())


def _folded(name: str) -> str:
    """Case means nothing in `get_weather`, and everything in `getWeather`."""
    return name.lower() if any(mark in name for mark in "_-.") else name


@cache
def _refusals() -> tuple[str, ...]:
    return tuple(filter(None, REFUSALS.read_text("utf-8").splitlines()))


@lru_cache(maxsize=1)
def _field_descriptions() -> frozenset[str]:
    """The descriptions of schema fields, which some models return instead of a value."""
    return frozenset(
        normalised(field.description or "")
        for reply in (*REPLIES.values(), Avoid, ArgumentNote)
        for field in reply.model_fields.values()
    )
