"""Whether what a tool provides fits what a parameter needs, and an index of what tools provide,
which compares a parameter with a bounded number of them.

What is provided fits if the last words agree, where English puts the main noun, and the rest does
not contradict. Of a noun that many tools provide, those are compared that share the rarest words of
their names with the asking tool, and as many more as it takes to see that they are too many to
choose from."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

from tasks.dependencies.language import CONTEXT, GENERIC, ID_NOUNS, WORLD, verb_forms, words_of
from tasks.dependencies.profiles import Provided, ToolProfile

MAX_RIVALS = 3
"""Tools that provide the same thing equally well, above which none of them is chosen."""
MAX_COMPARED = 32
"""Tools that provide a noun and have a word in common with the asking one, or any, that are
compared with one parameter."""

Fit = Literal["exact", "here", "narrow", "wide"]
_Key = tuple[str, ...]
_Offer = tuple[int, Provided]
Fits = Callable[[int, Provided], Fit | None]
"""How what the tool at a position provides fits; None if it does not."""


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

    def bucket_keys(self) -> Sequence[tuple[str, ...]]:
        """Return the keys under which a `ProviderIndex` may have what is needed."""
        return list(dict.fromkeys((_key(self.words), self.words[-1:])))

    def explains(self, words: frozenset[str]) -> bool:
        """Whether all these words are in the context."""
        rest = words - self.text
        return not rest or rest.issubset(words_of(self.description))

    def fit(self, provided: Provided, text: frozenset[str]) -> Fit | None:
        """Return how what is provided fits; None if it does not.

        Args:
            text: the words of the tool that provides it.
        """
        needs, gives, head = self.core, provided.core, self.words[-1]
        own = provided.contextual and (head in WORLD or not needs <= GENERIC)
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
        return "wide" if gives < needs and needs - gives <= text else None


def word_rarity(profiles: Sequence[ToolProfile]) -> Mapping[str, float]:
    """Return the information, in nats, of each word of the names of an agent's tools but verbs."""
    verbs = verb_forms().keys()
    counts = Counter(word for profile in profiles for word in profile.name_words - verbs)
    return {word: log((1 + len(profiles)) / count) for word, count in counts.items()}


class ProviderIndex:
    """What tools provide, by the end of the noun phrase. Tools are positions in `profiles`."""

    def __init__(self, profiles: Sequence[ToolProfile]) -> None:
        self._by_key: dict[_Key, list[_Offer]] = defaultdict(list)
        self._by_word: dict[tuple[_Key, str], list[_Offer]] = defaultdict(list)
        self._cores = {provided.core for profile in profiles for provided in profile.provides}
        for position, profile in enumerate(profiles):
            for provided in profile.provides:
                for key in _keys_of(provided):
                    self._by_key[key].append((position, provided))
                    for word in profile.name_words | provided.core:
                        self._by_word[key, word].append((position, provided))

    def provides(self, core: frozenset[str]) -> bool:
        """Whether any tool provides exactly this."""
        return core in self._cores

    def candidates(
        self, need: Need, name: frozenset[str], rarity: Mapping[str, float], fits: Fits
    ) -> Iterator[tuple[int, Provided, Fit]]:
        """Yield the positions of the tools that may fit best, what they provide, and how it fits.

        Args:
            name: the words of the asking tool's name.
            rarity: of words in the names of the tools.
            fits: is called for a bounded number of tools.
        """
        shared = need.core | (name & rarity.keys())
        rarest = sorted(shared, key=lambda word: (-rarity.get(word, 0.0), word))
        for key in need.bucket_keys():
            compared: set[_Offer] = set()
            groups = (self._by_word.get((key, word), ()) for word in rarest)
            for group in (*groups, self._by_key.get(key, ())):
                for offer in group[:MAX_COMPARED]:
                    if offer not in compared:
                        compared.add(offer)
                        if fit := fits(*offer):
                            yield *offer, fit


def _keys_of(provided: Provided) -> set[tuple[str, ...]]:
    """Return the keys under which a `ProviderIndex` has what a tool provides."""
    keys = {_key(provided.words)}
    return keys | {provided.words[-1:]} if provided.contextual else keys


def _key(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what two noun phrases share if they fit: the last word, or two where it is generic."""
    return words[-2:] if words[-1] in ID_NOUNS or words[-1] in GENERIC else words[-1:]
