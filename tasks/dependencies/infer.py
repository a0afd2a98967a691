"""Dependencies that no catalog declares, inferred from names, schemas, paths and descriptions.

Every rule is here; `profiles.py` reads the tools, `words.toml` has the words. Only tools of one
agent are compared, and every edge says by which kind of evidence it was found. On ToolLinkOS, which
declares its dependencies, the share of inferred edges that are declared, by the parity of the first
byte of the sha256 of the dependent tool's name (the rules were written with all of that catalog in
view, so neither half is unseen):

    kind           even       odd        kind           even       odd
    id-named       72/72      51/51      check          30/30      20/20
    session        66/66      57/57      login          11/11      11/12
    here           133/146    100/108    connection     183/242    157/235
    id-found       8/8        4/4        mentioned      18/18      6/6
    named          21/25      15/32

A confidence is about the lower of the two shares and of what was read by hand in samples of some 60
edges of real MCP servers and of two collections of functions with output schemas, at most .9.

No encoder is used. Where words do not match, the tool nearest to a parameter by meaning was right
for one parameter in five (ToolLinkOS, all-MiniLM-L6-v2, whatever the least cosine): it is mostly a
sibling with the same parameter."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import log
from typing import Literal

from pegboard.records import DependencyType, Edge, Tool
from tasks.dependencies.language import (
    CHANGING,
    CHECKING,
    CONNECTION,
    CONTEXT,
    CREATING,
    GENERIC,
    ID_NOUNS,
    LOGIN,
    LOGIN_WORDS,
    MAKING,
    READING,
    ROLES,
    SEARCHED,
    SECRETS,
    STATE_ENDINGS,
    noun_phrase,
    parameter_phrase,
    verb_forms,
    words_of,
)
from tasks.dependencies.profiles import (
    Address,
    Origin,
    Parameter,
    Phrase,
    Provided,
    ToolProfile,
    is_personal,
    phrases_of,
    profile_of,
)

INFERENCE_VERSION = 7
MAX_EDGES = 8
"""Inferred dependencies of one tool; a request gets some ten tools, and few need more."""
MAX_DESCRIPTION = 4_000
"""Characters of a description that are searched for names of tools."""

Kind = Literal[
    "collection", "id-named", "id-found", "id-created", "named", "here", "mentioned",
    "mentioned-before", "session", "login", "check", "state-switch", "state-needed", "connection",
]  # fmt: skip

CONFIDENCE: dict[Kind, float] = {
    "collection": 0.9, "id-named": 0.9, "id-found": 0.8, "id-created": 0.6,
    "named": 0.6, "here": 0.75, "mentioned": 0.9, "mentioned-before": 0.8, "session": 0.9,
    "login": 0.8, "check": 0.8, "state-switch": 0.8, "state-needed": 0.7, "connection": 0.65,
}  # fmt: skip

_REASONS: dict[Kind, str] = {
    "here": "{target} tells the {what}, which {parameter} may refer to.",
    "mentioned": "The description of {parameter} names {target}.",
    "mentioned-before": "The description of {source} says that {target} comes before.",
    "session": "A login with {target} gives the {what}.",
    "login": "{source} belongs to {what}, and {target} logs in there.",
    "check": "{target} checks whether the {what} is valid.",
    "collection": "{target} provides the {what} that {parameter} names.",
    "state-switch": "{target} switches the {what} that {source} tells.",
    "state-needed": "{source} works with {what}, which may be off; {target} tells.",
    "connection": "{source} may reach out over the {what}, which may be off; {target} tells.",
}
_PROVIDES = "{target} provides the {what} that {parameter} asks for."


def dependency_type(parameter: str | None, direct: bool) -> DependencyType:
    """Return the type of an edge for a parameter, or for the tool as a whole if that is None."""
    if parameter is None:
        return "tool-directly-depends-on" if direct else "tool-indirectly-depends-on"
    return "parameter-directly-depends-on" if direct else "parameter-indirectly-depends-on"


def _edge(
    source: Tool, target: Tool, parameter: str | None, direct: bool, kind: Kind, what: str
) -> Edge:
    """Return an inferred edge; `what` is what is provided, told or switched, in words."""
    names = {"source": source.name, "target": target.name, "parameter": parameter or ""}
    return Edge(
        source.id,
        target.id,
        dependency_type(parameter, direct),
        parameter,
        _REASONS.get(kind, _PROVIDES).format(what=what, **names),
        "inferred",
        CONFIDENCE[kind],
        f"{kind}: {what}",
    )


def infer_agent_edges(tools: Sequence[Tool]) -> list[Edge]:
    """Infer the edges of one agent's tools: those with the strongest evidence for each parameter of
    a pair of tools and for the pair as a whole, at most `MAX_EDGES` for each tool.

    Args:
        tools: all of the agent, in the order of their ids.
    """
    profiles = [profile_of(tool) for tool in tools]
    shared = shared_subjects(profiles)
    parameters = ParameterMatcher(profiles, shared).edges()
    edges = (*parameters, *_mentions(profiles, shared), *_Preconditions(profiles).edges())
    best: dict[tuple[str, str, str | None], Edge] = {}
    mentioned: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for edge in sorted(edges, key=_strength):
        if edge.evidence.startswith("mentioned: "):
            mentioned[edge.source, edge.parameter].add(edge.target)
        best.setdefault((edge.source, edge.target, edge.parameter), edge)
    counts: Counter[str] = Counter()
    strongest: list[Edge] = []
    for edge in best.values():
        # Where a description says which tool provides a parameter, there is nothing to guess.
        if edge.target not in mentioned.get((edge.source, edge.parameter), {edge.target}):
            continue
        counts[edge.source] += 1
        if counts[edge.source] <= MAX_EDGES:
            strongest.append(edge)
    return strongest


def _strength(edge: Edge) -> tuple[float, str, str, str]:
    return -edge.confidence, edge.target, edge.parameter or "", edge.evidence


# --- A parameter needs what another tool provides ---

MAX_RIVALS = 3
"""Tools that provide the same thing equally well, above which none of them is chosen."""
MAX_COMPARED = 100
"""Tools that provide a noun that are compared with one parameter."""
MAX_TARGETS = 2
"""Targets of one parameter."""
SHARED = 0.25
"""Share of an agent's tools with a parameter, from which it is known before any is called."""
MIN_SHARING = 10
"""Tools with such a parameter; of fewer, one that lists its values may well come first."""
TIE = 0.5
"""Scores that differ by less are equal."""

