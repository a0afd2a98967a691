"""Parameter edges: a tool that asks for what another provides.

A parameter asks for the noun phrase of its name, with the object of its tool before it where the name alone says nothing (`id` of
`cancel_order` is an order id). It matches what is provided if the last words agree, as English puts the noun that counts last, and the
rest does not contradict. What many tools provide tells none of them apart: such a parameter makes no edge.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from tasks.dependencies.evidence import Evidence, Kind
from tasks.dependencies.phrases import parameter_phrase, words_of
from tasks.dependencies.provided import IDS, Known, Provided
from tasks.dependencies.schemas import Parameter
from tasks.dependencies.words import CALENDAR, CREATING, GENERIC, HERE, ROLES, WORLD, verb_forms

__all__ = ["parameter_edges"]

MOST_RIVALS = 3
"""Tools that provide the same thing equally well, above which none of them is named."""
PER_PARAMETER = 2
"""Targets of one parameter."""
SLACK = 0.5
"""Ranks that differ by less are equal."""

_FITS = {"exact": 8.0, "here": 6.0, "narrow": 4.0, "wide": 2.0}
_HOWS = {"named": 0.6, "schema": 0.6, "listed": 0.6, "found": 0.4, "told": 0.0}
_NEAR = 20.0
"""More than everything else together: a tool of the same agent comes before one of another, however that is called."""


@dataclass(frozen=True, slots=True)
class _Found:
    tool: int
    kind: Kind
    rank: float
    provided: Provided


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a parameter asks for: the noun phrase, its words but for roles, and the words that may explain more of it."""

    words: tuple[str, ...]
    bare: frozenset[str]
    around: frozenset[str]
    choices: bool


def parameter_edges(known: Sequence[Known]) -> Iterator[Evidence]:
    """The evidence that parameters of these tools are provided by others of them."""
    index: dict[tuple[str, ...], list[tuple[int, Provided]]] = defaultdict(list)
    for at, one in enumerate(known):
        for provided in one.provides:
            for key in {_key(provided.words), *([provided.words[-1:]] if provided.here else ())}:
                index[key].append((at, provided))
    rarity = _rarity(known)
    for at, one in enumerate(known):
        for parameter in one.parameters:
            for asked in _asked(one, parameter):
                candidates = {
                    id(each[1]): each for key in (_key(asked.words), asked.words[-1:]) for each in index.get(key, ())
                }
                if found := _best(known, at, asked, candidates.values(), rarity):
                    yield from _evidence(at, parameter, found)
                    break


def _key(words: tuple[str, ...]) -> tuple[str, ...]:
    """What two noun phrases have to share to fit: the last word, and the one before it where the last says nothing."""
    return words[-2:] if words[-1] in IDS or words[-1] in GENERIC else words[-1:]


def _asked(one: Known, parameter: Parameter) -> Iterator[_Asked]:
    """The noun phrases that a parameter may ask for, the likeliest first."""
    words = parameter_phrase(parameter.name)
    if not words or words[-1] in ROLES or parameter.types == {"boolean"}:
        return
    phrases = [words]
    if len(words) == 1 and words[0] in GENERIC and one.named.phrase:
        phrases.append((*(word for word in one.named.phrase if word not in words), *words))
    if words[-1] in CALENDAR and not parameter.name.casefold().endswith("s"):  # `days` are a duration
        phrases.append((*words[:-1], CALENDAR[words[-1]]))
    around = one.text | set(words_of(parameter.description[:500]))
    for phrase in phrases:
        # What creates a thing gives it the id that it asks for.
        if one.named.verb in CREATING and phrase[-1] in IDS and set(one.named.phrase) == set(phrase[:-1]):
            continue
        if bare := frozenset(phrase) - ROLES:
            yield _Asked(phrase, bare, around, parameter.choices)


