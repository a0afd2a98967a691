"""Looking at an MCP server: over a session that stays open, or anew each time."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from catalogs.shared.watching import WatchedServer
from pegboard.canonical import canonical_json, digest
from pegboard.errors import SourceError
from pegboard.servers.config import ServerProblem, resolve_server
from pegboard.text.redaction import redact_line
from tasks.watch.looks import Look

if TYPE_CHECKING:
    from catalogs.mcp.client import ServerAnswer

RESTART_SECONDS = 300.0
"""Seconds between two starts of a server over stdio that announces no changes: its tools change
only with its installation."""


@dataclass(frozen=True, slots=True)
class Session:
    """An open session with a server.

    Attributes:
        look: returns a new look. Raises TimeoutError if the server hangs.
        announces: whether the server says when its list changes.
        is_stdio: whether the server is a process of this machine.
    """

    look: Callable[[], Awaitable[Look]]
    announces: bool
    is_stdio: bool


@asynccontextmanager
async def open_session(
    watched: WatchedServer, on_change: Callable[[], None]
) -> AsyncGenerator[Session]:
    """Hold a session with a server in the block.

    Args:
        on_change: called when the server says that its list changed.

    Raises:
        SourceError: the server cannot be reached, broke off, or did not answer in time.
    """
    from mcp_types import (
        Implementation,
        PromptListChangedNotification,
        ResourceListChangedNotification,
        ToolListChangedNotification,
    )

    from catalogs.mcp.client import read_answer
    from pegboard.servers.connect import LISTING, ServerTransport, handshake

    changes = (
        ToolListChangedNotification,
        PromptListChangedNotification,
        ResourceListChangedNotification,
    )

    async def on_message(message: Any) -> None:
        if isinstance(message, changes):
            on_change()

    try:
        server = resolve_server(watched.entry, watched.base)
    except ServerProblem as problem:
        raise SourceError(str(problem)) from None
    transport = ServerTransport(server, watched.timeout, watched.max_bytes)
    scope = anyio.CancelScope(deadline=anyio.current_time() + watched.timeout)
    reached = False
    try:
        with scope:
            async with transport.connect_session(
                client_info=Implementation(name="pegboard-watch", version="1"),
                message_handler=on_message,
                **LISTING,
            ) as session:
                transport.stage = "initialize"
                await handshake(session)

                async def look() -> Look:
                    scope.deadline = anyio.current_time() + watched.timeout
                    answer = await read_answer(session, transport, watched.include)
                    scope.deadline = float("inf")
                    return _look(answer)

                reached = True
                announces = _announces(session.server_capabilities, watched.include)
                yield Session(look, announces, server.transport == "stdio")
    except (GeneratorExit, SourceError):
        raise
    except Exception as error:
        raise _problem(transport, error) from None
    if scope.cancelled_caught:
        stage = transport.stage if reached else f"{transport.stage}, at the start"
        raise SourceError(
            transport.with_evidence(
                f"it did not answer within {watched.timeout:g} seconds (waiting for {stage})"
            ),
            may_pass=True,
        )


def _problem(transport: Any, error: Exception) -> SourceError:
    problem = transport.problem(error)
    return SourceError(
        redact_line(str(problem)), may_pass=problem.may_pass, retry_after=problem.retry_after
    )


def _announces(capabilities: Any, include: tuple[str, ...]) -> bool:
    """Return whether a server announces changes of everything that is listed."""
    parts = [capabilities.tools]
    if "prompts" in include:
        parts.append(capabilities.prompts)
    if {"resources", "skills"} & {*include}:
        parts.append(capabilities.resources)
    return all(part is not None and bool(part.list_changed) for part in parts)


def _look(answer: "ServerAnswer") -> Look:
    """Return a digest of what a server lists, whatever the order."""
    try:
        tools = sorted(map(canonical_json, answer.tools))
        return Look(digest(answer.description, tools, answer.others))
    except (TypeError, ValueError, RecursionError):
        return Look(digest(repr(answer)))
