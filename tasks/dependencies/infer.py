"""Infer dependencies that no catalog declares from names, schemas, paths and descriptions.

All rules are here; `profiles.py` reads the tools, `words.toml` has the words. Only tools of one
agent are compared, and every edge names the kind of its evidence. On ToolLinkOS, which declares its
dependencies, the table shows how many of the inferred edges are declared, in two halves by the
parity of the first byte of the sha256 of the dependent tool's name. The rules were written with the
entire catalog in view, so neither half is unseen.

    kind           even       odd        kind           even       odd
    id-named       72/72      51/51      check          30/30      20/20
    session        66/66      57/57      login          11/11      11/12
    here           133/146    100/108    connection     183/242    157/235
    id-found       8/8        4/4        mentioned      18/18      6/6
    named          21/25      15/32

A confidence is about the lowest of the two shares and of the precision judged by hand in samples of
some 60 edges of real MCP servers and of two collections of functions with output schemas, and at
most .9.

No encoder is used. Where words do not match, the tool nearest to a parameter by embedding was right
for one parameter in five (ToolLinkOS, all-MiniLM-L6-v2, at every threshold): most often it is a
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
"""Raise this when the same tools give other inferred edges."""
MAX_EDGES = 8
"""Largest number of inferred dependencies of a tool; a request gets some ten tools."""
MAX_DESCRIPTION = 4_000
"""Largest number of characters of a description that are searched for names of tools."""

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
    """Return the type of an edge for a parameter, or for the tool in general if that is None."""
    if parameter is None:
        return "tool-directly-depends-on" if direct else "tool-indirectly-depends-on"
    return "parameter-directly-depends-on" if direct else "parameter-indirectly-depends-on"


def _edge(
    source: Tool, target: Tool, parameter: str | None, direct: bool, kind: Kind, what: str
) -> Edge:
    """Return an inferred edge.

    Args:
        what: words for the value or state that the target provides, returns or changes.
    """
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
    """Infer the edges between one agent's tools: for each pair of tools, the edge with the
    strongest evidence for each parameter and for the tool in general, at most `MAX_EDGES` for each
    tool.

    Args:
        tools: all tools of the agent, sorted by id.
    """
    profiles = [profile_of(tool) for tool in tools]
    shared = shared_subjects(profiles)
    parameters = ParameterMatcher(profiles, shared).edges()
    edges = (*parameters, *_mentions(profiles, shared), *_Preconditions(profiles).edges())
    strongest: dict[tuple[str, str, str | None], Edge] = {}
    mentioned: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for edge in sorted(edges, key=_strength):
        if edge.evidence.startswith("mentioned: "):
            mentioned[edge.source, edge.parameter].add(edge.target)
        strongest.setdefault((edge.source, edge.target, edge.parameter), edge)
    counts: Counter[str] = Counter()
    result: list[Edge] = []
    for edge in strongest.values():
        # If a description names the tool that provides a parameter, other edges are not needed.
        if edge.target not in mentioned.get((edge.source, edge.parameter), {edge.target}):
            continue
        counts[edge.source] += 1
        if counts[edge.source] <= MAX_EDGES:
            result.append(edge)
    return result


def _strength(edge: Edge) -> tuple[float, str, str, str]:
    return -edge.confidence, edge.target, edge.parameter or "", edge.evidence


# --- A parameter needs what another tool provides ---

MAX_RIVALS = 3
"""Largest number of providers with an equal score; with more, none is chosen."""
MAX_COMPARED = 100
"""Largest number of providers of a noun that are compared with one parameter."""
MAX_TARGETS = 2
"""Largest number of targets of one parameter."""
SHARED = 0.25
"""Share of an agent's tools from which the value of a common parameter counts as known to callers.
"""
MIN_SHARING = 10
"""Smallest number of tools with such a parameter; with fewer, a tool may well list its values."""
TIE = 0.5
"""Largest difference of scores that counts as equal."""

Fit = Literal["exact", "here", "narrow"]
_FIT_SCORES: dict[Fit, float] = {"exact": 8.0, "here": 6.0, "narrow": 4.0}
_ORIGIN_SCORES: dict[Origin, float] = {
    "listed": 2.0, "named": 0.6, "found": 0.4, "created": 0.0,
}  # fmt: skip
_UNKNOWN_ARGUMENT = 0.6
"""Penalty of a provider for each required argument, up to two, that the consumer does not have."""
_SAME_PATH = 2.0
"""Bonus of a provider whose path is a prefix of the consumer's."""
_ONLY_BELOW: frozenset[Kind] = frozenset({"named", "id-named", "id-created"})
"""Kinds of values that a tool of an HTTP API provides only to tools below it in the path."""