Fit = Literal["exact", "here", "narrow"]
_FIT_SCORES: dict[Fit, float] = {"exact": 8.0, "here": 6.0, "narrow": 4.0}
_ORIGIN_SCORES: dict[Origin, float] = {
    "listed": 2.0, "named": 0.6, "found": 0.4, "created": 0.0,
}  # fmt: skip
_UNKNOWN_ARGUMENT = 0.6
"""Penalty of a provider for each argument, up to two, that the consumer's caller lacks."""
_SAME_PATH = 2.0
"""Bonus of a provider whose path is a prefix of the consumer's."""
_ASIDE: frozenset[Kind] = frozenset({"named", "id-named", "id-created"})
"""What a tool of an HTTP API provides only to tools that stand below it in the paths."""


def shared_subjects(profiles: Sequence[ToolProfile]) -> set[frozenset[str]]:
    """Return the subjects of parameters that a large part of an agent's tools take."""
    counts: Counter[frozenset[str]] = Counter()
    for profile in profiles:
        # `id` alone, which has no subject, differs from tool to tool.
        counts.update({_subject(parameter) for parameter in profile.parameters} - {frozenset()})
    least = max(MIN_SHARING, SHARED * len(profiles))
    return {subject for subject, count in counts.items() if count >= least}


def _subject(parameter: Parameter) -> frozenset[str]:
    """Return the words of a parameter without `id`; none if they are too generic."""
    words = frozenset(parameter_phrase(parameter.name)) - ROLES
    return words - {"id"} if len(words) > 1 or not words <= GENERIC else frozenset()


