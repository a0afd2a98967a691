"""What follows a promotion or a change of the rules: sessions are told that their `tools/list`
changed, and the log names rules that match nothing."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from pegboard.errors import PegboardError
from pegboard.serve.access import AccessRules
from pegboard.serve.gateway import Gateway
from pegboard.serve.listing import listed_ids, names_of
from pegboard.serve.rule_check import idle_names, idle_rules, uncallable
from pegboard.serve.sessions import Session
from pegboard.serve.settings import GatewaySettings

LOOK_SECONDS = 1.0

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


async def warn_of_idle_rules(gateway: Gateway) -> None:
    """Log the rules and settings that match nothing of the current release."""
    rules, serve = gateway.rules.current(), gateway.settings.serve
    ruled = any(one.allow is not None or one.deny for one in rules.clients.values())
    if not (ruled or serve.pinned or serve.python or serve.apis or gateway.settings.catalogs):
        return
    try:
        release, entries = await gateway.views.entries()
    except PegboardError as error:
        log.warning("The rules could not be compared with the release: %s", error)
        return
    tools = list(entries.values())
    problems = await asyncio.to_thread(
        lambda: [
            *idle_rules(rules, serve.pinned, tools),
            *idle_names(serve, tools),
            *uncallable(tools),
        ]
    )
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        log.warning(
            "pegboard serve: settings without effect in release %s, perhaps misspelt:\n%s",
            release,
            lines,
        )


async def _has_changed(gateway: Gateway, rules: AccessRules, session: Session) -> bool:
    if session.listed is None:
        return False
    client = rules.clients.get(session.client.name, session.client)
    view = await gateway.views.of(client, callable_only=True)
    return names_of(view, listed_ids(gateway, view, session)) != session.listed


async def _look(gateway: Gateway) -> None:
    seen = _state(gateway)
    await warn_of_idle_rules(gateway)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        await gateway.reload_if_changed()
        now = _state(gateway)
        if now != seen:
            seen = now
            await tell_all(gateway)
            await warn_of_idle_rules(gateway)


def _state(gateway: Gateway) -> tuple[str, AccessRules, GatewaySettings]:
    return gateway.board.status().release, gateway.rules.current(), gateway.settings
