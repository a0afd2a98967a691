"""Tokenization for the text search. Part of the table contract: every reader does the same.

A text is normalised to Unicode NFKC; identifiers are split (`getRecord_v2` -> get record v2);
words are case-folded and reduced to their Snowball stems (`deleting` and `deleted` -> delet) in the
language of the index. Scripts written without blanks (Han, kana, Hangul, Thai and their neighbours)
give the pairs of neighbouring characters, and Han, whose characters are words or halves of words,
also the single characters.

The tables hold all words. Stop words are removed only from the request, so a change of the list
does not change a table, and a request made of stop words alone still has results. Recall@5 by BM25
alone, with plural endings removed / stems / stems without stop words: mean over seven tasks of the
development halves of papers .565 / .577 / .624, over eight real catalogs .513 / .545 / .571."""

import json
import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from threading import Lock
from typing import Any

MAX_TOKEN = 40
"""Maximum length of a token in characters. Longer words (hashes, data) are cut, since Lance's
tokenizer would drop them."""
DEFAULT_LANGUAGE = "english"
NO_LANGUAGE = "none"
"""The language setting for no stemming and no stop words."""
LANGUAGES = (
    *("arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "english"),
    *("esperanto", "estonian", "finnish", "french", "german", "greek", "hindi", "hungarian"),
    *("indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "persian", "polish"),
    *("portuguese", "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil"),
    *("turkish", "yiddish", NO_LANGUAGE),
)
"""Valid languages of an index: those of Snowball 3.1, and `none`."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    f"{_HAN}"
    "\uac00-\ud7af\u1100-\u11ff"  # Hangul
)
_MARKS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Accents and vowel signs. Python's `\\w` does not match them, so Hindi words would be split."""
_WORD = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED_START = re.compile(rf"[{_UNSPACED}]")
_HAN_CHARACTER = re.compile(rf"[{_HAN}]")
_STEMMING = Lock()
"""Held while stemming: a Snowball stemmer is not thread-safe."""


def identifier_words(name: str) -> str:
    """Return an identifier as words: `getRecord_v2` gives `get Record v2`, `users.list-all` gives
    `users list all`.
    """
    return " ".join(re.sub(r"[_\W]+", " ", _CAMEL.sub(" ", name)).split())


def tokenize(text: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Return the tokens of a text in order, with repetitions; none for a blank text. The column
    `tokens` of an index in that language holds these.
    Example:
        >>> tokenize("List all files, getRecord_v2")
        ['list', 'all', 'file', 'get', 'record', 'v2']
    """
    return [_stem(word, language) for word in _plain_words(text, characters=True)]


def query_words(request: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Return the distinct tokens to search for a request: without stop words, unless it has no
    other words.
    Example:
        >>> query_words("please show me how to turn it off")
        ['pleas', 'show', 'turn', 'off']
        >>> query_words("what is it?")
        ['what', 'is', 'it']
    """
    words = _plain_words(request, characters=True)
    ignored_words = stop_words(language)
    searched_words = [word for word in words if word not in ignored_words] or words
    return list(dict.fromkeys(_stem(word, language) for word in searched_words))


def singular_words(text: str) -> list[str]:
    """Return the words of a text with English plurals as singulars (Harman's S stemmer, "How
    effective is suffixing?", 1991): for comparing texts, not for searching an index.
    """
    return [_singular(word) for word in _plain_words(text)]


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language in lower case; none if `stop_words.json` has no list for
    it. Words that distinguish tools (`off`, `up`, `all`, `not`) are not stop words.
    """
    return frozenset(_stop_lists().get(language, ()))


def stop_word_languages() -> tuple[str, ...]:
    """Return the languages that have a list of stop words."""
    return tuple(_stop_lists())


@cache
def _stop_lists() -> dict[str, tuple[str, ...]]:
    text = files("pegboard.text").joinpath("stop_words.json").read_text("utf-8")
    return {
        language: tuple(" ".join(lines).split()) for language, lines in json.loads(text).items()
    }


def _plain_words(text: str, *, characters: bool = False) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", text))):
        if not word.isascii() and _UNSPACED_START.match(word):
            words += [word[i : i + 2] for i in range(len(word) - 1)] if len(word) > 1 else [word]
            if characters and len(word) > 1:
                words += _HAN_CHARACTER.findall(word)
        else:
            words.append(word.casefold()[:MAX_TOKEN])
    return words


@lru_cache(maxsize=100_000)
def _stem(word: str, language: str) -> str:
    if language == NO_LANGUAGE:
        return word
    with _STEMMING:
        return _stemmer(language).stemWord(word) or word


@cache
def _stemmer(language: str) -> Any:
    from Stemmer import Stemmer

    return Stemmer(language, 0)  # without its own cache


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s"):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith(("us", "ss")):
        return word
    return word[:-1]
