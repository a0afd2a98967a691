"""Near-duplicate texts, by their words."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from math import ceil

from pegboard.text.words import singular_words

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
    return any(_are_near(words, other) for other in others)


def _are_near(words: frozenset[str], other: frozenset[str]) -> bool:
    # Sets of very different sizes cannot be near: cheaper than to count.
    if min(len(words), len(other)) < NEAR * max(len(words), len(other), 1) - _TOLERANCE:
        return False
    common = len(words & other)
    return common / (len(words) + len(other) - common) >= NEAR - _TOLERANCE


class NearDuplicates:
    """An index of texts by their words, in which near-duplicates are found without comparing all.

    Example:
        >>> index = NearDuplicates(["a room for ten people", "a taxi to the airport"])
        >>> index.near("A room, for ten people!")
        [0]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def near(self, text: str) -> list[int]:
        """Return the numbers of the near-duplicates, in order."""
        words = word_set(text)
        # Two sets that similar share one of these: all other words together are not enough.
        rarest = sorted(words, key=lambda word: (len(self._postings.get(word, ())), word))
        prefix = rarest[: len(words) - ceil(NEAR * len(words) - _TOLERANCE) + 1]
        numbers = {number for word in prefix for number in self._postings.get(word, ())}
        return sorted(number for number in numbers if _are_near(words, self._sets[number]))

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
