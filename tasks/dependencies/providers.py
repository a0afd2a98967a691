"""Whether what a tool provides fits what a parameter needs, and an index of what tools provide,
which compares a parameter with a bounded number of them.

What is provided fits if the last words agree, where English puts the main noun, and the rest does
not contradict.

A noun that few tools provide is compared with each of these. Of a noun that many provide, tools
differ only in how it is said and in the words that their names share with the asking tool's: those
that share the rarest words are compared, and of equals no more than it takes to see that they are
too many to choose from."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Generic, Literal, TypeVar

from tasks.dependencies.language import CONTEXT, GENERIC, ID_NOUNS, WORLD, verb_forms, words_of
from tasks.dependencies.profiles import Provided, ToolProfile

MAX_RIVALS = 3
"""Tools that provide the same thing equally well, above which none of them is chosen."""
COMPARE_ALL = 12
"""Tools that provide a noun, up to which each of them is compared."""
MAX_SCANNED = 256
"""Tools that provide the same and share a word with the asking one, of which each is compared until
enough fit."""
MAX_VARIANTS = 64
"""Variants of a noun (`draft order`, `open order`) that one parameter is compared with."""

T = TypeVar("T")
Fit = Literal["exact", "here", "narrow", "wide"]
Fits = Callable[[int | None, Provided], Fit | None]
"""How what the tool at a position provides fits, or without a position what any tool may provide;
None if it does not."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a parameter needs.

    Attributes:
        words: a noun phrase; `core` is its words without `ROLES`.
        text: the words of the tool, which with `description` may explain more of it.
    """

    words: tuple[str, ...]
    core: frozenset[str]
    text: frozenset[str]
    description: str
    has_choices: bool

    def context(self) -> frozenset[str]:
        """Return the words of the tool and of the parameter's description."""
        return self.text.union(words_of(self.description))

    def bucket_keys(self) -> Sequence[tuple[str, ...]]:
        """Return the keys under which a `ProviderIndex` may have what is needed."""
        return list(dict.fromkeys((_key(self.words), self.words[-1:])))

    def explains(self, words: frozenset[str]) -> bool:
        """Whether all these words are in the context."""
        rest = words - self.text
        return not rest or rest.issubset(words_of(self.description))

    def fit(self, provided: Provided, near: bool, text: frozenset[str] | None) -> Fit | None:
        """Return how what is provided fits; None if it does not.

        Args:
            near: whether the same agent provides it.
            text: the words of the tool that provides it; None to leave open whether they explain
                the rest.
        """
        needs, gives, head = self.core, provided.core, self.words[-1]
        own = provided.contextual and (head in WORLD or (near and not needs <= GENERIC))
        if own and needs - CONTEXT <= gives and self.explains(gives - needs - CONTEXT):
            return "here"
        too_generic = needs <= GENERIC and (len(needs) == 1 or head not in ID_NOUNS)
        if self.has_choices or head not in gives or too_generic:
            return None
        if needs == gives:
            return "exact"
        # The id of a robot's status is not the id of the robot: the owner has to agree, too.
        owners = {*self.words[-2:-1], *provided.words[-2:-1]}
        if gives <= GENERIC or (head in ID_NOUNS and not owners <= needs & gives):
            return None
        if needs < gives:
            return "narrow" if self.explains(gives - needs) else None
        return "wide" if gives < needs and (text is None or needs - gives <= text) else None


class SubsetIndex(Generic[T]):
    """Items by their sets of words, to find those whose words are all in a given set.

    Each is kept under the rarest of its words alone, so that words which most sets share cost
    nothing.

    Example:
        >>> index = SubsetIndex([({"order"}, 1), ({"order", "draft"}, 2), ({"cart"}, 3)])
        >>> sorted(index.subsets_of({"an", "order", "of", "a", "cart"}))
        [1, 3]
    """

    def __init__(self, items: Iterable[tuple[Iterable[str], T]]) -> None:
        listed = [(frozenset(words), item) for words, item in items]
        counts = Counter(word for words, _ in listed for word in words)
        self._by_rarest: dict[str, list[tuple[frozenset[str], T]]] = defaultdict(list)
        self._wordless = [item for words, item in listed if not words]
        for words, item in listed:
            if words:
                rarest = min(words, key=lambda word: (counts[word], word))
                self._by_rarest[rarest].append((words, item))

    def subsets_of(self, words: frozenset[str] | set[str]) -> Iterator[T]:
        """Yield the items whose words are all among these, in no particular order."""
        yield from self._wordless
        for word in self._by_rarest.keys() & words:
            for needed, item in self._by_rarest[word]:
                if needed <= words:
                    yield item


def word_rarity(profiles: Sequence[ToolProfile]) -> Mapping[str, float]:
    """Return the information, in nats, of each word of the names of an agent's tools but verbs."""
    verbs = verb_forms().keys()
    counts = Counter(word for profile in profiles for word in profile.name_words - verbs)
    return {word: log((1 + len(profiles)) / count) for word, count in counts.items()}


