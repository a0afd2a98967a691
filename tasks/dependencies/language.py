"""English in the names and descriptions of tools: closed classes of words, and noun phrases.

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
"""Words of a noun phrase; of a longer one the last are kept, where English puts the main noun."""

_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def _word_class(name: str) -> frozenset[str]:
    """Return a class of `words.toml`, which says what each is."""
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
    """The words of a name before its verb, the verb, and its noun phrase: that after the verb, or
    where there is none (`before_verb`) that before it.
    """

    before: tuple[str, ...]
    verb: str
    phrase: tuple[str, ...]
    before_verb: bool = False


def words_of(text: str) -> tuple[str, ...]:
    """Split a text into words: plurals as singulars, abbreviations written out, endings that mean
    an id as `id`. The text search has words of its own, which need not be words at all.
    """
    # No word goes across a blank, and few of the pieces between blanks are new.
    return tuple(chain.from_iterable(map(_words_between_blanks, text.split())))


@lru_cache(maxsize=100_000)
def _words_between_blanks(text: str) -> tuple[str, ...]:
    text = re.sub(r"(?i)\bwi-fi\b", "wifi", unicodedata.normalize("NFKC", text))
    words = (singular(word.casefold()) for word in identifier_words(text).split())
    return tuple(sys.intern(_SAME.get(word, word)) for word in words)


def singular(word: str) -> str:
    """Return an English noun without its plural ending: repository of repositories."""
    if len(word) < 3 or not word.endswith("s") or word in _NO_PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4 and word not in _IE_PLURALS:
        return word[:-3] + "y"
    if word.endswith(_ES_PLURALS):
        return word[:-2]
    return word if word.endswith(("us", "ss", "is")) and word not in _IS_PLURALS else word[:-1]


def noun_phrase(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words up to the first preposition, without articles: (list,) of list of a file."""
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
    """Parse a tool's name. A name without a known verb is its own phrase."""
    words = words_of(name)
    forms = verb_forms()
    for at, word in enumerate(words):
        verb = forms.get(word, "return")
        if verb == "return":  # `return_book` returns nothing to its caller
            continue
        after = words[at + 1 :]
        sought = verb in SEEKING and after[:1] == ("for",)
        if (sought or not PREPOSITIONS.intersection(after[:1])) and (phrase := noun_phrase(after)):
            return ParsedName(words[:at], verb, phrase)
        # `issues_list_for_repo`, `users.list`: what is listed is said before.
        return ParsedName((), verb, noun_phrase(words[:at]), True)
    return ParsedName((), "", noun_phrase(words))


def has_plural(name: str, phrase: Sequence[str]) -> bool:
    """Whether the last word of this phrase stands in the name in the plural."""
    if not phrase:
        return False
    words = [word.casefold() for word in identifier_words(name).split()]
    plurals = [word for word in words if singular(word) != word]
    return phrase[-1] in {_SAME.get(singular(word), singular(word)) for word in plurals}


@cache
def verb_forms() -> dict[str, str]:
    """Map each form of the classes' verbs to the verb: `retrieves` and `retrieve` to retrieve."""
    forms: dict[str, str] = {}
    for verb in sorted(FINDING | READING | CREATING | MAKING | CHANGING | CHECKING):
        third = verb + ("es" if verb.endswith(("s", "h")) else "s")
        if verb.endswith("y"):
            third = verb[:-1] + "ies"
        for form in (verb, third):
            forms.update(dict.fromkeys(words_of(form), verb))
    return forms
