"""What the tools of a board provide, and the few of them that a parameter is compared with.

A noun that a few tools provide is compared with each of these. Of a noun that many provide, tools
are equal but for how it is said and for the words that their names share with the asker's: those
that share the rarest words are compared, and of equals no more than it takes to know that they are
too many to name one. So the work for a parameter is bounded, however many tools there are."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log

from tasks.dependencies.asked import Asked, Fit
from tasks.dependencies.provided import IDS, Known, Provided
from tasks.dependencies.subsets import WordSets
from tasks.dependencies.words import GENERIC, HERE, verb_forms

MOST_RIVALS = 3
"""Tools that provide the same thing equally well, above which none of them is named."""
FEW = 8
"""Tools that provide a noun, up to which each of them is compared."""
READ = 256
"""Tools that provide the same and share the same word with the asking one, up to which each is
compared until enough fit.
"""
VARIANTS = 64
"""Variants of a noun (`draft order`, `open order`) that one parameter is compared with, should it
explain more.
"""

Fits = Callable[[int | None, Provided], Fit | None]
"""How what the tool at a position provides fits, or without a position what any tool may provide;
None if it does not.
"""


def rarity_of(known: Sequence[Known]) -> Mapping[str, float]:
    """The information in nats of the words of names but verbs: in how few of the tools' names a
    word is.
    """
    counts: dict[str, int] = defaultdict(int)
    for one in known:
        for word in one.name - verb_forms().keys():
            counts[word] += 1
    return {word: log((1 + len(known)) / count) for word, count in counts.items()}


class Offers:
    """What tools provide, on shelves by the last words of its noun phrase. Tools are known by their
    positions in `known`.
    """

    def __init__(self, known: Sequence[Known], rarity: Mapping[str, float]) -> None:
        self._known, self._rarity = known, rarity
        self._shelves: dict[tuple[str, ...], _Shelf] = defaultdict(_Shelf)
        self._bare = {provided.bare for one in known for provided in one.provides}
        for at, one in enumerate(known):
            for provided in one.provides:
                for key in {
                    _key(provided.words),
                    *([provided.words[-1:]] if provided.here else ()),
                }:
                    self._shelves[key].add(at, provided)

    def has(self, bare: frozenset[str]) -> bool:
        """Whether any tool provides just this."""
        return bare in self._bare

    def fitting(
        self, asked: Asked, name: frozenset[str], tools: range, fits: Fits
    ) -> Iterator[tuple[int, Provided, Fit]]:
        """The positions of those of these tools that may fit best, what they provide and how it
        fits, shelf by shelf in their order.

        Args:
            name: the words of the asking tool's name.
            fits: is asked for a bounded number of tools.
        """
        for key in dict.fromkeys((_key(asked.words), asked.words[-1:])):
            if (shelf := self._shelves.get(key)) is None:
                continue
            rows = _between(shelf.tools, tools)
            if len(rows) > FEW:
                telling = (name - asked.bare) & self._rarity.keys()
                rarest = sorted(telling, key=lambda word: (-self._rarity[word], word))
                yield from shelf.narrowed(asked, rarest, rows, fits, self._known)
            else:
                for row in rows:
                    if fit := fits(shelf.tools[row], shelf.things[row]):
                        yield shelf.tools[row], shelf.things[row], fit


class _Shelf:
    """What is provided under one key, in rows that are sorted by the position of the tool."""

    def __init__(self) -> None:
        self.tools: list[int] = []
        self.things: list[Provided] = []
        self._variants: WordSets[_Variant] | None = None

    def add(self, tool: int, thing: Provided) -> None:
        self.tools.append(tool)
        self.things.append(thing)

    def narrowed(
        self, asked: Asked, rarest: Sequence[str], rows: range, fits: Fits, known: Sequence[Known]
    ) -> Iterator[tuple[int, Provided, Fit]]:
        """Of these rows those that fit and may be the best answers."""
        if self._variants is None:
            self._variants = self._sorted_out(known)
        within = self._variants.within(asked.bare | asked.around())
        may_fit = [one for one in within if fits(None, one.thing)]
        may_fit.sort(key=lambda one: (one.thing.bare != asked.bare, one.rows[0]))
        chosen = dict(found for one in may_fit[:VARIANTS] for found in one.best(rarest, rows, fits))
        for row, fit in sorted(chosen.items()):
            yield self.tools[row], self.things[row], fit

    def _sorted_out(self, known: Sequence[Known]) -> "WordSets[_Variant]":
        rows: dict[Provided, list[int]] = defaultdict(list)
        for row, thing in enumerate(self.things):
            rows[thing].append(row)
        return WordSets(
            (
                thing.bare - HERE if thing.here else thing.bare,
                _Variant(thing, several, self.tools, known),
            )
            for thing, several in rows.items()
        )


class _Variant:
    """The rows of one thing, said in one way; all are equal but for the names of the tools, and
    what these require.
    """

    def __init__(
        self, thing: Provided, rows: Sequence[int], tools: Sequence[int], known: Sequence[Known]
    ) -> None:
        self.thing, self.rows = thing, rows
        self._tools, self._known = tools, known
        self._by_word: dict[str, list[int]] | None = None

    def best(self, rarest: Sequence[str], rows: range, fits: Fits) -> Iterator[tuple[int, Fit]]:
        """Of these rows those that fit, and how, the ones that share the rarest words of a name
        first, until there are too many equals.
        """
        inside = _between(self.rows, rows)
        few = len(inside) <= FEW
        for among in (self.rows,) if few else (*(self._with(word) for word in rarest), self.rows):
            enough = 0
            for place in _between(among, rows)[:READ]:
                if fit := fits(self._tools[among[place]], self.thing):
                    yield among[place], fit
                    enough += 1
                    if enough > MOST_RIVALS and not few:
                        return

    def _with(self, word: str) -> Sequence[int]:
        if self._by_word is None:
            self._by_word = defaultdict(list)
            for row in self.rows:
                for one in self._known[self._tools[row]].name:
                    self._by_word[one].append(row)
        return self._by_word.get(word, ())


def _between(positions: Sequence[int], wanted: range) -> range:
    """Where sorted positions are within a range."""
    return range(bisect_left(positions, wanted.start), bisect_left(positions, wanted.stop))


def _key(words: tuple[str, ...]) -> tuple[str, ...]:
    """What two noun phrases have to share to fit: the last word, and the one before it where the
    last says nothing.
    """
    return words[-2:] if words[-1] in IDS or words[-1] in GENERIC else words[-1:]
