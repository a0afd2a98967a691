"""The language that a catalog is written in: by the script of its texts, and by their function
words. A text that has neither, as `GET /v2/users`, has no language.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from pegboard.text.words import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    NO_LANGUAGE,
    stop_word_languages,
    stop_words,
    tokenize,
)

SAMPLE = 100
"""Texts of a catalog that are looked at, evenly over all."""
MOST = 0.5
"""The share of the texts with a language above which a catalog, or an index, is in it."""
FEW = 0.2
"""The share of all texts up to which they say nothing of the others."""
CHARACTERS = 800
"""Of a text that are looked at."""
MIN_WORDS = 2
"""Different function words that a text has of its language."""
MIN_ASCII_WORDS = 3
"""The same for a text in ASCII, if the language is not English: parts of identifiers are function
words somewhere, as in `get_op_by_door` (Dutch) or `box.comments.no` (French, Portuguese)."""
CLEARER = 1.5
"""So many times as many function words as of English: some words are of several languages."""
KANA = ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")
WEIGHTS = {"LATIN": 0.5, **dict.fromkeys((*KANA, "CJK", "HANGUL"), 2.5)}
"""Of a letter, by script: half of a text in another script are often identifiers in Latin letters,
and a word of five letters has two characters of these.
"""
MULTILINGUAL = "fastembed/sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


def language_of(text: str) -> str | None:
    """Return the language of a text, in lower case: one with a list of stop words, `chinese`,
    `japanese` or `korean`, or the name of another script, such as `thai`; None if it has none.

    Example:
        >>> language_of("Sends a message to the members of a channel")
        'english'
        >>> language_of("Sendet eine Nachricht an die Mitglieder des Kanals")
        'german'
        >>> language_of("listCommits")
    """
    text = text[:CHARACTERS]
    scripts, weights = Counter(map(_script, text)), defaultdict[str, float](float)
    for script, count in scripts.items():
        weights["CJK" if script in KANA else script] += count * WEIGHTS.get(script, 1.0)
    weights.pop("", None)
    if not weights:
        return None
    script = max(weights, key=lambda name: (weights[name], name))
    if script == "CJK":
        return "japanese" if scripts.keys() & {*KANA} else "chinese"
    if script == "HANGUL":
        return "korean"
    return _by_function_words(text) or (None if script == "LATIN" else script.lower())


@dataclass(frozen=True, slots=True)
class IndexLanguages:
    """The languages of an index's texts.

    Attributes:
        counts: catalog -> language -> number of texts; None for texts that have no language.
    """

    counts: Mapping[str, Mapping[str | None, int]]

    @classmethod
    def of(cls, texts: Mapping[str, Sequence[str]]) -> "IndexLanguages":
        """Return the languages of the texts of each catalog, by at most `SAMPLE` of them, which
        count for all.
        """
        counts: dict[str, dict[str | None, int]] = {}
        for catalog, own in texts.items():
            step = -(-len(own) // SAMPLE)
            sample = Counter(map(language_of, own[:: max(step, 1)]))
            counts[catalog] = {name: count * step for name, count in sample.items()}
        return cls(counts)

    def understood(self, encoder: str) -> float:
        """Return the share of the texts that the encoder of that name may know the language of."""
        return round(self._share(lambda name: encoder_knows(encoder, name)), 3)

    def legible(self, encoder: str) -> float:
        """Return the share of the texts in a language that the encoder may know, or in letters that
        it knows: an English encoder sees names and kindred words of other languages in them.
        """
        return self._share(lambda name: encoder_knows(encoder, name) or _has_latin_letters(name))

    def advice(self, index: str, encoder: str, language: str) -> Iterable[str]:
        """Yield what to set where the encoder or the language of an index, which are given by
        their names, are not those of its texts.
        """
        languages = {catalog: main_language(own) for catalog, own in self.counts.items()}
        foreign = [
            f"'{catalog}' ({own.title()})"
            for catalog, own in languages.items()
            if not encoder_knows(encoder, own)
        ]
        if foreign:
            yield (
                f"index '{index}': {encoder} knows English only, and its vectors say "
                f"little of the tools of {', '.join(foreign)}. Take a multilingual encoder, such "
                f"as {MULTILINGUAL}, or a hosted one: docs/how-to/other-languages.md"
            )
        main = main_language(self._total())
        if main in LANGUAGES and language not in (main, NO_LANGUAGE):
            yield (
                f"index '{index}': most of its texts are in {main.title()}, but their words are "
                f'stemmed as {language.title()}. Set language = "{main}" under [[indexes]]'
            )

    def _share(self, fits: Callable[[str | None], bool]) -> float:
        total = self._total()
        return 1 - sum(total[name] for name in total if not fits(name)) / (total.total() or 1)

    def _total(self) -> Counter[str | None]:
        total: Counter[str | None] = Counter()
        for own in self.counts.values():
            total.update(own)
        return total


def main_language(counts: Mapping[str | None, int]) -> str:
    """Return the language of more than half of the texts that have one, if these are not few;
    English if there is none.
    """
    known = {name: count for name, count in counts.items() if name is not None}
    best = max(known, key=lambda name: (known[name], name), default=DEFAULT_LANGUAGE)
    enough = max(MOST * sum(known.values()), FEW * sum(counts.values()))
    return best if known.get(best, 0) > enough else DEFAULT_LANGUAGE


def encoder_knows(encoder: str, language: str | None) -> bool:
    """Return whether an encoder of that name may know the language: False only where it is known
    that it does not.
    """
    return language in (None, DEFAULT_LANGUAGE) or not knows_only_english(encoder)


def knows_only_english(name: str) -> bool:
    """Return whether the encoder of that name is known to be trained on English alone: the embedded
    one, and models whose names end in `-en` or a version of it.
    """
    return re.search(r"all-MiniLM-L6-v2|minilm-tools|-en(-v[0-9.]+)?$", name) is not None


def _has_latin_letters(language: str | None) -> bool:
    words = stop_words(language or "")
    return bool(words) and all(_script(word[0]) == "LATIN" for word in words)


@lru_cache(maxsize=20_000)
def _script(character: str) -> str:
    if not character.isalpha():
        return ""
    return unicodedata.name(character, "").split(" ", 1)[0]


def _by_function_words(text: str) -> str | None:
    counts: Counter[str] = Counter()
    different: Counter[str] = Counter()
    for word, count in Counter(tokenize(text, NO_LANGUAGE)).items():
        for language in _languages_by_word().get(word, ()):
            counts[language] += count
            # `a`, `o` and `z` are words of some languages, and letters of all.
            different[language] += language == DEFAULT_LANGUAGE or len(word) > 1 or word > "\x7f"
    best = max(counts, key=lambda language: (counts[language], language), default=DEFAULT_LANGUAGE)
    if counts[best] < CLEARER * counts[DEFAULT_LANGUAGE]:
        best = DEFAULT_LANGUAGE
    foreign_ascii = best != DEFAULT_LANGUAGE and text.isascii()
    return best if different[best] >= (MIN_ASCII_WORDS if foreign_ascii else MIN_WORDS) else None


@cache
def _languages_by_word() -> dict[str, list[str]]:
    languages: dict[str, list[str]] = {}
    for language in stop_word_languages():
        for word in stop_words(language):
            languages.setdefault(word, []).append(language)
    return languages
