"""What follows a promotion or a change of the settings: sessions are told that their `tools/list`
changed, and the log names rules that match nothing: a misspelt `deny` leaves open what it means to
close."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import asynccontextmanager, suppress

from pegboard.errors import PegboardError
from pegboard.records import Tool
from pegboard.serve.access import AccessRules, fits, matches
from pegboard.serve.gateway import Gateway
from pegboard.serve.settings import Rule, ServeSettings
from pegboard.serve.views import Entry

LOOK_SECONDS = 1.0

log = logging.getLogger("pegboard.serve")


@asynccontextmanager
async def telling_of_changes(gateway: Gateway) -> AsyncGenerator[None]:
    """Look for a new release, new settings and idle sessions with servers every second, for as
    long as the block runs.
    """
    task = asyncio.create_task(_look(gateway))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def tell_all(gateway: Gateway) -> None:
    """Tell each session that was sent a list that it may be another now."""
    for session in gateway.sessions.all():
        if session.listed is not None:
            await session.tell_of_changes()


async def warn_of_idle_rules(gateway: Gateway) -> str:
    """Log the rules and settings that match nothing of the current release; return its id."""
    rules, serve = gateway.rules, gateway.settings.serve
    try:
        release, entries = await gateway.views.entries()
    except PegboardError as error:
        log.warning("The rules could not be compared with the release: %s", error)
        return gateway.board.status().release
    tools = list(entries.values())
    problems = await asyncio.to_thread(lambda: [*_idle(rules, serve, tools), *_uncallable(tools)])
    if problems:
        log.warning(
            "pegboard serve: settings without effect in release %s, perhaps misspelt:\n%s",
            release,
            "\n".join(f"  - {problem}" for problem in problems),
        )
    return release


async def _look(gateway: Gateway) -> None:
    seen: tuple[str, AccessRules] | None = None
    while True:
        try:
            gateway.caller.end_idle()
            await gateway.reload_if_changed()
            rules = gateway.rules
            release = await asyncio.to_thread(lambda: gateway.board.release.id)
            if (release, rules) != seen:
                seen = await warn_of_idle_rules(gateway), rules
                await tell_all(gateway)
        except Exception:  # the next look must come: it may take a right from someone
            log.exception("Changes could not be followed.")
        await asyncio.sleep(LOOK_SECONDS)


def _idle(rules: AccessRules, serve: ServeSettings, tools: Collection[Tool]) -> Iterator[str]:
    """Yield each rule and each pattern without a tool of the release, with its place."""
    values = {
        "agent": {tool.agent for tool in tools},
        "catalog": {tool.catalog for tool in tools},
        "tag": {tag for tool in tools for tag in tool.tags},
        "tool": {tool.id for tool in tools},
    }
    for place, rule in _rules(rules, serve):
        idle = [
            f"{place}.{field}: {pattern!r:.200} matches no {field} of the release"
            for field, patterns in rule
            for pattern in patterns or ()
            if not any(fits(value, pattern) for value in values[field])
        ]
        if not idle and not any(matches(rule, tool) for tool in tools):
            idle = [f"{place}: no tool fits all its fields"]
        yield from idle


def _rules(rules: AccessRules, serve: ServeSettings) -> Iterator[tuple[str, Rule]]:
    """Yield the rules of clients and other settings that name something of the release."""
    for name, client in rules.clients.items():
        for kind, own in (("allow", client.allow or ()), ("deny", client.deny)):
            for number, rule in enumerate(own):
                yield f"serve.clients.{name}.{kind}[{number}]", rule
    if serve.pinned:
        yield "serve.pinned", Rule(tool=serve.pinned)
    for place, names in (("serve.python", serve.python), ("serve.apis", tuple(serve.apis))):
        if names:
            yield place, Rule(catalog=names)


def _uncallable(tools: Collection[Entry]) -> Iterator[str]:
    """Yield why tools are not offered that the gateway cannot call, once for each agent; nothing
    for a gateway that can call none, and is there to search.
    """
    if all(tool.problem for tool in tools):
        return
    problems = {tool.agent: tool for tool in tools if tool.problem and not tool.is_read}
    for agent, tool in problems.items():
        count = sum(other.agent == agent and bool(other.problem) for other in tools)
        yield f"{agent}: {count} tools are not offered, such as this: {tool.problem}"