def shared_subjects(profiles: Sequence[ToolProfile]) -> set[frozenset[str]]:
    """Return the subjects of parameters that many of an agent's tools have."""
    counts: Counter[frozenset[str]] = Counter()
    for profile in profiles:
        # `id` alone has no subject: it means another thing in each tool.
        counts.update({_subject(parameter) for parameter in profile.parameters} - {frozenset()})
    min_count = max(MIN_SHARING, SHARED * len(profiles))
    return {subject for subject, count in counts.items() if count >= min_count}


def _subject(parameter: Parameter) -> frozenset[str]:
    """Return the words of a parameter without `id`; empty if they are too generic."""
    words = frozenset(parameter_phrase(parameter.name)) - ROLES
    return words - {"id"} if len(words) > 1 or not words <= GENERIC else frozenset()


@dataclass(frozen=True, slots=True)
class Need:
    """The value that a parameter needs.

    Attributes:
        words: a noun phrase for the value.
        core: its words without `ROLES`.
        text: the words of the parameter's tool.
        has_choices: whether the parameter's values are an enumeration.
    """

    words: tuple[str, ...]
    core: frozenset[str]
    text: frozenset[str]
    has_choices: bool

    def fit(self, provided: Provided) -> Fit | None:
        """Return how well a provided value fits; None if it does not.

        The main noun, which is the last word, must be equal, and additional words of the provided
        value must be in the text of the parameter's tool.
        """
        needed_words = self.core
        provided_words = provided.core
        main_noun = self.words[-1]
        if provided.contextual and needed_words - CONTEXT <= provided_words:
            return "here"
        too_generic = needed_words <= GENERIC and (
            len(needed_words) == 1 or main_noun not in ID_NOUNS
        )
        if self.has_choices or main_noun not in provided_words or too_generic:
            return None
        if needed_words == provided_words:
            return "exact"
        is_narrower = needed_words < provided_words
        is_explained = provided_words - needed_words <= self.text
        if is_narrower and is_explained and not provided_words <= GENERIC:
            return "narrow"
        return None


@dataclass(frozen=True, slots=True)
class _Match:
    tool: int
    kind: Kind
    score: float
    provided: Provided