def _rarity(known: Sequence[Known]) -> Mapping[str, float]:
    """The information in nats of the words of names but verbs: in how few of the tools' names a word is."""
    counts: dict[str, int] = defaultdict(int)
    for one in known:
        for word in one.name - verb_forms().keys():
            counts[word] += 1
    return {word: log((1 + len(known)) / count) for word, count in counts.items()}


def _best(
    known: Sequence[Known],
    at: int,
    asked: _Asked,
    candidates: Iterable[tuple[int, Provided]],
    rarity: Mapping[str, float],
) -> list[_Found]:
    """The tools that provide what is asked for best; none where too many do."""
    one, best = known[at], dict[int, _Found]()
    for other, provided in candidates:
        theirs = known[other]
        if other == at or asked.bare in theirs.requires or not (fit := _fit(asked, provided, one, theirs)):
            continue
        near = (one.tool.agent == theirs.tool.agent) + (one.tool.catalog == theirs.tool.catalog)
        kin = max((rarity.get(word, 0.0) for word in (one.name & theirs.name) - asked.bare), default=0.0)
        rank = _NEAR * near + _FITS[fit] + _HOWS[provided.how] + kin
        if other not in best or best[other].rank < rank:
            best[other] = _Found(other, _kind(fit, asked, provided, one, theirs), rank, provided)
    top = max((found.rank for found in best.values()), default=0.0)
    first = [found for found in best.values() if found.rank >= top - SLACK]
    return sorted(first, key=lambda f: (-f.rank, known[f.tool].tool.id)) if len(first) <= MOST_RIVALS else []


def _fit(asked: _Asked, provided: Provided, one: Known, other: Known) -> str:
    """How what is provided fits what is asked for; nothing if it does not."""
    asks, gives, head = asked.bare, provided.bare, asked.words[-1]
    mine = head in WORLD or (one.tool.agent == other.tool.agent and not asks <= GENERIC)
    if provided.here and mine and asks - HERE <= gives and gives - asks - HERE <= asked.around:
        return "here"
    if asked.choices or head not in gives or (asks <= GENERIC and (len(asks) == 1 or head not in IDS)):
        return ""
    if asks == gives:
        return "exact"
    # The id of a robot's status is not the id of the robot: what the id is of has to agree, too.
    if head in IDS and not {*asked.words[-2:-1], *provided.words[-2:-1]} <= asks & gives:
        return ""
    if gives <= GENERIC:
        return ""
    if asks < gives and gives - asks <= asked.around:
        return "narrow"
    if gives < asks and asks - gives <= other.text:
        return "wide"
    return ""


def _kind(fit: str, asked: _Asked, provided: Provided, one: Known, other: Known) -> Kind:
    """Which kind of evidence a fit is; see `evidence`."""
    near, head = one.tool.agent == other.tool.agent, asked.words[-1]
    if fit == "here":
        return "here" if near else "here-far"
    known_by = head in IDS
    if not near:
        return "id-far" if known_by and fit == "exact" and len(asked.bare - GENERIC) > 1 else "far"
    if provided.how == "found":
        return "id-found"
    if provided.how == "named":
        return "id-named" if known_by else "named" if fit == "exact" else "named-partly"
    # What a tool about something else gives back by the way is rarely what a caller would fetch there.
    subject = asked.bare - {head} if known_by else asked.bare - GENERIC
    about = provided.how == "listed" or bool(subject & other.name)
    if provided.how == "told":
        return "told" if about and (known_by or len(asked.bare - GENERIC) > 1) else "told-aside"
    if known_by:
        return "id-result" if about else "id-result-aside"
    return "result" if about and len(asked.bare - GENERIC) > 1 else "result-aside"


def _evidence(at: int, parameter: Parameter, found: Sequence[_Found]) -> Iterator[Evidence]:
    for one in found[:PER_PARAMETER]:
        direct = parameter.needed and not one.kind.startswith("here")
        yield Evidence(
            at,
            one.tool,
            "parameter-directly-depends-on" if direct else "parameter-indirectly-depends-on",
            parameter.name,
            one.kind,
            " ".join(one.provided.words),
            1.1 - len(found) / 10,
        )
