"""Edges between tools as wholes: what has to be so before a tool can work.

    a login      `cancel_uber_ride` needs `login_to_uber`; a `session_id` comes from the login of
    the same service
    a check      an `email` can be validated by the tool that validates emails
    a state      `set_wifi_status` changes what `get_wifi_status` tells; `update_order` what
    `get_order` reads a connection where an agent can tell and switch the connection of the device
    it works on, its tools that reach out need that

Graph RAG-Tool Fusion (section 3.1.3) calls the last kind "tool directly depends on": nothing in the
text of a tool says so, but that it reaches out and that its agent looks after the connection. No
other agent's tools are concerned."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks.dependencies.evidence import Evidence
from tasks.dependencies.phrases import noun_phrase, words_of
from tasks.dependencies.provided import Known
from tasks.dependencies.subsets import WordSets
from tasks.dependencies.words import (
    CHANGING,
    CHECKING,
    CONNECTION,
    GENERIC,
    MAKING,
    READING,
    ROLES,
    SECRETS,
    SWITCHES,
    verb_forms,
)

COMMON = 0.05
"""The share of an agent's tools whose names have a word, above which it names no service and no
state.
"""
_LOGIN = frozenset({"login", "logon", "signin", "authenticate", "authorize"})
_PRIVATE = frozenset({"password", "pin", "secret"})
"""What is checked by the tool that takes it."""
_LOGIN_WORDS = _LOGIN | {
    "log",
    "sign",
    "in",
    "on",
    "to",
    "into",
    "user",
    "account",
    "app",
    "check",
    "status",
}


def state_edges(known: Sequence[Known]) -> Iterator[Evidence]:
    """The evidence that these tools need each other as a whole, agent by agent."""
    agents: dict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(known):
        agents[one.tool.agent].append(at)
    for members in agents.values():
        common = _common(known, members)
        yield from _login_edges(known, members, common)
        yield from _check_edges(known, members)
        states = _states(known, members)
        yield from _state_edges(known, members, states, common)
        yield from _connection_edges(known, members, states)


def _common(known: Sequence[Known], members: Sequence[int]) -> frozenset[str]:
    counts: dict[str, int] = defaultdict(int)
    for at in members:
        for word in known[at].name:
            counts[word] += 1
    return frozenset(
        word for word, count in counts.items() if count > max(2, COMMON * len(members))
    )


def _login_edges(
    known: Sequence[Known], members: Sequence[int], common: frozenset[str]
) -> Iterator[Evidence]:
    logins = {at: service for at in members if (service := _service(known[at])) is not None}
    services = WordSets((service, login) for login, service in logins.items() if service)
    only = list(logins) if len(logins) == 1 else []
    for at in members if logins else ():
        one = known[at]
        if at in logins:
            continue
        named = sorted(login for login in services.within(one.name) if logins[login] - common)
        secrets = [
            p for p in one.parameters if set(words_of(p.name)) & SECRETS and p.types != {"boolean"}
        ]
        said = sorted(services.within(one.text)) if secrets and not named else []
        for parameter in secrets[:1]:
            for login in (named or said or only)[:1]:
                direct = parameter.needed
                yield Evidence(
                    at,
                    login,
                    "parameter-directly-depends-on"
                    if direct
                    else "parameter-indirectly-depends-on",
                    parameter.name,
                    "session",
                    " ".join(words_of(parameter.name)),
                )
        if not secrets:
            for login in named[:1]:
                service = " ".join(
                    word for word in words_of(known[login].tool.name) if word in logins[login]
                )
                yield Evidence(at, login, "tool-directly-depends-on", None, "login", service)


def _service(one: Known) -> frozenset[str] | None:
    """The words that say what a tool logs in to; none where it is no login."""
    words = words_of(one.tool.name)
    pairs = set(pairwise(words))
    if not (_LOGIN & set(words) or {("log", "in"), ("sign", "in"), ("log", "on")} & pairs):
        return None
    if {"authenticate", "authorize"} & set(
        words
    ):  # what is authorised is a person or an access, and seldom says where
        return frozenset()
    return frozenset(words) - _LOGIN_WORDS - verb_forms().keys()


def _check_edges(known: Sequence[Known], members: Sequence[int]) -> Iterator[Evidence]:
    checks: dict[frozenset[str], int] = {}
    for at in members:
        one = known[at]
        if one.named.verb in CHECKING:
            needed = [
                frozenset(words_of(p.name)) - GENERIC - ROLES for p in one.parameters if p.needed
            ]
            if len(needed) == 1 and needed[0] and needed[0] <= set(one.named.phrase):
                checks.setdefault(needed[0], at)
    for at in members if checks else ():
        for parameter in known[at].parameters:
            words = noun_phrase(words_of(parameter.name))
            what = frozenset(words) - GENERIC - ROLES
            target = checks.get(what)
            if (
                target is None
                or target == at
                or parameter.types == {"boolean"}
                or parameter.choices
            ):
                continue
            if words[-1] not in what | {"address"} or what & _PRIVATE:
                continue
            direct = (
                "parameter-directly-depends-on"
                if parameter.needed
                else "parameter-indirectly-depends-on"
            )
            yield Evidence(at, target, direct, parameter.name, "check", " ".join(words))


@dataclass(frozen=True, slots=True)
class _State:
    """A state, or a thing, that one tool tells and another changes. `switch`: it is on or off."""

    words: frozenset[str]
    what: str
    reader: int
    changer: int
    switch: bool


def _states(known: Sequence[Known], members: Sequence[int]) -> list[_State]:
    readers: dict[tuple[frozenset[str], frozenset[str]], int] = {}
    changers: dict[tuple[frozenset[str], frozenset[str]], list[int]] = defaultdict(list)
    for at in members:
        one = known[at]
        phrase = frozenset(one.named.phrase)
        key = (phrase, frozenset(one.named.before))
        if not phrase or (phrase <= GENERIC and not one.named.before):
            continue
        if one.named.verb in READING:
            readers.setdefault(key, at)
        elif one.named.verb in CHANGING:
            changers[key].append(at)
    return [
        _State(
            key[0] | key[1],
            " ".join((*known[at].named.before, *known[at].named.phrase)),
            readers[key],
            at,
            _is_switch(known[at]),
        )
        for key, changing in changers.items()
        if key in readers
        for at in changing
    ]


def _is_switch(one: Known) -> bool:
    """Whether a tool turns something on and off."""
    needed = [p for p in one.parameters if p.needed]
    return len(needed) == 1 and needed[0].types == {"boolean"}


def _state_edges(
    known: Sequence[Known], members: Sequence[int], states: Sequence[_State], common: frozenset[str]
) -> Iterator[Evidence]:
    for state in states:
        what = state.what
        yield Evidence(
            state.changer, state.reader, "tool-indirectly-depends-on", None, "state-before", what
        )
        if state.switch:
            yield Evidence(
                state.reader,
                state.changer,
                "tool-indirectly-depends-on",
                None,
                "state-switch",
                what,
            )
    switches = {
        state.words - SWITCHES: state for state in states if state.switch and state.words - SWITCHES
    }
    sets = WordSets((words, words) for words in switches)
    for at in members if switches else ():
        one = known[at]
        phrase = frozenset(one.named.phrase)
        for words in sorted(sets.within(one.name | phrase), key=sorted):
            state = switches[words]
            if at not in (state.reader, state.changer) and (
                words <= phrase or (words <= one.name and words - common)
            ):
                yield Evidence(
                    at, state.reader, "tool-directly-depends-on", None, "state-needed", state.what
                )


def _connection_edges(
    known: Sequence[Known], members: Sequence[int], states: Sequence[_State]
) -> Iterator[Evidence]:
    switches = [state for state in states if state.switch]
    connections = [state for state in switches if state.words & CONNECTION]
    if not connections:
        return
    best = max(
        connections,
        key=lambda state: (len(known[state.reader].text & CONNECTION), known[state.reader].tool.id),
    )
    device = {word for state in switches for word in state.words}
    device |= {word for at in members for p in known[at].provides if p.here for word in p.words}
    device -= ROLES | GENERIC | SWITCHES
    for at in members:
        one = known[at]
        local = (
            one.verb in MAKING | CHECKING
            or device & set(one.named.phrase)
            or any(p.here for p in one.provides)
        )
        if not local and at not in (best.reader, best.changer):
            yield Evidence(
                at, best.reader, "tool-directly-depends-on", None, "connection", best.what
            )
