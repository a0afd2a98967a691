"""Noun phrases of names and descriptions, as words: `get_stock_ticker` is about (stock, ticker)."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from pegboard.search.text import tokenize
from tasks.dependencies.words import IDENTIFIERS, SMALL, verb_forms

LONGEST = 5
"""Words of a noun phrase; of a longer one the last are kept, because English puts the noun that
counts there.
"""
READ = 2_000
"""Characters of a description that are read; what a tool returns is said at the beginning."""


@dataclass(frozen=True, slots=True)
class NamedFor:
    """What a name says: the words before its verb (of whom), the verb, and the noun phrase after it
    (what).
    """

    before: tuple[str, ...]
    verb: str
    phrase: tuple[str, ...]


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in their order, plurals as singulars, endings that mean an id as `id`."""
    # No word goes across a blank, and most of what stands between blanks was there before: in all
    # texts of a board, few are new.
    return tuple(chain.from_iterable(map(_words_between_blanks, text.split())))


@lru_cache(maxsize=100_000)
def _words_between_blanks(text: str) -> tuple[str, ...]:
    words = tokenize(re.sub(r"(?i)\bwi-fi\b", "wifi", text))
    return tuple(sys.intern(IDENTIFIERS.get(word, word)) for word in words)


def noun_phrase(words: Sequence[str]) -> tuple[str, ...]:
    """The words up to the first preposition, without articles: (list, of, file) begins with the
    phrase (list,).
    """
    phrase: list[str] = []
    for word in words:
        if word in SMALL:
            if phrase:
                break
        else:
            phrase.append(word)
    return tuple(phrase[-LONGEST:])


def parameter_phrase(name: str) -> tuple[str, ...]:
    """The noun phrase of a parameter's name, numbers left out; `date_of_birth` is a birth date."""
    words = [word for word in words_of(name) if not word.isdigit()]
    if "of" in words[1:-1]:
        at = words.index("of", 1)
        words = words[at + 1 :] + words[:at]
    return noun_phrase(words)


@lru_cache(maxsize=20_000)
def name_phrase(name: str) -> NamedFor:
    """What a tool's name says. A name without a known verb is its own phrase."""
    words = words_of(name)
    forms = verb_forms()
    for at, word in enumerate(words):
        if (
            word in forms and forms[word] != "return"
        ):  # `return_book` gives nothing back to its caller
            after = words[at + 1 :]
            if forms[word] == "convert" and "to" in after:
                after = after[after.index("to") + 1 :]
            return NamedFor(words[:at], forms[word], _joined(after))
    return NamedFor((), "", _joined(words))


def _joined(words: Sequence[str]) -> tuple[str, ...]:
    """The noun phrase of a name, in which `and` joins what stands before one noun: the news of
    religion and politics.
    """
    return noun_phrase([word for word in words if word not in {"and", "or"}])


def first_verb(description: str) -> str:
    """The verb with which a description begins (`Retrieves the ...`), or nothing."""
    words = words_of(description[:READ])[:3]
    return next((verb_forms()[word] for word in words if word in verb_forms()), "")


_RETURNS = re.compile(
    r"(?i)\b(?:returns?|returning|retrieves?|retrieving|fetch(?:es|ing)?|gets?|provides?|outputs?|yields?|reports?|obtains?|shows?)\s+"
)
_SUCH_AS = re.compile(r"(?i)\b(?:such as|including|includes?|e\.g\.,?|containing|like)\s+")
_STOPS = re.compile(r"[.;:()\[\]\n]|\s-\s")
_PARTS = re.compile(r",|\band\b|\bor\b|\balong with\b|\bas well as\b")


def returned_phrases(description: str) -> Iterator[tuple[str, ...]]:
    """The noun phrases that a description says are returned: after verbs such as `returns`, and
    what these include (`such as ...`).
    """
    text = description[:READ]
    for found in _RETURNS.finditer(text):
        rest = _STOPS.split(text[found.end() :], maxsplit=1)[0]
        head, *more = _SUCH_AS.split(rest, maxsplit=1)
        for part in _PARTS.split(head)[:3]:
            if phrase := noun_phrase(words_of(part)):
                yield phrase
        for part in _PARTS.split(more[0])[:8] if more else ():
            if phrase := noun_phrase(words_of(part)):
                yield phrase
