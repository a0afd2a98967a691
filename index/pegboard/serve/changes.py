"""What follows a promotion or a change of the rules: sessions are told that their `tools/list`
changed, and the log names rules that match nothing: a misspelt `deny` leaves open what it means to
close."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase

from pegboard.errors import PegboardError, did_you_mean
from pegboard.serve.access import AccessRules, Ruled, matches
from pegboard.serve.gateway import Gateway
from pegboard.serve.listing import listed_ids, names_of
from pegboard.serve.sessions import Session
from pegboard.serve.settings import GatewaySettings, Rule, ServeSettings
from pegboard.serve.views import Entry

LOOK_SECONDS = 1.0
Compared = tuple[str, AccessRules, GatewaySettings]
"""A release, by its id, and the rules and settings that were compared with it."""

log = logging.getLogger("pegboard.serve")


@asynccontextmanager
async def telling_of_changes(gateway: Gateway) -> AsyncGenerator[None]:
    """Look for a new release and new rules every second, for as long as the block runs."""
    task = asyncio.create_task(_look(gateway))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def tell_all(gateway: Gateway) -> int:
    """Tell each session whose list is another than it was sent; return how many were told."""
    rules = gateway.rules.current()
    told = 0
    for session in gateway.sessions.all():
        try:
            if await _has_changed(gateway, rules, session):
                session.listed = None  # told once, until it lists again
                await session.tell_of_changes()
                told += 1
        except PegboardError as error:
            log.warning("A session was not told of changes: %s", error)
    return told


async def warn_of_idle_rules(gateway: Gateway) -> Compared:
    """Log the rules and settings that match nothing of the current release; return what was
    compared.
    """
    state = _state(gateway)
    rules, serve = state[1], gateway.settings.serve
    ruled = any(one.allow is not None or one.deny for one in rules.clients.values())
    if not (ruled or serve.pinned or serve.python or serve.apis or gateway.settings.catalogs):
        return state
    try:
        release, entries = await gateway.views.entries()
    except PegboardError as error:
        log.warning("The rules could not be compared with the release: %s", error)
        return state
    tools = list(entries.values())
    problems = await asyncio.to_thread(
        lambda: [
            *_idle_rules(rules, serve.pinned, tools),
            *_idle_names(serve, tools),
            *_uncallable(tools),
        ]
    )
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        log.warning(
            "pegboard serve: settings without effect in release %s, perhaps misspelt:\n%s",
            release,
            lines,
        )
    return release, *state[1:]


async def _has_changed(gateway: Gateway, rules: AccessRules, session: Session) -> bool:
    if session.listed is None:
        return False
    client = rules.clients.get(session.client.name, session.client)
    view = await gateway.views.of(client, callable_only=True)
    return names_of(view, listed_ids(gateway, view, session)) != session.listed


async def _look(gateway: Gateway) -> None:
    seen: Compared | None = None
    while True:
        if _state(gateway) != seen:
            seen = await warn_of_idle_rules(gateway)
            await tell_all(gateway)
        await asyncio.sleep(LOOK_SECONDS)
        await gateway.reload_if_changed()


def _state(gateway: Gateway) -> Compared:
    return gateway.board.status().release, gateway.rules.current(), gateway.settings


def _idle_rules(
    rules: AccessRules, pinned: Collection[str], tools: Collection[Ruled]
) -> Iterator[str]:
    """Yield each rule and each pattern without a tool, with its place in pegboard.toml.

    Args:
        pinned: patterns of `[serve] pinned`.
        tools: of the whole release.
    """
    values = {
        "agent": {tool.agent for tool in tools},
        "catalog": {tool.catalog for tool in tools},
        "tag": {tag for tool in tools for tag in tool.tags},
        "tool": {tool.id for tool in tools},
    }
    for name, client in rules.clients.items():
        for kind, own in (("allow", client.allow or ()), ("deny", client.deny)):
            for number, rule in enumerate(own):
                yield from _idle(f"serve.clients.{name}.{kind}[{number}]", rule, values, tools)
    yield from _idle_patterns("serve.pinned", "tool", tuple(pinned), values["tool"])


def _idle_names(serve: ServeSettings, tools: Collection[Entry]) -> Iterator[str]:
    """Yield catalogs of `[serve]` that the release does not have."""
    catalogs = {tool.catalog for tool in tools}
    named = [("serve.python", name) for name in serve.python]
    for place, name in [*named, *(("serve.apis", name) for name in serve.apis)]:
        if name not in catalogs:
            hint = did_you_mean(name, catalogs)
            yield f"{place}: {name!r:.200} is no catalog of the release{hint}"


def _uncallable(tools: Collection[Entry]) -> Iterator[str]:
    """Yield why tools are not offered that the gateway cannot call, once for each agent; nothing
    for a gateway that can call none, and is there to search.
    """
    if all(tool.problem for tool in tools):
        return
    problems = {tool.agent: tool for tool in tools if tool.problem}
    for agent, tool in problems.items():
        count = sum(other.agent == agent and bool(other.problem) for other in tools)
        yield f"{agent}: {count} tools are not offered, such as this: {tool.problem}"


def _idle(
    place: str, rule: Rule, values: Mapping[str, set[str]], tools: Collection[Ruled]
) -> Iterator[str]:
    problems = [
        problem
        for field, patterns in rule
        for problem in _idle_patterns(f"{place}.{field}", field, patterns or (), values[field])
    ]
    if not problems and not any(matches(rule, tool) for tool in tools):
        problems = [f"{place}: no tool fits all its fields"]
    yield from problems


def _idle_patterns(
    place: str, field: str, patterns: tuple[str, ...], values: set[str]
) -> Iterator[str]:
    for pattern in patterns:
        if pattern not in values and not any(fnmatchcase(value, pattern) for value in values):
            # Ids of tools are too many to compare each with a name.
            hint = did_you_mean(pattern, values) if field != "tool" else ""
            yield f"{place}: {pattern!r:.200} matches no {field} of the release{hint}"
