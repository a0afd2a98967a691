"""A connection to one MCP server that is kept for many calls.

It has a task of its own, since what the SDK opens has to be closed where it was opened."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pegboard.redaction import redact
from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.connect import handshake, server_streams, silence_sdk
from pegboard.servers.failures import Progress, evidence, explain_failure
from pegboard.servers.process import Stderr, killing_leftovers
from pegboard.servers.traffic import BoundedMessages

if TYPE_CHECKING:
    from mcp_types import CallToolResult

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Is told of a call's progress, total and message."""

log = logging.getLogger("pegboard.servers")


class ConnectionLost(ServerProblem):
    """The server ended, or forgot the session, before it answered.

    Attributes:
        unheard: whether it certainly did nothing with the request.
    """

    def __init__(self, message: str, unheard: bool = False) -> None:
        super().__init__(message)
        self.unheard = unheard


@dataclass(slots=True)
class _Watched:
    """A dispatcher that says when it ended: nothing will be answered any more."""

    inner: Any
    ended: asyncio.Event

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        return await self.inner.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        await self.inner.notify(method, params, opts)

    async def run(self, *args: Any, **kwargs: Any) -> None:
        try:
            await self.inner.run(*args, **kwargs)
        finally:
            self.ended.set()


class ServerConnection:
    """A server that was started, or a session with a remote one. Made by `open`.

    Args:
        server: with its secrets resolved.
        timeout: seconds for a request over HTTP.
        max_bytes: of one message that it sends.
        idle: seconds without use after which it is closed.
    """

    def __init__(self, server: Server, timeout: float, max_bytes: int, idle: float) -> None:
        self.server = server
        self._timeout, self._idle = timeout, idle
        self._progress, self._stderr = Progress(server.secrets), Stderr()
        self._traffic = BoundedMessages(max_bytes)
        self._session: Any = None
        self._ended = asyncio.Event()
        self._stopped = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._users, self._used = 0, time.monotonic()
        self._task = asyncio.create_task(self._run())

    @property
    def usable(self) -> bool:
        """Whether calls may still be answered."""
        return not (self._ended.is_set() or self._stopped.is_set() or self._task.done())

    @contextmanager
    def used(self) -> Generator[None]:
        """Keep the connection open, however long it is idle inside."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._used = time.monotonic()

    async def ready(self) -> None:
        """Wait until the server answered the handshake. Raises ServerProblem if it did not."""
        await asyncio.shield(self._ready)

    async def call(
        self, name: str, arguments: Mapping[str, Any], report: Report | None = None
    ) -> "CallToolResult":
        """Return the result of a call. Cancelling it tells the server.

        Raises:
            ConnectionLost: the connection is of no use any more.
            ServerProblem: the server answered with an error of the protocol.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        request = CallToolRequest(
            params=CallToolRequestParams(name=name, arguments=dict(arguments))
        )
        try:
            return await self._session.send_request(
                request, CallToolResult, progress_callback=report
            )
        except Exception as error:
            raise self._problem(error, "tools/call") from None

    async def answers(self, seconds: float) -> bool:
        """Whether the server answers a ping within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._session.send_ping()
        except TimeoutError:
            return False
        except Exception:
            return self.usable  # an error is an answer
        return True

    async def close(self) -> None:
        """End the server, and wait until it ended."""
        self._stopped.set()
        with suppress(Exception):
            await asyncio.shield(self._task)

    async def _run(self) -> None:
        import anyio

        silence_sdk()
        trouble: BaseException | None = None
        try:
            with killing_leftovers() as mark, anyio.CancelScope():
                await self._serve(replace(self.server, env={**self.server.env, **mark}))
        except Exception as error:
            trouble = error
        finally:
            self._ended.set()
            written = await asyncio.to_thread(self._stderr.end)
            if not self._ready.done():
                why = self._traffic.problem or trouble
                text = explain_failure(why, self.server, self._progress)
                full = ". ".join([text, *evidence(self._progress, written)])
                self._ready.set_exception(ServerProblem(redact(full, self.server.secrets)))
                self._ready.exception()  # nobody may wait for it

    async def _serve(self, server: Server) -> None:
        from mcp.client.session import ClientSession
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
        from mcp_types import Implementation

        async with server_streams(
            server, self._timeout, self._progress, self._stderr, self._traffic
        ) as streams:
            on_invalid = self._progress.on_invalid_message
            inner = JSONRPCDispatcher(*streams, on_stream_exception=on_invalid)
            info = Implementation(name="pegboard", version="1")
            dispatcher: Any = _Watched(inner, self._ended)
            async with ClientSession(dispatcher=dispatcher, client_info=info) as session:
                self._progress.stage = "initialize"
                await handshake(session)
                self._session = session
                self._ready.set_result(None)
                await self._until_over()

    async def _until_over(self) -> None:
        """Wait until the server ended, it is to end, or nobody called it for long."""
        over = [asyncio.create_task(event.wait()) for event in (self._ended, self._stopped)]
        try:
            while not any(task.done() for task in over):
                left = self._idle - (time.monotonic() - self._used)
                if left <= 0 and not self._users:
                    self._stopped.set()
                    return
                await asyncio.wait(
                    over, timeout=max(left, 1.0), return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for task in over:
                task.cancel()

    def _problem(self, error: Exception, stage: str) -> ServerProblem:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        self._progress.stage = stage
        if self._traffic.problem is not None:
            problem, self._traffic.problem = self._traffic.problem, None
            return problem
        text = redact(explain_failure(error, self.server, self._progress), self.server.secrets)
        if isinstance(error, MCPError):
            forgotten = "session" in error.message.lower() and self._progress.status == 404
            if error.code == CONNECTION_CLOSED or forgotten:
                self._stopped.set()
                return ConnectionLost(text, unheard=forgotten)
            return ServerProblem(text)
        if not self.usable:
            return ConnectionLost(text)
        return ServerProblem(text)
