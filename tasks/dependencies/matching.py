"""Parameter edges: a tool that asks for what another provides.

Tools of the same agent are asked first, then those of the same catalog, then all. What many tools
provide equally well tells none of them
apart: such a parameter makes no edge. Each parameter is compared with a bounded number of tools
(`offers`)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tasks.dependencies.asked import Asked, Fit, asked_of
from tasks.dependencies.evidence import Evidence, Kind
from tasks.dependencies.offers import MOST_RIVALS, Offers, rarity_of
from tasks.dependencies.provided import IDS, Known, Provided
from tasks.dependencies.schemas import Parameter
from tasks.dependencies.words import CREATING, GENERIC, WORLD

PER_PARAMETER = 2
"""Targets of one parameter."""
SLACK = 0.5
"""Ranks that differ by less are equal."""

_FITS: dict[Fit, float] = {"exact": 8.0, "here": 6.0, "narrow": 4.0, "wide": 2.0}
_HOWS = {"named": 0.6, "schema": 0.6, "listed": 0.6, "found": 0.4, "told": 0.0}


@dataclass(frozen=True, slots=True)
class _Found:
    tool: int
    kind: Kind
    rank: float
    provided: Provided


class Matching:
    """The parameters of tools, and the tools that provide what they ask for.

    Args:
        known: sorted so that the tools of a catalog, and of an agent in it, stand together.

    Attributes:
        compared: how often a parameter was compared with something that a tool provides; it grows
            as the tools do, not as their square.
    """

    def __init__(self, known: Sequence[Known]) -> None:
        self.compared = 0
        self._known = known
        self._rarity = rarity_of(known)
        self._offers = Offers(known, self._rarity)
        self._spans = _spans((one.tool.catalog, one.tool.agent) for one in known)
        self._spans |= _spans((one.tool.catalog,) for one in known)

    def edges(self) -> Iterator[Evidence]:
        """The evidence that parameters of these tools are provided by others of them."""
        for at, one in enumerate(self._known):
            for parameter in one.parameters:
                phrases = list(asked_of(one, parameter))
                for asked in phrases:
                    if found := self._best(at, asked, last=asked is phrases[-1]):
                        yield from self._evidence(at, parameter, found)
                        break

    def _evidence(
        self, at: int, parameter: Parameter, found: Sequence[_Found]
    ) -> Iterator[Evidence]:
        for one in found[:PER_PARAMETER]:
            # What makes a new thing gives its id as well, but a request about a thing that is there
            # does not need it.
            makes = self._known[one.tool].named.verb in CREATING
            direct = parameter.needed and not makes and not one.kind.startswith("here")
            yield Evidence(
                at,
                one.tool,
                "parameter-directly-depends-on" if direct else "parameter-indirectly-depends-on",
                parameter.name,
                one.kind,
                " ".join(one.provided.words),
                1.1 - len(found) / 10,
            )

    def _best(self, at: int, asked: Asked, *, last: bool) -> Sequence[_Found]:
        """The tools that provide what is asked for best; none where too many do."""
        tool = self._known[at].tool
        near = self._spans[tool.catalog, tool.agent]
        if best := self._fitting(at, asked, near, near=True):
            return self._apart(best)
        # Of what other agents provide, little is evidence; it may only keep the next phrase of the
        # parameter from being asked for.
        if last and not _is_clear(asked, self._offers):
            return []
        for tools in (self._spans[tool.catalog,], range(len(self._known))):
            if len(tools) > len(near) and (best := self._fitting(at, asked, tools, near=False)):
                return self._apart(best)
            near = tools
        return []

    def _fitting(self, at: int, asked: Asked, tools: range, *, near: bool) -> list[_Found]:
        one = self._known[at]
        best: dict[int, _Found] = {}
        fits = partial(self._fits, at, asked, near)
        for other, provided, fit in self._offers.fitting(asked, one.name, tools, fits):
            theirs = self._known[other]
            kin = max(
                (self._rarity.get(word, 0.0) for word in (one.name & theirs.name) - asked.bare),
                default=0.0,
            )
            rank = _FITS[fit] + _HOWS[provided.how] + kin
            if other not in best or best[other].rank < rank:
                best[other] = _Found(
                    other, _kind(fit, asked, provided, theirs, near=near), rank, provided
                )
        return list(best.values())

    def _fits(
        self, at: int, asked: Asked, near: bool, other: int | None, provided: Provided
    ) -> Fit | None:
        self.compared += 1
        if other is None:
            return asked.fit(provided, near, None)
        theirs = self._known[other]
        return (
            None
            if other == at or asked.bare in theirs.requires
            else asked.fit(provided, near, theirs.text)
        )

    def _apart(self, found: Sequence[_Found]) -> Sequence[_Found]:
        top = max(one.rank for one in found)
        first = [one for one in found if one.rank >= top - SLACK]
        return (
            sorted(first, key=lambda one: (-one.rank, self._known[one.tool].tool.id))
            if len(first) <= MOST_RIVALS
            else []
        )


def _spans(keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], range]:
    """The positions of each key among keys of which equal ones stand together."""
    spans: dict[tuple[str, ...], range] = {}
    for at, key in enumerate(keys):
        spans[key] = range(spans[key].start if key in spans else at, at + 1)
    return spans


def _is_clear(asked: Asked, offers: Offers) -> bool:
    """Whether a tool of another agent may be meant: by an id of more than one word, and by the date
    and its like.
    """
    return asked.words[-1] in WORLD or (_is_distinct_id(asked) and offers.has(asked.bare))


def _is_distinct_id(asked: Asked) -> bool:
    return asked.words[-1] in IDS and len(asked.bare - GENERIC) > 1


def _kind(fit: Fit, asked: Asked, provided: Provided, other: Known, *, near: bool) -> Kind:
    """Which kind of evidence a fit is; see `evidence`."""
    head = asked.words[-1]
    if fit == "here":
        return "here" if near else "here-far"
    known_by = head in IDS
    if not near:
        return "id-far" if fit == "exact" and _is_distinct_id(asked) else "far"
    if provided.how == "found":
        return "id-found"
    if provided.how == "named":
        return "id-named" if known_by else "named" if fit == "exact" else "named-partly"
    # What a tool about something else gives back by the way is rarely what a caller would fetch
    # there.
    subject = asked.bare - {head} if known_by else asked.bare - GENERIC
    about = provided.how == "listed" or bool(subject & other.name)
    if provided.how == "told":
        return "told" if about and (known_by or len(asked.bare - GENERIC) > 1) else "told-aside"
    if known_by:
        return "id-result" if about else "id-result-aside"
    return "result" if about and len(asked.bare - GENERIC) > 1 else "result-aside"
