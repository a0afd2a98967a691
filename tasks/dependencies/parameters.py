"""Parameter edges: a tool needs a value that another tool provides.

What most tools of an agent take (the repository, the account) is known before any of them is
called: it makes no edge. The tool at the path before a parameter provides it: `/orders` the id in
`/orders/{id}`. Otherwise the agent's tools are compared: of several that fit, one that can be
called with what the caller has and that stands near in the paths. What many tools provide equally
well points to none of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tasks.dependencies.evidence import Evidence, Kind, dependency_type
from tasks.dependencies.language import (
    CALENDAR,
    CHANGING,
    CREATING,
    GENERIC,
    ID_NOUNS,
    KEYS,
    PLUMBING,
    ROLES,
    SEARCHED,
    WORLD,
    parameter_phrase,
)
from tasks.dependencies.profiles import Origin, Provided, ToolProfile, is_personal, phrases_of
from tasks.dependencies.providers import MAX_RIVALS, Fit, Need, ProviderIndex, word_rarity
from tasks.dependencies.schemas import Address, Parameter

MAX_TARGETS = 2
"""Targets of one parameter."""
SHARED = 0.25
"""Share of an agent's tools with a parameter, from which it is known before any is called."""
MIN_SHARING = 10
"""Tools with such a parameter; of fewer, one that lists its values may well come first."""
TIE = 0.5
"""Scores that differ by less are equal."""

_FIT_SCORES: dict[Fit, float] = {"exact": 8.0, "here": 6.0, "narrow": 4.0, "wide": 2.0}
_ORIGIN_SCORES: dict[Origin, float] = {
    "listed": 2.0, "named": 0.6, "schema": 0.6, "found": 0.4, "created": 0.0, "contained": 0.0,
}  # fmt: skip
_UNKNOWN_ARGUMENT = 0.6
"""Penalty of a provider for each argument, up to two, that the consumer's caller lacks."""
_SAME_PATH = 2.0
"""Bonus of a provider whose path is a prefix of the consumer's."""
_ASIDE: frozenset[Kind] = frozenset({"named", "id-named", "id-result", "id-created"})
"""What a tool of an HTTP API provides only to tools that stand below it in the paths."""
_PLUMBING_PHRASES = {(word,) for word in PLUMBING}
_MAX_DESCRIPTION = 500


class SharedParameters:
    """The parameters that a large part of an agent's tools take."""

    def __init__(self, profiles: Sequence[ToolProfile]) -> None:
        counts: Counter[frozenset[str]] = Counter()
        for profile in profiles:
            counts.update({_subject(parameter) for parameter in profile.parameters} - {frozenset()})
        least = max(MIN_SHARING, SHARED * len(profiles))
        self._shared = {subject for subject, count in counts.items() if count >= least}

    def __contains__(self, parameter: Parameter) -> bool:
        """Whether this is a shared parameter; `id` alone differs from tool to tool."""
        return _subject(parameter) in self._shared


def _subject(parameter: Parameter) -> frozenset[str]:
    """Return the words of a parameter without `id`; none if they are too generic."""
    phrase = parameter_phrase(parameter.name)
    if not phrase or phrase[-1] in WORLD or phrase[-1] in CALENDAR:
        return frozenset()
    words = frozenset(phrase) - ROLES
    return words - {"id"} if len(words) > 1 or not words <= GENERIC else frozenset()


@dataclass(frozen=True, slots=True)
class _Match:
    tool: int
    kind: Kind
    score: float
    provided: Provided