@dataclass(frozen=True, slots=True)
class Need:
    """What a parameter needs.

    Attributes:
        words: a noun phrase; `core` is its words without `ROLES`.
        text: the words of the tool.
    """

    words: tuple[str, ...]
    core: frozenset[str]
    text: frozenset[str]
    has_choices: bool

    def fit(self, provided: Provided) -> Fit | None:
        """Return how what is provided fits; None if it does not.

        The last words have to agree, where English puts the main noun, and the words of the asking
        tool have to explain what more is provided.
        """
        needs, gives, head = self.core, provided.core, self.words[-1]
        if provided.contextual and needs - CONTEXT <= gives:
            return "here"
        too_generic = needs <= GENERIC and (len(needs) == 1 or head not in ID_NOUNS)
        if self.has_choices or head not in gives or too_generic:
            return None
        if needs == gives:
            return "exact"
        explained = needs < gives and gives - needs <= self.text
        return "narrow" if explained and not gives <= GENERIC else None


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
        shared: the subjects of parameters that make no edge.
    """

    def __init__(self, profiles: Sequence[ToolProfile], shared: Set[frozenset[str]]) -> None:
        self._profiles = profiles
        self._shared = shared
        self._rarity = _word_rarity(profiles)
        self._offers: dict[Phrase, list[tuple[int, Provided]]] = defaultdict(list)
        for position, profile in enumerate(profiles):
            for provided in profile.provides:
                keys = {_key(provided.words)}
                for key in keys | {provided.words[-1:]} if provided.contextual else keys:
                    self._offers[key].append((position, provided))
        self._collections = _collections(profiles)

    def edges(self) -> Iterator[Edge]:
        """Yield the edges from tools to those that provide their parameters."""
        for position, profile in enumerate(self._profiles):
            for parameter in profile.parameters:
                if _subject(parameter) in self._shared:
                    continue
                collection = self._collection(position, parameter)
                if collection is not None and collection.confidence == CONFIDENCE["collection"]:
                    yield collection
                    continue
                matches = self._matches_of(position, parameter)
                creates = bool(matches) and matches[0].kind == "id-created"
                if collection is not None and (not matches or creates):
                    yield collection
                else:
                    yield from self._matched_edges(position, parameter, matches)

    def _matches_of(self, position: int, parameter: Parameter) -> Sequence[_Match]:
        for need in needs_of(self._profiles[position], parameter):
            if matches := self._matches(position, need):
                return self._winners(matches)
        return []

    def _collection(self, position: int, parameter: Parameter) -> Edge | None:
        """Return the edge to the tool at the path before this parameter, which provides it."""
        profile = self._profiles[position]
        prefix = profile.address.prefix_of(parameter.name)
        target = self._collections.get(prefix) if prefix else None
        if target is None or target == position or is_personal(parameter):
            return None
        if not parameter.takes_values or parameter.has_choices:
            return None
        what = " ".join(profile.address.resource_before(parameter.name) or (parameter.name,))
        provider = self._profiles[target]
        kind = "collection" if provider.lists else "id-created"
        direct = parameter.required and provider.lists
        return _edge(profile.tool, provider.tool, parameter.name, direct, kind, what)

    def _matched_edges(
        self, position: int, parameter: Parameter, matches: Sequence[_Match]
    ) -> Iterator[Edge]:
        source = self._profiles[position].tool
        for match in matches[:MAX_TARGETS]:
            provider = self._profiles[match.tool]
            # What creates a thing returns its id as well, but a request about a thing that exists
            # does not need it.
            creates = provider.verb in CREATING
            direct = parameter.required and not creates and match.kind != "here"
            what = " ".join(match.provided.words)
            yield _edge(source, provider.tool, parameter.name, direct, match.kind, what)

    def _matches(self, position: int, need: Need) -> list[_Match]:
        profile = self._profiles[position]
        best: dict[int, _Match] = {}
        for other, provided in self._candidates(need):
            provider = self._profiles[other]
            fit = self._fit(position, need, other, provided)
            kind = _kind(fit, need, provided) if fit else None
            if fit is None or kind is None:
                continue
            unknown = self._unknown_arguments(profile, provider)
            if kind in _ASIDE and not _is_at_hand(profile, provider, unknown):
                continue
            shared = (profile.name_words & provider.name_words) - need.core
            rarest = max((self._rarity.get(word, 0.0) for word in shared), default=0.0)
            score = _FIT_SCORES[fit] + _ORIGIN_SCORES[provided.origin]
            score += _nearness(profile.address, provider.address, rarest)
            score -= _UNKNOWN_ARGUMENT * unknown
            if other not in best or best[other].score < score:
                best[other] = _Match(other, kind, score, provided)
        return list(best.values())

    def _candidates(self, need: Need) -> Iterator[tuple[int, Provided]]:
        """Yield the first tools that provide the noun that is needed, and what they provide."""
        for key in dict.fromkeys((_key(need.words), need.words[-1:])):
            yield from self._offers.get(key, ())[:MAX_COMPARED]

    def _unknown_arguments(self, profile: ToolProfile, provider: ToolProfile) -> int:
        own = {frozenset(parameter_phrase(parameter.name)) for parameter in profile.parameters}
        unknown = 0
        for parameter in provider.parameters:
            words = frozenset(parameter_phrase(parameter.name))
            unknown += parameter.required and words not in own and not words & SEARCHED
        return min(2, unknown)

    def _fit(self, position: int, need: Need, other: int, provided: Provided) -> Fit | None:
        profile, segments = self._profiles[position], self._profiles[other].address.segments
        same = other == position or (segments and segments == profile.address.segments)
        # What sets a value does not need the value that it replaces.
        sets = provided.origin == "named" and profile.verb in CHANGING
        if same or (sets and set(provided.words) <= set(profile.parsed.phrase)):
            return None
        return need.fit(provided)

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
    entity = profile.parsed.phrase
    for phrase in phrases_of(parameter, entity, profile.address):
        # What creates a thing gives it the id that it takes.
        creates = profile.verb in CREATING and set(entity) == set(phrase[:-1])
        if creates and phrase[-1] in ID_NOUNS:
            continue
        if core := frozenset(phrase) - ROLES:
            yield Need(phrase, core, profile.text_words, parameter.has_choices)


def _key(words: Phrase) -> Phrase:
    """Return what two noun phrases share if they fit: the last word, or two where it is generic."""
    return words[-2:] if words[-1] in ID_NOUNS or words[-1] in GENERIC else words[-1:]


def _word_rarity(profiles: Sequence[ToolProfile]) -> Mapping[str, float]:
    """Return the information, in nats, of each word of the names of an agent's tools but verbs."""
    verbs = verb_forms().keys()
    counts = Counter(word for profile in profiles for word in profile.name_words - verbs)
    return {word: log((1 + len(profiles)) / count) for word, count in counts.items()}


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