class ParameterMatcher:
    """Matches the parameters of an agent's tools with the tools that provide their values.

    Args:
        profiles: the profiles of all tools of the agent.
        shared: the subjects of parameters that get no edge.
    """

    def __init__(self, profiles: Sequence[ToolProfile], shared: Set[frozenset[str]]) -> None:
        self._profiles = profiles
        self._shared = shared
        self._rarity = _word_rarity(profiles)
        self._offers: dict[Phrase, list[tuple[int, Provided]]] = defaultdict(list)
        for position, profile in enumerate(profiles):
            for provided in profile.provides:
                keys = {_key(provided.words)}
                if provided.contextual:
                    keys.add(provided.words[-1:])
                for key in keys:
                    self._offers[key].append((position, provided))
        self._collections = _collections(profiles)

    def edges(self) -> Iterator[Edge]:
        """Yield the edges from tools to the providers of their parameters."""
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
        """Return the edge to the tool at the path before this parameter, if that provides its
        value.
        """
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
            # A tool that creates a thing returns its id, too, but a request about an existing thing
            # does not need that tool.
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
            if kind in _ONLY_BELOW and not _is_at_hand(profile, provider, unknown):
                continue
            common_words = (profile.name_words & provider.name_words) - need.core
            rarest = max((self._rarity.get(word, 0.0) for word in common_words), default=0.0)
            score = _FIT_SCORES[fit] + _ORIGIN_SCORES[provided.origin]
            score += _nearness(profile.address, provider.address, rarest)
            score -= _UNKNOWN_ARGUMENT * unknown
            if other not in best or best[other].score < score:
                best[other] = _Match(other, kind, score, provided)
        return list(best.values())

    def _candidates(self, need: Need) -> Iterator[tuple[int, Provided]]:
        """Yield the first providers of the needed noun, and the values that they provide."""
        for key in dict.fromkeys((_key(need.words), need.words[-1:])):
            yield from self._offers.get(key, ())[:MAX_COMPARED]

    def _unknown_arguments(self, profile: ToolProfile, provider: ToolProfile) -> int:
        """Return the number of required arguments of a provider that a tool does not have, at most
        2.
        """
        available = {
            frozenset(parameter_phrase(parameter.name)) for parameter in profile.parameters
        }
        unknown = 0
        for parameter in provider.parameters:
            words = frozenset(parameter_phrase(parameter.name))
            if parameter.required and words not in available and not words & SEARCHED:
                unknown += 1
        return min(2, unknown)

    def _fit(self, position: int, need: Need, other: int, provided: Provided) -> Fit | None:
        profile = self._profiles[position]
        segments = self._profiles[other].address.segments
        is_same_resource = segments and segments == profile.address.segments
        if other == position or is_same_resource:
            return None
        # A tool that sets a value does not need the old value.
        may_set = provided.origin == "named" and profile.verb in CHANGING
        if may_set and set(provided.words) <= set(profile.parsed.phrase):
            return None
        return need.fit(provided)

    def _winners(self, matches: Sequence[_Match]) -> Sequence[_Match]:
        """Return the matches with the best score, best first; none if there are too many."""
        best_score = max(match.score for match in matches)
        best = [match for match in matches if match.score >= best_score - TIE]
        if len(best) > MAX_RIVALS:
            return []
        return sorted(best, key=lambda match: (-match.score, self._profiles[match.tool].tool.id))


def needs_of(profile: ToolProfile, parameter: Parameter) -> Iterator[Need]:
    """Yield the values that a parameter may need, the most likely first."""
    words = parameter_phrase(parameter.name)
    if not words or words[-1] in ROLES or not parameter.takes_values:
        return
    entity = profile.parsed.phrase
    for phrase in phrases_of(parameter, entity, profile.address):
        # A tool that creates a thing and takes its id chooses the id.
        creates = profile.verb in CREATING and set(entity) == set(phrase[:-1])
        if creates and phrase[-1] in ID_NOUNS:
            continue
        if core := frozenset(phrase) - ROLES:
            yield Need(phrase, core, profile.text_words, parameter.has_choices)


def _key(words: Phrase) -> Phrase:
    """Return the words that matching noun phrases have in common: the last one, or the last two if
    the last is generic.
    """
    return words[-2:] if words[-1] in ID_NOUNS or words[-1] in GENERIC else words[-1:]


def _word_rarity(profiles: Sequence[ToolProfile]) -> Mapping[str, float]:
    """Return the information in nats of each word, but verbs, in the names of the tools."""
    verbs = verb_forms().keys()
    counts = Counter(word for profile in profiles for word in profile.name_words - verbs)
    return {word: log((1 + len(profiles)) / count) for word, count in counts.items()}


def _collections(profiles: Sequence[ToolProfile]) -> Mapping[tuple[str, ...], int]:
    """Return for each path the position of the tool that lists, or else creates, its resources."""
    lists: dict[tuple[str, ...], int] = {}
    creates: dict[tuple[str, ...], int] = {}
    for position, profile in enumerate(profiles):
        if profile.address.segments[-1:] in {(), ("{}",)}:
            continue
        if profile.lists:
            lists.setdefault(profile.address.segments, position)
        if profile.verb in CREATING:
            creates.setdefault(profile.address.segments, position)
    return {**creates, **lists}


def _is_at_hand(profile: ToolProfile, provider: ToolProfile, unknown: int) -> bool:
    """Return whether a provider can be called where a tool is called: it has no path, or its parent
    path is a prefix of the tool's path and it needs no other argument.
    """
    parent = provider.address.segments[:-1]
    is_prefix = parent == profile.address.segments[: len(parent)]
    return not provider.address.segments or (is_prefix and not unknown)