class ParameterMatcher:
    """Matches the parameters of an agent's tools with the tools that provide what they need.

    Args:
        profiles: of all tools of the agent.
        shared: the parameters that make no edge.

    Attributes:
        compared: how often a parameter was compared with something that a tool provides; it grows
            as the tools do, not as their square.
    """

    def __init__(self, profiles: Sequence[ToolProfile], shared: SharedParameters) -> None:
        self.compared = 0
        self._profiles = profiles
        self._shared = shared
        self._rarity = word_rarity(profiles)
        self._index = ProviderIndex(profiles)
        self._collections = _collections(profiles)

    def evidence(self) -> Iterator[Evidence]:
        """Yield the evidence that parameters of a tool are provided by others."""
        for position, profile in enumerate(self._profiles):
            for parameter in profile.parameters:
                if parameter in self._shared:
                    continue
                collection = self._collection(position, parameter)
                if collection is not None and collection.kind == "collection":
                    yield collection
                    continue
                matches = self._matches_of(position, parameter)
                creates = bool(matches) and matches[0].kind == "id-created"
                if collection is not None and (not matches or creates):
                    yield collection
                else:
                    yield from self._evidence(position, parameter, matches)

    def _matches_of(self, position: int, parameter: Parameter) -> Sequence[_Match]:
        for need in needs_of(self._profiles[position], parameter):
            if matches := self._matches(position, need):
                return self._winners(matches)
        return []

    def _collection(self, position: int, parameter: Parameter) -> Evidence | None:
        """Return the evidence that the tool at the path before this parameter provides it."""
        profile = self._profiles[position]
        prefix = profile.address.prefix_of(parameter.name)
        target = self._collections.get(prefix) if prefix else None
        if target is None or target == position or profile.address.puts(parameter.name):
            return None
        words = parameter_phrase(parameter.name)
        if not parameter.takes_values or parameter.has_choices or words in _PLUMBING_PHRASES:
            return None
        if self._names_another(parameter, profile, target):
            return None
        what = " ".join(profile.address.resource_before(parameter.name) or (parameter.name,))
        lists = self._profiles[target].lists
        type_ = dependency_type(parameter.name, parameter.required and lists)
        kind = "collection" if lists else "id-created"
        ids = profile.tool.id, self._profiles[target].tool.id
        return Evidence(*ids, type_, parameter.name, kind, what)

    def _names_another(self, parameter: Parameter, profile: ToolProfile, target: int) -> bool:
        """Whether a parameter is the id of something else than what its path lists.

        In `/epochs/{number}/blocks/{pool_id}` the blocks tell no pool, but another tool does.
        """
        if is_personal(parameter):
            return True
        *owner, key = parameter_phrase(parameter.name) or ("",)
        resource = profile.address.resource_before(parameter.name) or ()
        if key not in KEYS or not owner or set(owner) & set(resource):
            return False
        told = parameter.name in self._profiles[target].listed
        return not told and self._index.provides(frozenset((*owner, "id")) - ROLES)

    def _evidence(
        self, position: int, parameter: Parameter, matches: Sequence[_Match]
    ) -> Iterator[Evidence]:
        for match in matches[:MAX_TARGETS]:
            # What creates a thing returns its id as well, but a request about a thing that exists
            # does not need it.
            creates = self._profiles[match.tool].verb in CREATING
            direct = parameter.required and not creates and match.kind != "here"
            yield Evidence(
                self._profiles[position].tool.id,
                self._profiles[match.tool].tool.id,
                dependency_type(parameter.name, direct),
                parameter.name,
                match.kind,
                " ".join(match.provided.words),
                1.1 - len(matches) / 10,
            )

    def _matches(self, position: int, need: Need) -> list[_Match]:
        profile = self._profiles[position]
        name, rarity = profile.name_words, self._rarity
        best: dict[int, _Match] = {}
        fits = partial(self._fit, position, need)
        for other, provided, fit in self._index.candidates(need, name, rarity, fits):
            provider = self._profiles[other]
            unknown = self._unknown_arguments(profile, provider)
            kind = _kind(fit, need, provided, provider)
            if kind is None or (kind in _ASIDE and not _is_at_hand(profile, provider, unknown)):
                continue
            shared = (name & provider.name_words) - need.core
            rarest = max((rarity.get(word, 0.0) for word in shared), default=0.0)
            score = _FIT_SCORES[fit] + _ORIGIN_SCORES[provided.origin]
            score += _nearness(profile.address, provider.address, rarest)
            score -= _UNKNOWN_ARGUMENT * unknown
            if other not in best or best[other].score < score:
                best[other] = _Match(other, kind, score, provided)
        return list(best.values())

    def _unknown_arguments(self, profile: ToolProfile, provider: ToolProfile) -> int:
        own = {frozenset(parameter_phrase(parameter.name)) for parameter in profile.parameters}
        unknown = 0
        for parameter in provider.parameters:
            words = frozenset(parameter_phrase(parameter.name))
            unknown += parameter.required and words not in own and not words & SEARCHED
        return min(2, unknown)

    def _fit(self, position: int, need: Need, other: int, provided: Provided) -> Fit | None:
        self.compared += 1
        provider = self._profiles[other]
        if other == position or need.core in provider.requires:
            return None
        profile = self._profiles[position]
        segments = provider.address.segments
        same = segments and segments == profile.address.segments
        # What sets a value does not need the value that it replaces.
        sets = provided.origin == "named" and profile.verb in CHANGING
        if same or (sets and set(provided.words) <= set(profile.parsed.phrase)):
            return None
        return need.fit(provided, provider.text_words)

    def _winners(self, matches: Sequence[_Match]) -> Sequence[_Match]:
        top = max(match.score for match in matches)
        first = [match for match in matches if match.score >= top - TIE]
        if len(first) > MAX_RIVALS:
            return []
        return sorted(first, key=lambda match: (-match.score, self._profiles[match.tool].tool.id))


