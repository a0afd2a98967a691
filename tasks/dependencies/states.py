"""Edges between whole tools: preconditions of a call.

- login: `cancel_uber_ride` needs `login_to_uber`; a `session_id` comes from the login of the same
  service.
- check: an `email` can be validated by the tool that validates emails.
- state: `set_wifi_status` switches what `get_wifi_status` tells.
- connection: where an agent can read and switch the connection of the device it works on, its tools
  that reach out need that.

Graph RAG-Tool Fusion (section 3.1.3) calls the last kind "tool directly depends on": nothing in the
text of a tool says so, but that it reaches out and that its agent controls the connection. Only
tools of one agent are compared."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pegboard.records import DependencyType
from tasks.dependencies.evidence import Evidence, Kind, dependency_type
from tasks.dependencies.language import (
    CHANGING,
    CHECKING,
    CONNECTION,
    GENERIC,
    MAKING,
    READING,
    ROLES,
    SECRETS,
    STATE_ENDINGS,
    noun_phrase,
    verb_forms,
    words_of,
)
from tasks.dependencies.profiles import ToolProfile
from tasks.dependencies.schemas import Parameter

COMMON = 0.05
"""Share of an agent's tools whose names have a word, above which it names no service or state."""
_LOGIN = frozenset({"login", "logon", "signin", "authenticate", "authorize"})
_LOGIN_PAIRS = {("log", "in"), ("sign", "in"), ("log", "on")}
_LOGIN_WORDS = _LOGIN | frozenset(
    ["log", "sign", "in", "on", "to", "into", "user", "account", "app", "check", "status"]
)
_PRIVATE = frozenset({"password", "pin", "secret"})
"""Arguments that the consuming tool itself checks."""


def state_evidence(profiles: Sequence[ToolProfile]) -> Iterator[Evidence]:
    """Yield the evidence that tools of an agent need each other as a whole."""
    agent = _Agent(profiles)
    yield from agent.logins()
    yield from agent.checks()
    yield from agent.state_changes()
    yield from agent.connections()


_StateKey = tuple[frozenset[str], frozenset[str], tuple[str, ...]]
"""The words of a state, those before the verb, and the path."""


@dataclass(frozen=True, slots=True)
class _State:
    """A state, or a thing, that one tool reads and another changes; a switch is on or off."""

    words: frozenset[str]
    what: str
    reader: int
    changer: int
    switch: bool