def _nearness(consumer: Address, provider: Address, rarest: float) -> float:
    """Return a score that grows with the rarity of common words in the names of two tools, and with
    the part of the provider's path that is a prefix of the consumer's.
    """
    if not consumer.segments or not provider.segments:
        return rarest
    common = 0
    for left, right in zip(consumer.segments, provider.segments, strict=False):
        if left != right:
            break
        common += 1
    return _SAME_PATH * common / len(provider.segments) + min(rarest, 0.5)


def _kind(fit: Fit, need: Need, provided: Provided) -> Kind | None:
    """Return the kind of evidence of a fit; None if it does not justify an edge."""
    if fit == "here":
        return "here"
    if provided.origin in {"listed", "found"}:
        return "id-found"
    if provided.origin == "created":
        return "id-created"
    if need.words[-1] in ID_NOUNS:
        return "id-named"
    return "named" if fit == "exact" else None


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
    """Finds tools that must be called before other tools of an agent. Tools are positions in
    `profiles`.

    - login: `cancel_uber_ride` needs `login_to_uber`; a `session_id` comes from the login of the
      same service.
    - check: an `email` can be validated by the tool that validates emails.
    - state: `set_wifi_status` switches the state that `get_wifi_status` returns.
    - connection: if an agent can read and switch the connection of its device, its tools that use
      the network depend on that, though their texts do not say so. Graph RAG-Tool Fusion (section
      3.1.3) calls this "tool directly depends on".
    """

    def __init__(self, profiles: Sequence[ToolProfile]) -> None:
        self.profiles = profiles
        self.positions = range(len(profiles))
        self.switches = list(self._switches())

    def edges(self) -> Iterator[Edge]:
        """Yield the edges between tools, independent of a value that one gets from the other."""
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
        """Yield the tools that need a login: they take its session, or name its service."""
        services = {
            position: service
            for position in self.positions
            if (service := _service(self.profiles[position])) is not None
        }
        if not services:
            return
        only_login = list(services) if len(services) == 1 else []
        for position in self.positions:
            if position in services:
                continue
            profile = self.profiles[position]
            logins = [
                login
                for login, service in services.items()
                if service and service <= profile.name_words
            ]
            session = _session_parameter(profile)
            if session is not None:
                for login in (logins or only_login)[:1]:
                    what = " ".join(words_of(session.name))
                    yield self._edge(position, login, session, "session", what)
            elif logins:
                login = logins[0]
                login_words = words_of(self.profiles[login].tool.name)
                what = " ".join(word for word in login_words if word in services[login])
                yield self._edge(position, login, None, "login", what)

    def _checks(self) -> Iterator[Edge]:
        """Yield the parameters that another tool can validate."""
        validators: dict[frozenset[str], int] = {}
        for position in self.positions:
            if (subject := _checked_subject(self.profiles[position])) is not None:
                validators.setdefault(subject, position)
        if not validators:
            return
        for position in self.positions:
            for parameter in self.profiles[position].parameters:
                words = noun_phrase(words_of(parameter.name))
                core = frozenset(words) - GENERIC - ROLES
                target = validators.get(core)
                if target is None or target == position or not parameter.takes_values:
                    continue
                yield self._edge(position, target, parameter, "check", " ".join(words))

    def _state_changes(self) -> Iterator[Edge]:
        """Yield the readers of a state that can be switched, and the tools that use the state."""
        switches: dict[frozenset[str], _Switch] = {}
        for switch in self.switches:
            yield self._edge(switch.reader, switch.changer, None, "state-switch", switch.what)
            if words := switch.words - STATE_ENDINGS:
                switches[words] = switch
        sorted_switches = sorted(switches.items(), key=lambda item: sorted(item[0]))
        for position in self.positions:
            profile = self.profiles[position]
            phrase = frozenset(profile.parsed.phrase)
            for words, switch in sorted_switches:
                is_named = words <= phrase or words <= profile.name_words
                if is_named and position not in (switch.reader, switch.changer):
                    yield self._edge(position, switch.reader, None, "state-needed", switch.what)

    def _connections(self) -> Iterator[Edge]:
        """Yield the tools that need a network, if the agent can switch the device's connection."""
        connections = [switch for switch in self.switches if switch.words & CONNECTION]
        if not connections:
            return

        def closeness(switch: _Switch) -> tuple[int, str]:
            reader = self.profiles[switch.reader]
            return len(reader.text_words & CONNECTION), reader.tool.id

        connection = max(connections, key=closeness)
        device_words = self._device_words()
        for position in self.positions:
            profile = self.profiles[position]
            is_local = (
                profile.verb in MAKING | CHECKING
                or device_words & set(profile.parsed.phrase)
                or any(provided.contextual for provided in profile.provides)
            )
            if not is_local and position not in (connection.reader, connection.changer):
                yield self._edge(position, connection.reader, None, "connection", connection.what)

    def _switches(self) -> Iterator[_Switch]:
        """Yield the states that one tool reads and another switches."""
        readers: dict[frozenset[str], int] = {}
        for position, profile in enumerate(self.profiles):
            if profile.parsed.verb in READING:
                readers.setdefault(_state_words(profile), position)
        for position, profile in enumerate(self.profiles):
            words = _state_words(profile)
            switches = profile.parsed.verb in CHANGING and _is_switch(profile)
            if switches and words in readers and not words <= GENERIC:
                what = " ".join((*profile.parsed.before, *profile.parsed.phrase))
                yield _Switch(words, what, readers[words], position)

    def _device_words(self) -> set[str]:
        """Return the words for the device: its states, and values of its context."""
        words = {word for switch in self.switches for word in switch.words}
        for profile in self.profiles:
            for provided in profile.provides:
                if provided.contextual:
                    words |= set(provided.words)
        return words - (ROLES | GENERIC | STATE_ENDINGS)


