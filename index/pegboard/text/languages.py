"""Language detection for texts and catalogs, by script and by function words. A text without
function words, such as `GET /v2/users`, has no language.
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
"""Maximum number of texts examined per catalog, evenly spaced."""
MOST = 0.5
"""A main language needs more than this share of the texts that have a language."""
FEW = 0.2
"""A main language needs more than this share of all texts."""
CHARACTERS = 800
"""Number of characters examined per text."""
MIN_WORDS = 2
"""Minimum number of different function words that a text has in its language."""
MIN_ASCII_WORDS = 3
"""Minimum number of different function words for an ASCII text in another language than English:
parts of identifiers are function words of some languages, as in `get_op_by_door` (Dutch) or
`box.comments.no` (French, Portuguese)."""
CLEARER = 1.5
"""Minimum ratio of a language's function words to those of English: languages share some words."""
KANA = ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")
WEIGHTS = {"LATIN": 0.5, **dict.fromkeys((*KANA, "CJK", "HANGUL"), 2.5)}
"""Weight of a letter by script. Latin letters weigh less, since half of a text in another script
is often identifiers; East Asian characters weigh more, since a word of five letters has about two
of them.
"""
MULTILINGUAL = "fastembed/sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


def language_of(text: str) -> str | None:
    """Return the language of a text in lower case: a language with a list of stop words, `chinese`,
    `japanese` or `korean`, or the name of another script, such as `thai`; None if none is detected.

    Example:
        >>> language_of("Sends a message to the members of a channel")
        'english'
        >>> language_of("Sendet eine Nachricht an die Mitglieder des Kanals")
        'german'
        >>> language_of("listCommits")
    """
    text = text[:CHARACTERS]
    scripts = Counter(map(_script, text))
    weights = defaultdict[str, float](float)
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
        """Detect the languages of each catalog's texts from a sample of at most `SAMPLE` texts.

        Args:
            texts: the texts of each catalog, by its name.
        """
        counts: dict[str, dict[str | None, int]] = {}
        for catalog, catalog_texts in texts.items():
            step = -(-len(catalog_texts) // SAMPLE)
            sample = Counter(map(language_of, catalog_texts[:: max(step, 1)]))
            counts[catalog] = {name: count * step for name, count in sample.items()}
        return cls(counts)

    def understood(self, encoder: str) -> float:
        """Return the share of the texts whose language the encoder of that name may know."""
        return round(self._share(lambda name: encoder_knows(encoder, name)), 3)

    def legible(self, encoder: str) -> float:
        """Return the share of the texts in a language that the encoder may know, or in Latin
        letters: an English encoder recognises names and cognates in those.
        """
        return self._share(lambda name: encoder_knows(encoder, name) or _has_latin_letters(name))

    def advice(self, index: str, encoder: str, language: str) -> Iterable[str]:
        """Yield a message for each setting of an index that does not fit the language of its texts.

        Args:
            encoder: the name of the index's encoder.
            language: the index's language.
        """
        languages = {catalog: main_language(counts) for catalog, counts in self.counts.items()}
        foreign = [
            f"'{catalog}' ({main.title()})"
            for catalog, main in languages.items()
            if not encoder_knows(encoder, main)
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
        for counts in self.counts.values():
            total.update(counts)
        return total


def main_language(counts: Mapping[str | None, int]) -> str:
    """Return the language of more than `MOST` of the texts that have one and of more than `FEW` of
    all texts; English if there is no such language.
    """
    detected = {name: count for name, count in counts.items() if name is not None}
    best = max(detected, key=lambda name: (detected[name], name), default=DEFAULT_LANGUAGE)
    threshold = max(MOST * sum(detected.values()), FEW * sum(counts.values()))
    return best if detected.get(best, 0) > threshold else DEFAULT_LANGUAGE


def encoder_knows(encoder: str, language: str | None) -> bool:
    """Return False if an encoder of that name is known not to support the language, else True."""
    return language in (None, DEFAULT_LANGUAGE) or not knows_only_english(encoder)


def knows_only_english(name: str) -> bool:
    """Return whether the encoder of that name is known to be trained on English alone: the embedded
    ones, and models whose names end in `-en`, with or without a version.
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
            # `a`, `o` and `z` are words in some languages, but letters in all of them.
            if language == DEFAULT_LANGUAGE or len(word) > 1 or word > "\x7f":
                different[language] += 1
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
