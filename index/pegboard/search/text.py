"""Words of a text, as the text search of a board counts them. Part of the table contract: every
reader does the same.

A text is brought to Unicode form NFKC; identifiers are taken apart (`getRecord_v2` -> get record
v2); words are folded to lower case, and an English plural loses its ending (Harman's S stemmer,
"How effective is suffixing?", 1991). Scripts that are written without blanks (Han, kana, Hangul,
Thai and their neighbours) give the pairs of neighbouring characters."""

import re
import unicodedata

MAX_TOKEN = 40
"""Characters; longer words (hashes, data) are cut, as Lance's tokenizer would drop them."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af\u1100-\u11ff"  # Hangul
)
_MARKS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Accents and vowel signs, which Python's `\\w` leaves out: without them a Hindi word falls to
pieces.
"""
_WORD = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])")


def identifier_words(name: str) -> str:
    """A true name as words: `getRecord_v2` is `get Record v2`, `users.list-all` is `users list
    all`.
    """
    return " ".join(re.sub(r"[_\W]+", " ", _CAMEL.sub(" ", name)).split())


def tokenize(text: str) -> list[str]:
    """The words of a text in their order, repeated as often as they stand there; none for a blank
    text.

    Example:
        >>> tokenize("List all files, getRecord_v2")
        ['list', 'all', 'file', 'get', 'record', 'v2']
    """
    tokens: list[str] = []
    for word in _WORD.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", text))):
        if not word.isascii() and re.match(rf"[{_UNSPACED}]", word):
            tokens += [word[i : i + 2] for i in range(len(word) - 1)] if len(word) > 1 else [word]
        else:
            tokens.append(_singular(word.casefold())[:MAX_TOKEN])
    return tokens


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
