"""Parameter edges: a tool needs a value that another tool provides.

Tools of the same agent are tried first, then those of the same catalog, then all. What many tools
provide equally well points to none of them: such a parameter makes no edge."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tasks.dependencies.evidence import Evidence, Kind, dependency_type
from tasks.dependencies.language import CREATING, GENERIC, ID_NOUNS, WORLD
from tasks.dependencies.profiles import Fit, Need, Parameter, Provided, ToolProfile, needs_of
from tasks.dependencies.providers import MAX_RIVALS, ProviderIndex, word_rarity

MAX_TARGETS = 2
"""Targets of one parameter."""
TIE = 0.5
"""Scores that differ by less are equal."""

_FIT_SCORES: dict[Fit, float] = {"exact": 8.0, "here": 6.0, "narrow": 4.0, "wide": 2.0}
_ORIGIN_SCORES = {"named": 0.6, "schema": 0.6, "listed": 0.6, "found": 0.4, "told": 0.0}


@dataclass(frozen=True, slots=True)
class _Match:
    tool: int
    kind: Kind
    score: float
    provided: Provided


class ParameterMatcher:
    """Matches the parameters of tools with the tools that provide what they need.

    Args:
        profiles: sorted so that the tools of a catalog, and of an agent in it, stand together.

    Attributes:
        compared: how often a parameter was compared with something that a tool provides; it grows
            as the tools do, not as their square.
    """

    def __init__(self, profiles: Sequence[ToolProfile]) -> None:
        self.compared = 0
        self._profiles = profiles
        self._rarity = word_rarity(profiles)
        self._index = ProviderIndex(profiles, self._rarity)
        self._spans = _spans((profile.tool.catalog, profile.tool.agent) for profile in profiles)
        self._spans |= _spans((profile.tool.catalog,) for profile in profiles)

    def evidence(self) -> Iterator[Evidence]:
        """Yield the evidence that parameters of these tools are provided by others of them."""
        for position, profile in enumerate(self._profiles):
            for parameter in profile.parameters:
                needs = list(needs_of(profile, parameter))
                for need in needs:
                    if matches := self._best(position, need, last=need is needs[-1]):
                        yield from self._evidence(position, parameter, matches)
                        break

    def _evidence(
        self, position: int, parameter: Parameter, matches: Sequence[_Match]
    ) -> Iterator[Evidence]:
        for match in matches[:MAX_TARGETS]:
            # What creates a thing returns its id as well, but a request about a thing that exists
            # does not need it.
            creates = self._profiles[match.tool].parsed.verb in CREATING
            direct = parameter.required and not creates and not match.kind.startswith("here")
            yield Evidence(
                position,
                match.tool,
                dependency_type(parameter.name, direct),
                parameter.name,
                match.kind,
                " ".join(match.provided.words),
                1.1 - len(matches) / 10,
            )

    def _best(self, position: int, need: Need, *, last: bool) -> Sequence[_Match]:
        """Return the tools that provide best what is needed; none where too many do."""
        tool = self._profiles[position].tool
        near = self._spans[tool.catalog, tool.agent]
        if matches := self._matches(position, need, near, near=True):
            return self._winners(matches)
        # What other agents provide is weak evidence; it may only keep the next phrase of the
        # parameter from being tried.
        if last and not self._is_clear(need):
            return []
        for tools in (self._spans[tool.catalog,], range(len(self._profiles))):
            if len(tools) > len(near) and (
                matches := self._matches(position, need, tools, near=False)
            ):
                return self._winners(matches)
            near = tools
        return []

    def _matches(self, position: int, need: Need, tools: range, *, near: bool) -> list[_Match]:
        name = self._profiles[position].name_words
        best: dict[int, _Match] = {}
        fits = partial(self._fit, position, need, near)
        for other, provided, fit in self._index.candidates(need, name, tools, fits):
            provider = self._profiles[other]
            shared = (name & provider.name_words) - need.core
            rarest = max((self._rarity.get(word, 0.0) for word in shared), default=0.0)
            score = _FIT_SCORES[fit] + _ORIGIN_SCORES[provided.origin] + rarest
            if other not in best or best[other].score < score:
                kind = _kind(fit, need, provided, provider, near=near)
                best[other] = _Match(other, kind, score, provided)
        return list(best.values())

    def _fit(
        self, position: int, need: Need, near: bool, other: int | None, provided: Provided
    ) -> Fit | None:
        self.compared += 1
        if other is None:
            return need.fit(provided, near, None)
        provider = self._profiles[other]
        if other == position or need.core in provider.requires:
            return None
        return need.fit(provided, near, provider.text_words)

    def _winners(self, matches: Sequence[_Match]) -> Sequence[_Match]:
        top = max(match.score for match in matches)
        first = [match for match in matches if match.score >= top - TIE]
        if len(first) > MAX_RIVALS:
            return []
        return sorted(first, key=lambda match: (-match.score, self._profiles[match.tool].tool.id))

    def _is_clear(self, need: Need) -> bool:
        """Whether a tool of another agent may be meant: by a specific id, a date and its like."""
        specific = _is_specific_id(need) and self._index.provides(need.core)
        return need.words[-1] in WORLD or specific


def _spans(keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], range]:
    """Return the positions of each key among keys of which equal ones stand together."""
    spans: dict[tuple[str, ...], range] = {}
    for position, key in enumerate(keys):
        start = spans[key].start if key in spans else position
        spans[key] = range(start, position + 1)
    return spans


def _is_specific_id(need: Need) -> bool:
    return need.words[-1] in ID_NOUNS and len(need.core - GENERIC) > 1


def _kind(fit: Fit, need: Need, provided: Provided, provider: ToolProfile, *, near: bool) -> Kind:
    """Return which kind of evidence a fit is; see `evidence`."""
    head = need.words[-1]
    is_id = head in ID_NOUNS
    if fit == "here":
        return "here" if near else "here-far"
    if not near:
        return "id-far" if fit == "exact" and _is_specific_id(need) else "far"
    if provided.origin == "found":
        return "id-found"
    if provided.origin == "named":
        return "id-named" if is_id else "named" if fit == "exact" else "named-partly"
    # An incidental result of a tool about something else is rarely what a caller would fetch there.
    subject = need.core - {head} if is_id else need.core - GENERIC
    specific = len(need.core - GENERIC) > 1
    about = provided.origin == "listed" or bool(subject & provider.name_words)
    if provided.origin == "told":
        return "told" if about and (is_id or specific) else "told-aside"
    if is_id:
        return "id-result" if about else "id-result-aside"
    return "result" if about and specific else "result-aside"