def _kind(fit: Fit, need: Need, provided: Provided) -> Kind | None:
    """Return which kind of evidence a fit is; None for none worth an edge."""
    is_id = need.words[-1] in ID_NOUNS
    if fit == "here":
        return "here"
    if provided.origin in {"listed", "found"}:
        return "id-found"
    if provided.origin == "created":
        return "id-created"
    return "id-named" if is_id else "named" if fit == "exact" else None


# --- A tool as a whole needs another ---

_LOGIN_PAIRS = {("log", "in"), ("sign", "in"), ("log", "on")}


@dataclass(frozen=True, slots=True)
class _Switch:
    """A state that one tool reads and another turns on and off."""

    words: frozenset[str]
    what: str
    reader: int
    changer: int


class _Preconditions:
    """What has to be so before tools of an agent can work; tools are positions in `profiles`.

    - login: `cancel_uber_ride` needs `login_to_uber`; a `session_id` comes from the login of the
      same service.
    - check: an `email` can be validated by the tool that validates emails.
    - state: `set_wifi_status` switches what `get_wifi_status` tells.
    - connection: where an agent can read and switch the connection of the device it works on, its
      tools that reach out need that. Nothing in their texts says so; Graph RAG-Tool Fusion (section
      3.1.3) calls it "tool directly depends on".
    """

    def __init__(self, profiles: Sequence[ToolProfile]) -> None:
        self.profiles = profiles
        self.positions = range(len(profiles))
        self.switches = list(self._switches())

    def edges(self) -> Iterator[Edge]:
        """Yield the edges between tools that need each other as a whole."""
        yield from self._logins()
        yield from self._checks()
        yield from self._state_changes()
        yield from self._connections()

    def _edge(
        self, source: int, target: int, parameter: Parameter | None, kind: Kind, what: str
    ) -> Edge:
        direct = kind != "state-switch" and (parameter is None or parameter.required)
        name = parameter.name if parameter else None
        return _edge(
            self.profiles[source].tool, self.profiles[target].tool, name, direct, kind, what
        )

    def _logins(self) -> Iterator[Edge]:
        """Yield what needs a login: tools that take its session, or that name its service."""
        services = {
            at: service
            for at in self.positions
            if (service := _service(self.profiles[at])) is not None
        }
        only = list(services) if len(services) == 1 else []
        for at in self.positions:
            if at in services or not services:
                continue
            profile = self.profiles[at]
            named = [
                login
                for login, service in services.items()
                if service and service <= profile.name_words
            ]
            secret = _secret_parameter(profile)
            if secret is not None:
                for login in (named or only)[:1]:
                    what = " ".join(words_of(secret.name))
                    yield self._edge(at, login, secret, "session", what)
            elif named:
                login = named[0]
                name = words_of(self.profiles[login].tool.name)
                what = " ".join(word for word in name if word in services[login])
                yield self._edge(at, login, None, "login", what)

    def _checks(self) -> Iterator[Edge]:
        """Yield which parameters another tool can validate."""
        checks: dict[frozenset[str], int] = {}
        for at in self.positions:
            if (subject := _checked_subject(self.profiles[at])) is not None:
                checks.setdefault(subject, at)
        for at in self.positions if checks else ():
            for parameter in self.profiles[at].parameters:
                words = noun_phrase(words_of(parameter.name))
                core = frozenset(words) - GENERIC - ROLES
                target = checks.get(core)
                if target is None or target == at or not parameter.takes_values:
                    continue
                yield self._edge(at, target, parameter, "check", " ".join(words))

    def _state_changes(self) -> Iterator[Edge]:
        """Yield readers and changers of a state, and tools whose names say that they need it."""
        switches: dict[frozenset[str], _Switch] = {}
        for switch in self.switches:
            yield self._edge(switch.reader, switch.changer, None, "state-switch", switch.what)
            if words := switch.words - STATE_ENDINGS:
                switches[words] = switch
        in_order = sorted(switches.items(), key=lambda item: sorted(item[0]))
        for at in self.positions if switches else ():
            profile = self.profiles[at]
            name, phrase = profile.name_words, frozenset(profile.parsed.phrase)
            for words, state in in_order:
                if (words <= phrase or words <= name) and at not in (state.reader, state.changer):
                    yield self._edge(at, state.reader, None, "state-needed", state.what)

    def _connections(self) -> Iterator[Edge]:
        """Yield the tools that need a network, if the agent controls the device's connection."""
        connections = [switch for switch in self.switches if switch.words & CONNECTION]
        if not connections:
            return

        def closeness(switch: _Switch) -> tuple[int, str]:
            reader = self.profiles[switch.reader]
            return len(reader.text_words & CONNECTION), reader.tool.id

        best = max(connections, key=closeness)
        device = self._device_words()
        for at in self.positions:
            profile = self.profiles[at]
            local = (
                profile.verb in MAKING | CHECKING
                or device & set(profile.parsed.phrase)
                or any(provided.contextual for provided in profile.provides)
            )
            if not local and at not in (best.reader, best.changer):
                yield self._edge(at, best.reader, None, "connection", best.what)

    def _switches(self) -> Iterator[_Switch]:
        readers: dict[frozenset[str], int] = {}
        for at in self.positions:
            if self.profiles[at].parsed.verb in READING:
                readers.setdefault(_state_words(self.profiles[at]), at)
        for at in self.positions:
            profile, words = self.profiles[at], _state_words(self.profiles[at])
            turns = profile.parsed.verb in CHANGING and _is_switch(profile)
            if turns and words in readers and not words <= GENERIC:
                what = " ".join((*profile.parsed.before, *profile.parsed.phrase))
                yield _Switch(words, what, readers[words], at)

    def _device_words(self) -> set[str]:
        words = {word for switch in self.switches for word in switch.words}
        for at in self.positions:
            for provided in self.profiles[at].provides:
                if provided.contextual:
                    words |= set(provided.words)
        return words - (ROLES | GENERIC | STATE_ENDINGS)