class ProviderIndex:
    """What tools provide, by the end of the noun phrase. Tools are positions in `profiles`."""

    def __init__(self, profiles: Sequence[ToolProfile]) -> None:
        self._profiles = profiles
        self._buckets: dict[tuple[str, ...], _Bucket] = defaultdict(_Bucket)
        self._cores = {provided.core for profile in profiles for provided in profile.provides}
        for position, profile in enumerate(profiles):
            for provided in profile.provides:
                for key in keys_of(provided):
                    self._buckets[key].add(position, provided)

    def provides(self, core: frozenset[str]) -> bool:
        """Whether any tool provides exactly this."""
        return core in self._cores

    def candidates(
        self,
        need: Need,
        name: frozenset[str],
        rarity: Mapping[str, float],
        tools: range,
        fits: Fits,
    ) -> Iterator[tuple[int, Provided, Fit]]:
        """Yield the positions of the tools that may fit best, what they provide, and how it fits.

        Args:
            name: the words of the asking tool's name.
            rarity: of words in the names of its agent's tools.
            tools: the positions to look at.
            fits: is called for a bounded number of tools.
        """
        for key in need.bucket_keys():
            if (bucket := self._buckets.get(key)) is None:
                continue
            rows = _between(bucket.tools, tools)
            if len(rows) > COMPARE_ALL:
                shared = (name - need.core) & rarity.keys()
                rarest = sorted(shared, key=lambda word: (-rarity[word], word))
                yield from bucket.best(need, rarest, rows, fits, self._profiles)
                continue
            for row in rows:
                if fit := fits(bucket.tools[row], bucket.provided[row]):
                    yield bucket.tools[row], bucket.provided[row], fit


class _Bucket:
    """What is provided under one key, in rows sorted by the position of the tool."""

    def __init__(self) -> None:
        self.tools: list[int] = []
        self.provided: list[Provided] = []
        self._variants: SubsetIndex[_Variant] | None = None

    def add(self, tool: int, provided: Provided) -> None:
        self.tools.append(tool)
        self.provided.append(provided)

    def best(
        self,
        need: Need,
        rarest: Sequence[str],
        rows: range,
        fits: Fits,
        profiles: Sequence[ToolProfile],
    ) -> Iterator[tuple[int, Provided, Fit]]:
        """Yield those of these rows that fit and may be the best answers."""
        if self._variants is None:
            self._variants = self._index_variants(profiles)
        subsets = self._variants.subsets_of(need.core | need.context())
        variants = [
            variant
            for variant in subsets
            if _between(variant.rows, rows) and fits(None, variant.provided)
        ]
        variants.sort(
            key=lambda variant: (
                variant.provided.core != need.core,
                variant.rows[_between(variant.rows, rows).start],
            )
        )
        chosen: dict[int, Fit] = {}
        for variant in variants[:MAX_VARIANTS]:
            chosen.update(variant.best(rarest, rows, fits))
        for row, fit in sorted(chosen.items()):
            yield self.tools[row], self.provided[row], fit

    def _index_variants(self, profiles: Sequence[ToolProfile]) -> "SubsetIndex[_Variant]":
        rows: dict[Provided, list[int]] = defaultdict(list)
        for row, provided in enumerate(self.provided):
            rows[provided].append(row)
        return SubsetIndex(
            (
                provided.core - CONTEXT if provided.contextual else provided.core,
                _Variant(provided, own_rows, self.tools, profiles),
            )
            for provided, own_rows in rows.items()
        )


class _Variant:
    """The rows that provide the same in the same words; they differ in the names of the tools."""

    def __init__(
        self,
        provided: Provided,
        rows: Sequence[int],
        tools: Sequence[int],
        profiles: Sequence[ToolProfile],
    ) -> None:
        self.provided, self.rows = provided, rows
        self._tools, self._profiles = tools, profiles
        self._by_word: dict[str, list[int]] | None = None

    def best(self, rarest: Sequence[str], rows: range, fits: Fits) -> Iterator[tuple[int, Fit]]:
        """Yield those of these rows that fit, until there are too many equals.

        Rows that share the rarest words of the asking tool's name come first."""
        few = len(_between(self.rows, rows)) <= COMPARE_ALL
        groups = [self.rows] if few else [*(self._with(word) for word in rarest), self.rows]
        for group in groups:
            fitting = 0
            for place in _between(group, rows)[:MAX_SCANNED]:
                if fit := fits(self._tools[group[place]], self.provided):
                    yield group[place], fit
                    fitting += 1
                    if fitting > MAX_RIVALS and not few:
                        return

    def _with(self, word: str) -> Sequence[int]:
        if self._by_word is None:
            self._by_word = defaultdict(list)
            for row in self.rows:
                for name_word in self._profiles[self._tools[row]].name_words:
                    self._by_word[name_word].append(row)
        return self._by_word.get(word, ())


def _between(positions: Sequence[int], bounds: range) -> range:
    """Return where sorted positions are within a range."""
    return range(bisect_left(positions, bounds.start), bisect_left(positions, bounds.stop))


def keys_of(provided: Provided) -> set[tuple[str, ...]]:
    """Return the keys under which a `ProviderIndex` has what a tool provides."""
    keys = {_key(provided.words)}
    return keys | {provided.words[-1:]} if provided.contextual else keys


def _key(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what two noun phrases share if they fit: the last word, or two where it is generic."""
    return words[-2:] if words[-1] in ID_NOUNS or words[-1] in GENERIC else words[-1:]
