"""Which of many sets of words are within a given one, without a look at all of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class WordSets(Generic[T]):
    """Things by their words. Each is kept under the rarest of its words alone, so that a look-up
    costs what the words of the question have under them, and words that most sets share cost
    nothing.

    Example:
        >>> sets = WordSets([({"order"}, 1), ({"order", "draft"}, 2), ({"cart"}, 3)])
        >>> sorted(sets.within({"an", "order", "of", "a", "cart"}))
        [1, 3]
    """

    def __init__(self, things: Iterable[tuple[Iterable[str], T]]) -> None:
        listed = [(frozenset(words), thing) for words, thing in things]
        counts = Counter(word for words, _ in listed for word in words)
        self._by_rarest: dict[str, list[tuple[frozenset[str], T]]] = defaultdict(list)
        self._wordless = [thing for words, thing in listed if not words]
        for words, thing in listed:
            if words:
                self._by_rarest[min(words, key=lambda word: (counts[word], word))].append(
                    (words, thing)
                )

    def __bool__(self) -> bool:
        return bool(self._by_rarest or self._wordless)

    def within(self, words: frozenset[str] | set[str]) -> Iterator[T]:
        """The things whose words are all among these, in no order that means anything."""
        yield from self._wordless
        for word in self._by_rarest.keys() & words:
            for needed, thing in self._by_rarest[word]:
                if needed <= words:
                    yield thing