def _service(profile: ToolProfile) -> frozenset[str] | None:
    """Return the words for the service of a login tool; None for any other tool."""
    words = words_of(profile.tool.name)
    ends = {words[0], words[-1], words[:2], words[-2:]} if words else set()
    if not ends & (LOGIN | _LOGIN_PAIRS):  # `login_to_acme`, `acme_log_in`; no `list_login_links`
        return None
    return frozenset(words) - LOGIN_WORDS - verb_forms().keys()


def _secret_parameter(profile: ToolProfile) -> Parameter | None:
    """Return the first parameter that takes a login's session."""
    for parameter in profile.parameters:
        in_path = profile.address.resource_before(parameter.name) is not None
        if set(words_of(parameter.name)) & SECRETS and parameter.takes_values and not in_path:
            return parameter
    return None


def _checked_subject(profile: ToolProfile) -> frozenset[str] | None:
    """Return the words for what a tool validates; None if it does not validate one argument."""
    if profile.parsed.verb not in CHECKING:
        return None
    required = [
        frozenset(words_of(parameter.name)) - GENERIC - ROLES
        for parameter in profile.parameters
        if parameter.required
    ]
    if len(required) == 1 and required[0] and required[0] <= set(profile.parsed.phrase):
        return required[0]
    return None


def _state_words(profile: ToolProfile) -> frozenset[str]:
    return frozenset((*profile.parsed.before, *profile.parsed.phrase))