def needs_of(profile: ToolProfile, parameter: Parameter) -> Iterator[Need]:
    """Yield what a parameter may need, the likeliest first."""
    words = parameter_phrase(parameter.name)
    if not words or words[-1] in ROLES or not parameter.takes_values:
        return
    if profile.address.puts(parameter.name) and (
        set(words) & set(profile.address.resource_before(parameter.name) or ())
    ):
        return
    entity = profile.parsed.phrase
    for phrase in phrases_of(parameter, entity, profile.address):
        # What creates a thing gives it the id that it takes.
        creates = profile.verb in CREATING and set(entity) == set(phrase[:-1])
        if creates and phrase[-1] in ID_NOUNS:
            continue
        if core := frozenset(phrase) - ROLES:
            description = parameter.description[:_MAX_DESCRIPTION]
            yield Need(phrase, core, profile.text_words, description, parameter.has_choices)


def _collections(profiles: Sequence[ToolProfile]) -> Mapping[tuple[str, ...], int]:
    """Return which tool lists, or else creates, what is at each path."""
    collections: dict[tuple[str, ...], int] = {}
    for lists in (True, False):
        for position, profile in enumerate(profiles):
            if profile.address.segments[-1:] not in {(), ("{}",)} and (
                profile.lists if lists else profile.verb in CREATING
            ):
                collections.setdefault(profile.address.segments, position)
    return collections


def _is_at_hand(profile: ToolProfile, provider: ToolProfile, unknown: int) -> bool:
    """Whether a tool of an HTTP API stands where the asking one does and needs nothing more."""
    above = provider.address.segments[:-1]
    near = above == profile.address.segments[: len(above)]
    return not provider.address.segments or (near and not unknown)


def _nearness(asking: Address, providing: Address, rarest: float) -> float:
    """Return more, the rarer the words that the names of two tools share, or the more of the path
    of a provider is the beginning of the asking tool's.
    """
    if not asking.segments or not providing.segments:
        return rarest
    common = 0
    for one, other in zip(asking.segments, providing.segments, strict=False):
        if one != other:
            break
        common += 1
    return _SAME_PATH * common / len(providing.segments) + min(rarest, 0.5)


def _kind(fit: Fit, need: Need, provided: Provided, provider: ToolProfile) -> Kind | None:
    """Return which kind of evidence a fit is, see `evidence`; None for none worth an edge."""
    head = need.words[-1]
    is_id = head in ID_NOUNS
    if fit == "here":
        return "here"
    if provided.origin in {"listed", "found"}:
        return "id-found"
    if provided.origin == "created":
        return "id-created"
    if provided.origin == "contained":
        return "id-result"
    if provided.origin == "named":
        return "id-named" if is_id else "named" if fit == "exact" else None
    # An incidental result of a tool about something else is not what a caller would fetch there.
    return "id-result" if is_id and (need.core - {head}) & provider.name_words else None
