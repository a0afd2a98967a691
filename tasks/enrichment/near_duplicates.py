"""Near-duplicate texts, by their words."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from math import ceil

from pegboard.search.text import singular_words

NEAR = 0.9
"""Minimum Jaccard similarity of near-duplicates: one word in ten differs."""
_TOLERANCE = 1e-9


@lru_cache(maxsize=256)
def words_in(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case; cached, since every check needs them."""
    return tuple(re.findall(r"\w+", text.casefold()))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text; in scripts without blanks, pairs of characters."""
    return frozenset(words_in(text) if text.isascii() else singular_words(text))


def near_duplicate(words: frozenset[str], others: Iterable[frozenset[str]]) -> bool:
    """Return whether a set of words is nearly that of one of the others."""
    return any(_jaccard(words, other) >= NEAR for other in others)


def _jaccard(words: frozenset[str], other: frozenset[str]) -> float:
    # Sets of very different sizes cannot be near: cheaper than to count.
    if not words or min(len(words), len(other)) < NEAR * max(len(words), len(other)):
        return 0.0
    common = len(words & other)
    return common / (len(words) + len(other) - common)


class NearDuplicates:
    """An index of texts by their words, in which near-duplicates are found without comparing all.

    Example:
        >>> index = NearDuplicates(["a room for ten people", "book a room for ten people"])
        >>> index.near("a room for ten people please", 0.8)
        [(0, 0.8333333333333334)]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def near(self, text: str) -> list[tuple[int, float]]:
        """Return (number, similarity) of the near-duplicates, best first."""
        words = word_set(text)
        # Two sets that similar share one of these: all other words together are not enough.
        rarest = sorted(words, key=lambda word: (len(self._postings.get(word, ())), word))
        prefix = rarest[: len(words) - ceil(NEAR * len(words) - _TOLERANCE) + 1]
        numbers = {number for word in prefix for number in self._postings.get(word, ())}
        matches: list[tuple[int, float]] = []
        for number in numbers:
            other = self._sets[number]
            common = len(words & other)
            total = len(words) + len(other) - common
            if total and common / total >= NEAR - _TOLERANCE:
                matches.append((number, common / total))
        return sorted(matches, key=lambda match: (-match[1], match[0]))

    @cached_property
    def _sets(self) -> list[frozenset[str]]:
        return [word_set(text) for text in self._texts]

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        postings: dict[str, list[int]] = {}
        for number, words in enumerate(self._sets):
            for word in words:
                postings.setdefault(word, []).append(number)
        return postings