def _is_switch(profile: ToolProfile) -> bool:
    """Whether a tool turns something on and off."""
    required = [parameter for parameter in profile.parameters if parameter.required]
    return len(required) == 1 and required[0].types == {"boolean"}


# --- Names of tools in descriptions ---

_NAME = re.compile(r"[A-Za-z0-9]+(?:[._-]?[A-Za-z0-9]+)+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|。")
_BEFORE = re.compile(
    r"(?i)\b(?:first|(?:before|after) (?:us|call)ing|prior|obtained (?:by|from|using|via)"
    r"|returned (?:by|from)|output of|results? of)\b|先|从"
)


def _mentions(profiles: Sequence[ToolProfile], shared: Set[frozenset[str]]) -> Iterator[Edge]:
    """Yield where descriptions of tools or parameters name a tool that has to be called before.

    A name has to be an identifier of two words or more, because `search` is also a word.
    """
    tools = [profile.tool for profile in profiles]
    siblings = {tool.name: tool for tool in tools if len(words_of(tool.name)) > 1}
    for profile in profiles:
        tool = profile.tool
        for parameter in profile.parameters:
            if _subject(parameter) in shared or not parameter.takes_values:
                continue
            name, required = parameter.name, parameter.required
            for target, sentence in _named_tools(parameter.description, siblings, tool):
                if required or _BEFORE.search(sentence):
                    yield _edge(tool, target, name, required, "mentioned", name)
        for target, sentence in _named_tools(tool.description, siblings, tool):
            if _BEFORE.search(sentence):
                yield _edge(tool, target, None, True, "mentioned-before", tool.name)


def _named_tools(
    description: str, siblings: Mapping[str, Tool], own: Tool
) -> Iterator[tuple[Tool, str]]:
    """Yield each named tool with its sentence."""
    text = description[:MAX_DESCRIPTION]
    if siblings.keys().isdisjoint(_NAME.findall(text)):
        return
    for sentence in _SENTENCE.split(text):
        for name in _NAME.findall(sentence):
            target = siblings.get(name)
            if target is not None and target is not own:
                yield target, sentence
