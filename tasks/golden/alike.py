"""Texts that are nearly the same by their words, found among many without comparing each with
each.
"""

from collections.abc import Sequence
from functools import cached_property
from math import ceil

from tasks.enrichment.reply_checks import word_set

NEAR = 0.9
"""Share of the words of two texts, counted once, that both have, from which on they are nearly the
same: one word in ten differs.
"""

EQUAL = 1e-9
"""Shares that differ by less are the same."""


class AlikeTexts:
    """Texts by their words.

    Example:
        >>> AlikeTexts(["a room for ten people", "book a room for ten people"]).near("a room for ten
        people please", 0.8) [(0, 0.8333333333333334)]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def near(self, text: str, least: float = NEAR) -> list[tuple[int, float]]:
        """The numbers of the texts that share at least so much of all words with one, and how much,
        the most first.
        """
        words = word_set(text)
        # Two sets as alike as that share one of these: all other words together would not be
        # enough.
        rarest = sorted(words, key=lambda word: (len(self._postings.get(word, ())), word))
        looked_at = rarest[: len(words) - ceil(least * len(words) - EQUAL) + 1]
        numbers = {number for word in looked_at for number in self._postings.get(word, ())}
        found: list[tuple[int, float]] = []
        for number in numbers:
            other = self._sets[number]
            common = len(words & other)
            total = len(words) + len(other) - common
            if total and common / total >= least - EQUAL:
                found.append((number, common / total))
        return sorted(found, key=lambda one: (-one[1], one[0]))

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
