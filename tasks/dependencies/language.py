"""Parse English names and descriptions of tools with word classes and noun phrases.

`get_stock_ticker` reads as the verb get and the noun phrase (stock, ticker)."""

import re
import sys
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from pegboard.text.words import identifier_words

MAX_PHRASE = 5
"""Largest number of words of a noun phrase. A longer one is cut at its start, since the main noun
is last in English."""

_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def _word_class(name: str) -> frozenset[str]:
    """Return a word class of `words.toml`, which describes each class."""
    return frozenset(_WORDS[name].split())


FINDING = _word_class("finding")
SEEKING = _word_class("seeking")
READING = _word_class("reading")
CREATING = _word_class("creating")
MAKING = _word_class("making")
CHANGING = _word_class("changing")
CHECKING = _word_class("checking")
FUNCTION_WORDS = _word_class("function_words")
PREPOSITIONS = _word_class("prepositions")
GENERIC = _word_class("generic")
_NO_PLURALS = _word_class("no_plurals")
_IE_PLURALS = _word_class("ie_plurals")
_IS_PLURALS = _word_class("is_plurals")
KEYS = _word_class("keys")
SEARCHED = _word_class("searched")
ROLES = _word_class("roles")
CONTEXT = _word_class("context")
WORLD = _word_class("world")
SECRETS = _word_class("secrets")
STATE_ENDINGS = _word_class("state_endings")
CONNECTION = _word_class("connection")

LOGIN = _word_class("login")
LOGIN_WORDS = LOGIN | _word_class("login_words")
ID_NOUNS = _word_class("id_nouns")
CALENDAR: dict[str, str] = _WORDS["calendar"]
_SAME: dict[str, str] = _WORDS["same"]
_ES_PLURALS = tuple(_WORDS["es_plurals"].split())


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A parsed name of a tool.

    Attributes:
        before: the words before the verb.
        verb: the verb; empty if there is none.
        phrase: the noun phrase after the verb, or the one before it if there is none after it.
        before_verb: whether the phrase is before the verb.
    """

    before: tuple[str, ...]
    verb: str
    phrase: tuple[str, ...]
    before_verb: bool = False


def words_of(text: str) -> tuple[str, ...]:
    """Split a text into words, with plurals as singulars, abbreviations expanded, and words for an
    id as `id`. The text search splits texts in another way, into stems.
    """
    # No word spans a space, and most of the pieces between spaces are cached.
    return tuple(chain.from_iterable(map(_words_between_spaces, text.split())))


@lru_cache(maxsize=100_000)
def _words_between_spaces(text: str) -> tuple[str, ...]:
    text = re.sub(r"(?i)\bwi-fi\b", "wifi", unicodedata.normalize("NFKC", text))
    words = (singular(word.casefold()) for word in identifier_words(text).split())
    return tuple(sys.intern(_SAME.get(word, word)) for word in words)


def singular(word: str) -> str:
    """Return an English noun in the singular: repository for repositories."""
    if len(word) < 3 or not word.endswith("s") or word in _NO_PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4 and word not in _IE_PLURALS:
        return word[:-3] + "y"
    if word.endswith(_ES_PLURALS):
        return word[:-2]
    return word if word.endswith(("us", "ss", "is")) and word not in _IS_PLURALS else word[:-1]


def noun_phrase(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words up to a preposition, without articles: (list,) for `list of a file`."""
    phrase: list[str] = []
    for word in words:
        if word not in FUNCTION_WORDS:
            phrase.append(word)
        elif phrase:
            break
    return tuple(phrase[-MAX_PHRASE:])


def parameter_phrase(name: str) -> tuple[str, ...]:
    """Return the noun phrase of a parameter's name, without numbers."""
    return noun_phrase([word for word in words_of(name) if not word.isdigit()])


@lru_cache(maxsize=20_000)
def parse_name(name: str) -> ParsedName:
    """Parse a tool's name. A name without a known verb is a noun phrase."""
    words = words_of(name)
    forms = verb_forms()
    for position, word in enumerate(words):
        verb = forms.get(word, "return")
        if verb == "return":  # `return_book` returns nothing to its caller.
            continue
        before = words[:position]
        after = words[position + 1 :]
        is_search_for = verb in SEEKING and after[:1] == ("for",)
        has_object = is_search_for or not PREPOSITIONS.intersection(after[:1])
        if has_object and (phrase := noun_phrase(after)):
            return ParsedName(before, verb, phrase)
        # In `issues_list_for_repo` and `users.list` the object is before the verb.
        return ParsedName((), verb, noun_phrase(before), True)
    return ParsedName((), "", noun_phrase(words))


def has_plural(name: str, phrase: Sequence[str]) -> bool:
    """Return whether the name has the last word of this phrase in the plural."""
    if not phrase:
        return False
    words = [word.casefold() for word in identifier_words(name).split()]
    plurals = [word for word in words if singular(word) != word]
    return phrase[-1] in {_SAME.get(singular(word), singular(word)) for word in plurals}


@cache
def verb_forms() -> dict[str, str]:
    """Return the verb of each verb form: `retrieve` for `retrieves` and `retrieve`."""
    forms: dict[str, str] = {}
    for verb in sorted(FINDING | READING | CREATING | MAKING | CHANGING | CHECKING):
        third_person = verb + ("es" if verb.endswith(("s", "h")) else "s")
        if verb.endswith("y"):
            third_person = verb[:-1] + "ies"
        for form in (verb, third_person):
            forms.update(dict.fromkeys(words_of(form), verb))
    return forms