def _service(profile: ToolProfile) -> frozenset[str] | None:
    """Return the words for the service of a login tool; None for any other tool."""
    words = words_of(profile.tool.name)
    ends = {words[0], words[-1], words[:2], words[-2:]} if words else set()
    if not ends & (
        LOGIN | _LOGIN_PAIRS
    ):  # `login_to_acme` and `acme_log_in`, not `list_login_links`
        return None
    return frozenset(words) - LOGIN_WORDS - verb_forms().keys()


def _session_parameter(profile: ToolProfile) -> Parameter | None:
    """Return the first parameter that takes the session of a login."""
    for parameter in profile.parameters:
        in_path = profile.address.resource_before(parameter.name) is not None
        if set(words_of(parameter.name)) & SECRETS and parameter.takes_values and not in_path:
            return parameter
    return None


def _checked_subject(profile: ToolProfile) -> frozenset[str] | None:
    """Return the words of the argument that a tool validates; None for any other tool."""
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
    """Return whether a tool switches something on and off."""
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
    """Yield edges to tools that descriptions of tools or parameters name as to be called before.

    A name must be an identifier of at least two words, because `search` is also a word.
    """
    tools = [profile.tool for profile in profiles]
    siblings = {tool.name: tool for tool in tools if len(words_of(tool.name)) > 1}
    for profile in profiles:
        tool = profile.tool
        for parameter in profile.parameters:
            if _subject(parameter) in shared or not parameter.takes_values:
                continue
            name = parameter.name
            for target, sentence in _named_tools(parameter.description, siblings, tool):
                if parameter.required or _BEFORE.search(sentence):
                    yield _edge(tool, target, name, parameter.required, "mentioned", name)
        for target, sentence in _named_tools(tool.description, siblings, tool):
            if _BEFORE.search(sentence):
                yield _edge(tool, target, None, True, "mentioned-before", tool.name)


def _named_tools(
    description: str, siblings: Mapping[str, Tool], tool: Tool
) -> Iterator[tuple[Tool, str]]:
    """Yield each other tool that a description of this tool names, with its sentence."""
    text = description[:MAX_DESCRIPTION]
    if siblings.keys().isdisjoint(_NAME.findall(text)):
        return
    for sentence in _SENTENCE.split(text):
        for name in _NAME.findall(sentence):
            target = siblings.get(name)
            if target is not None and target is not tool:
                yield target, sentence