class _Agent:
    """The tools of one agent, as positions in `profiles`."""

    def __init__(self, profiles: Sequence[ToolProfile]) -> None:
        self.profiles = profiles
        self.positions = range(len(profiles))
        counts = Counter(word for profile in profiles for word in profile.name_words)
        limit = max(2, COMMON * len(profiles))
        self.common = frozenset(word for word, count in counts.items() if count > limit)
        self.states = list(self._states())

    def _evidence(
        self,
        source: int,
        target: int,
        type_: DependencyType,
        parameter: str | None,
        kind: Kind,
        what: str,
    ) -> Evidence:
        ids = self.profiles[source].tool.id, self.profiles[target].tool.id
        return Evidence(*ids, type_, parameter, kind, what)

    def logins(self) -> Iterator[Evidence]:
        """Yield what needs a login: tools that take its session, or that name its service."""
        services = {
            at: service
            for at in self.positions
            if (service := _service(self.profiles[at])) is not None
        }
        if not services:
            return
        direct = dependency_type(None, True)
        only = list(services) if len(services) == 1 else []
        for at in self.positions:
            if at in services:
                continue
            profile = self.profiles[at]
            named = [
                login
                for login, service in services.items()
                if service <= profile.name_words and service - self.common
            ]
            secret = _secret_parameter(profile)
            if secret is not None:
                by_text = [
                    login
                    for login, service in services.items()
                    if service and service <= profile.text_words
                ]
                for login in (named or by_text or only)[:1]:
                    what = " ".join(words_of(secret.name))
                    type_ = dependency_type(secret.name, secret.required)
                    yield self._evidence(at, login, type_, secret.name, "session", what)
            elif named:
                login = named[0]
                name = words_of(self.profiles[login].tool.name)
                what = " ".join(word for word in name if word in services[login])
                yield self._evidence(at, login, direct, None, "login", what)

    def checks(self) -> Iterator[Evidence]:
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
                if target is None or target == at or parameter.has_choices:
                    continue
                ends_in_core = words[-1] in core | {"address"}
                if parameter.types == {"boolean"} or not ends_in_core or core & _PRIVATE:
                    continue
                type_ = dependency_type(parameter.name, parameter.required)
                yield self._evidence(at, target, type_, parameter.name, "check", " ".join(words))

    def state_changes(self) -> Iterator[Evidence]:
        """Yield readers and changers of a state, and tools whose names say that they need it."""
        indirect = dependency_type(None, False)
        switches: dict[frozenset[str], _State] = {}
        for state in self.states:
            reader, changer, what = state.reader, state.changer, state.what
            if state.switch:
                yield self._evidence(reader, changer, indirect, None, "state-switch", what)
                if words := state.words - STATE_ENDINGS:
                    switches[words] = state
        in_order = sorted(switches.items(), key=lambda item: sorted(item[0]))
        for at in self.positions if switches else ():
            profile = self.profiles[at]
            name, phrase = profile.name_words, frozenset(profile.parsed.phrase)
            for words, state in in_order:
                if not words <= name | phrase:
                    continue
                named = words <= phrase or (words <= name and words - self.common)
                if named and at not in (state.reader, state.changer):
                    type_ = dependency_type(None, True)
                    yield self._evidence(at, state.reader, type_, None, "state-needed", state.what)

    def connections(self) -> Iterator[Evidence]:
        """Yield the tools that need a network, if the agent controls the device's connection."""
        switches = [state for state in self.states if state.switch]
        connections = [state for state in switches if state.words & CONNECTION]
        if not connections:
            return

        def closeness(state: _State) -> tuple[int, str]:
            reader = self.profiles[state.reader]
            return len(reader.text_words & CONNECTION), reader.tool.id

        best = max(connections, key=closeness)
        device = self._device_words(switches)
        for at in self.positions:
            profile = self.profiles[at]
            local = (
                profile.verb in MAKING | CHECKING
                or device & set(profile.parsed.phrase)
                or any(provided.contextual for provided in profile.provides)
            )
            if not local and at not in (best.reader, best.changer):
                type_ = dependency_type(None, True)
                yield self._evidence(at, best.reader, type_, None, "connection", best.what)

    def _states(self) -> Iterator[_State]:
        readers: dict[_StateKey, int] = {}
        changers: dict[_StateKey, list[int]] = defaultdict(list)
        for at in self.positions:
            parsed, segments = self.profiles[at].parsed, self.profiles[at].address.segments
            phrase, before = frozenset(parsed.phrase), frozenset(parsed.before)
            if not phrase or (phrase <= GENERIC and not before):
                continue
            # A path of one segment may name the verb: `/users.getPresence`.
            key = phrase, before, segments if len(segments) > 1 else ()
            if parsed.verb in READING:
                readers.setdefault(key, at)
            elif parsed.verb in CHANGING:
                changers[key].append(at)
        for key, changing in changers.items():
            for at in changing if key in readers else ():
                parsed = self.profiles[at].parsed
                what = " ".join((*parsed.before, *parsed.phrase))
                switch = _is_switch(self.profiles[at])
                yield _State(key[0] | key[1], what, readers[key], at, switch)

    def _device_words(self, switches: Sequence[_State]) -> set[str]:
        words = {word for state in switches for word in state.words}
        for at in self.positions:
            for provided in self.profiles[at].provides:
                if provided.contextual:
                    words |= set(provided.words)
        return words - (ROLES | GENERIC | STATE_ENDINGS)


def _service(profile: ToolProfile) -> frozenset[str] | None:
    """Return the words for the service of a login tool; None for any other tool."""
    words = words_of(profile.tool.name)
    ends = {words[0], words[-1], words[:2], words[-2:]} if words else set()
    if not ends & (_LOGIN | _LOGIN_PAIRS):  # `login_to_acme`, `acme_log_in`; no `list_login_links`
        return None
    if {"authenticate", "authorize"} & set(words):
        # What is authorised is a person or an access, and seldom says where.
        return frozenset()
    return frozenset(words) - _LOGIN_WORDS - verb_forms().keys()


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


def _is_switch(profile: ToolProfile) -> bool:
    """Whether a tool turns something on and off."""
    required = [parameter for parameter in profile.parameters if parameter.required]
    return len(required) == 1 and required[0].types == {"boolean"}
