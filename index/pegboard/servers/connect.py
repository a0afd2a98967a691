"""Conversations with MCP servers over stdio, streamable HTTP or SSE, with the official SDK."""

import asyncio
import json
import logging
import os
import re
import signal
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
)
from pydantic import ValidationError

from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.messages import MessageSecrets, RelaySession, ServerStream
from pegboard.servers.process import Stderr, killing_leftovers, passed_environment
from pegboard.servers.stdio import TOO_LARGE, ServerProcess, message_streams, start_process
from pegboard.text.redaction import redact, redact_line
from pegboard.transient import TRANSIENT_STATUSES, is_transient_network, retry_after_seconds

STDERR_LINES = 5
"""Most lines of stderr that an error shows."""
STDERR_SHOWN = 800
"""Most characters of stderr that an error shows."""
CHATTER = re.compile(r"\b(INFO|DEBUG)\b|Processing request of type|npm (notice|warn)")
"""Matches lines of stderr that say nothing about a failure."""
TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Matches control sequences of terminals."""
MAX_ROWS = 20_000
"""Most tools, prompts or resources of one server."""
NOT_RUNNABLE = frozenset({126, 127})
"""Exit codes of a shell or launcher whose command cannot be run or does not exist."""
EXIT_SECONDS = 0.5
"""Seconds to wait for the exit code of a server that closed its output."""
LINE_FACTOR = 4
"""Most bytes of a line by those of an event: characters are escaped, and an answer that is too
large is refused by its own size."""
MIN_LINE = 16_000_000
"""Least value of the limit of a line in bytes."""
MAX_REFUSAL = 65_536
"""Most bytes of the body of an HTTP error that are read."""
LISTS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
"""The methods that list something, by the member of the answer."""


@dataclass(slots=True)
class Refusal:
    """What the HTTP answer to a request said, if it had an error status.

    Attributes:
        status: the status; 0 for none.
        text: the beginning of the body, without secrets.
    """

    status: int = 0
    text: str = ""


REFUSAL: ContextVar[Refusal | None] = ContextVar("REFUSAL", default=None)
"""Filled in with the answer to the request that is made in this context."""


class _LimitedBody(httpx2.AsyncByteStream):
    """The body of a response, up to a number of bytes."""

    def __init__(self, body: Any, max_bytes: int, *, cut: bool) -> None:
        self._body = body
        self._max_bytes = max_bytes
        self._cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_bytes
        async for chunk in self._body:
            yield chunk[:left]
            left -= len(chunk)
            if left < 0 and self._cut:
                return
            if left < 0:
                raise httpx2.StreamError(f"{TOO_LARGE}: more than {self._max_bytes:,} bytes")

    async def aclose(self) -> None:
        await self._body.aclose()


class ServerTransport:
    """Starts or reaches one server, once.

    Args:
        server: the server with its secrets resolved, which are removed from everything it sends.
        timeout: seconds for a request over HTTP.
        max_event: most bytes of one event over streamable HTTP. A line over stdio may have
            `LINE_FACTOR` times as many, and at least `MIN_LINE`.
        by_hand: whether a user can sign in, if the server requires it.

    Attributes:
        stage: what the server has to answer, for the error if it fails.
        status: the status of its last HTTP error; 0 for none.
        refused: whether it answered a request with an HTTP error; may be set to False.
        messages: the messages of the server; None until it is reached.
        exit_code: the exit code of a server over stdio that ended during the session; negative is
            the number of a signal. None for a server that did not end.
    """

    def __init__(
        self, server: Server, timeout: float, max_event: int, *, by_hand: bool = False
    ) -> None:
        self._by_hand = by_hand
        self._server = server
        self._timeout = timeout
        self._max_event = max_event
        self._stderr = Stderr()
        self._cause: BaseException | None = None
        self._stray_output = ""
        self._process: ServerProcess | None = None
        self._left = asyncio.Event()
        self.stage = "the connection"
        self.status = 0
        self.refused = False
        self.messages: ServerStream | None = None
        self.exit_code: int | None = None
        self._retry_after: float | None = None

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: Any = None, **session_kwargs: Any
    ) -> AsyncGenerator[RelaySession]:
        """Yield a session with the server, before the handshake; both end with the block.

        Args:
            transport_options: options of FastMCP, which are ignored.
            session_kwargs: arguments of `mcp.ClientSession`.
        """
        silence_sdk()
        secrets = MessageSecrets(self._server.private)
        try:
            with killing_leftovers() as mark:
                async with self._streams(mark, secrets) as (read, write):
                    self.messages = ServerStream(read, secrets, self._on_invalid)
                    stream: Any = self.messages
                    async with RelaySession(stream, write, **session_kwargs) as session:
                        yield session
        except BaseException as error:
            self._cause = error
            raise
        finally:
            self._left.set()
            self._stderr.file.close()

    def kill(self) -> None:
        """Kill the server's process and those that it started, if it has one."""
        if self._process is not None:
            self._process.signal_group(signal.SIGKILL)

    async def ended(self) -> None:
        """Wait shortly for what is known of the end of a session: its exit code, or its error."""
        if self._process is not None and await self._process.exited(EXIT_SECONDS):
            self.exit_code = self._process.exit_code
        elif self._process is None and self._cause is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(EXIT_SECONDS):
                    await self._left.wait()

    @property
    def _has_ended(self) -> bool:
        """Whether the connection has ended; if not, an error that says so is the server's."""
        return self.messages is None or self.messages.ended

    @property
    def is_http(self) -> bool:
        """Whether the server is reached over HTTP."""
        return self._server.transport != "stdio"

    @property
    def unreached(self) -> bool:
        """Whether the session ended since a request could not even be sent."""
        cause = first_error(self._cause) if self._cause is not None else None
        return isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)

    def reason(self, error: BaseException) -> str:
        """Return why a request failed, without secrets. In the groups that the SDK raises, the
        first error is the cause.
        """
        return redact(self._reason(first_error(error)), self._server.secrets)

    def explain(self, error: BaseException) -> str:
        """Return why the session failed, with the server's other output."""
        return self.with_evidence(self.reason(self._cause or error))

    def problem(self, error: BaseException) -> ServerProblem:
        """Return why the session failed, and whether it may succeed later."""
        cause = first_error(self._cause or error)
        retry_after = self._retry_after
        if isinstance(cause, httpx2.HTTPStatusError):
            retry_after = retry_after_seconds(cause.response.headers.get("retry-after", ""))
        return ServerProblem(
            self.explain(error), may_pass=self._may_pass(cause), retry_after=retry_after
        )

    def _may_pass(self, error: BaseException) -> bool:
        if isinstance(error, ServerProblem):
            return error.may_pass
        if isinstance(error, httpx2.HTTPStatusError):
            return error.response.status_code in TRANSIENT_STATUSES
        if self.status:
            return self.status in TRANSIENT_STATUSES
        if is_closed(error):
            return self.exit_code not in NOT_RUNNABLE
        if isinstance(error, FileNotFoundError | PermissionError):
            return False
        return isinstance(error, httpx2.TransportError | OSError) and is_transient_network(error)

    def with_evidence(self, why: str) -> str:
        """Return a reason with the server's output that is not a message, without secrets."""
        sentences = [why]
        if self._stray_output:
            sentences.append(
                f"It wrote on stdout, which is for JSON-RPC only: {self._stray_output!r}"
            )
        text = redact(TERMINAL.sub("", self._stderr.end()), self._server.secrets)
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        if informative := [line for line in lines if not CHATTER.search(line)] or lines:
            last_lines = "\n".join(informative[-STDERR_LINES:])
            sentences.append(f"The end of its stderr: {last_lines[-STDERR_SHOWN:]}")
        return redact(". ".join(sentences), self._server.secrets)

    @asynccontextmanager
    async def _streams(
        self, mark: Mapping[str, str], secrets: MessageSecrets
    ) -> AsyncGenerator[tuple[Any, Any]]:
        server = self._server
        sign_in: Any = None
        if server.auth is not None:
            from pegboard.servers.sign_in import ServerSignIn  # builds do not need FastMCP

            sign_in = ServerSignIn(server.url, server.auth, secrets, by_hand=self._by_hand)

        def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
            # The SSE transport passes limits of its own, which do not hold.
            return httpx2.AsyncClient(
                headers=dict(server.headers),
                timeout=self._timeout,
                auth=sign_in,
                event_hooks={"response": [self._on_response]},
            )

        if server.transport == "stdio":
            environment = {**passed_environment(os.environ), **server.env, **mark}
            self._process = await start_process(server, environment, self._stderr.file)
            max_line = max(MIN_LINE, LINE_FACTOR * self._max_event)
            async with message_streams(self._process, max_line) as streams:
                try:
                    yield streams
                except Exception as error:
                    if is_closed(first_error(error)):
                        await self.ended()
                    raise
        elif server.transport == "sse":
            async with sse_client(server.url, httpx_client_factory=client) as streams:
                yield streams
        else:
            async with (
                client() as http,
                streamable_http_client(
                    server.url, http_client=http, max_sse_event_size=self._max_event
                ) as streams,
            ):
                yield streams

    def _reason(self, error: BaseException) -> str:
        command = repr(self._server.command)
        match error:
            case ServerProblem():
                return str(error)
            case FileNotFoundError():
                return f"its command {command} was not found; install it, or give its full path"
            case PermissionError():
                return f"its command {command} may not be run; check its permissions"
            case MCPError() if is_closed(error) and self._has_ended:
                if self.messages is not None and self.messages.problem:
                    return self.messages.problem
                return f"it ended before it answered {self.stage}{self._ending()}; try it by hand"
            case MCPError():
                status = f" (HTTP {self.status})" if self.status else ""
                return (
                    f"it answered {self.stage} with the error {error.code}{status}: "
                    f"{self._short(error.message)}"
                )
            case ValidationError():
                problems = "; ".join(
                    f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                    for problem in error.errors()[:3]
                )
                return f"its answer to {self.stage} is not valid MCP: {problems}"
            case httpx2.HTTPStatusError():
                return f"it answered {self.stage} with HTTP {error.response.status_code}"
            case httpx2.TransportError() | OSError():
                return f"it cannot be reached: {self._short(error) or type(error).__name__}"
            case _:
                return f"{type(error).__name__}: {self._short(error)}"

    def _ending(self) -> str:
        """Return the exit code or signal of a server that ended; empty if it is not known."""
        if self.exit_code is None:
            return ""
        if self.exit_code >= 0:
            return f" (exit code {self.exit_code})"
        try:
            return f" (signal {signal.Signals(-self.exit_code).name})"
        except ValueError:
            return f" (signal {-self.exit_code})"

    def _short(self, value: Any, limit: int = 300) -> str:
        return redact_line(str(value), limit, self._server.secrets)

    def _on_invalid(self, error: ValidationError) -> None:
        """Keep the first line that is not a message: some servers print a greeting first."""
        if not self._stray_output:
            self._stray_output = self._short(error.errors(include_url=False)[0]["input"], 200)

    async def _on_response(self, response: Any) -> None:
        """Limit the body, and keep the status, text and Retry-After of an HTTP error, which the SDK
        leaves out.
        """
        if response.request.method != "POST":
            return
        failed = response.status_code >= 400
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            max_bytes = MAX_REFUSAL if failed else max(MIN_LINE, LINE_FACTOR * self._max_event)
            response.stream = _LimitedBody(response.stream, max_bytes, cut=failed)
        self.status = response.status_code if failed else 0
        self._retry_after = retry_after_seconds(response.headers.get("retry-after", ""))
        refusal = REFUSAL.get()
        if refusal is not None and failed:
            refusal.status = response.status_code
            refusal.text = self._short((await response.aread()).decode("utf-8", "replace"))
        self.refused = self.refused or failed


def first_error(error: BaseException) -> BaseException:
    """Return the first error that is not a group: the SDK raises groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def is_closed(error: BaseException) -> bool:
    """Return whether an error of the SDK says that the server closed the connection."""
    return (
        isinstance(error, MCPError)
        and error.code == CONNECTION_CLOSED
        and error.message == "Connection closed"
    )


async def _no_user(*_: Any) -> ErrorData:
    """Answer a server's request to the user or the model of a client that has neither."""
    return ErrorData(code=INVALID_REQUEST, message="This client only lists what there is.")


LISTING: dict[str, Any] = {"sampling_callback": _no_user, "elicitation_callback": _no_user}
"""Arguments of a session that only lists: some servers show tools only to clients that offer
sampling or elicitation."""


async def handshake(session: ClientSession, modern: bool = False) -> None:
    """Agree on a protocol: try the handshake used until 2026-07, then the protocol without one.

    The SDK's order costs 10 seconds with an older server that does not answer unknown requests.

    Args:
        modern: whether the protocol without a handshake is tried first, as the SDK does.
    """
    preferred = session.initialize
    fallback = session.discover
    if modern:
        preferred, fallback = fallback, preferred
    try:
        await preferred()
    except (MCPError, ValidationError) as error:
        code = error.code if isinstance(error, MCPError) else 0
        if not modern and code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        try:
            await fallback()
        except MCPError:
            if code != REQUEST_TIMEOUT:
                raise error from None
            await preferred()  # the server was still starting, and answers the first request now


async def list_all(
    session: Any, what: str = "tools", report: Callable[[str], None] | None = None
) -> list[Any]:
    """Return the rows that a server lists, unchanged. A cursor that repeats or cannot be sent back
    ends the list.

    Args:
        session: a `RelaySession`.
        what: `tools`, or another key of `LISTS`.
        report: gets the reason if the list ends before its last page.

    Raises:
        ServerProblem: the answer is not a list, or the list has more than `MAX_ROWS` rows.
    """
    method = LISTS[what]
    rows: list[Any] = []
    cursors: list[Any] = []
    while True:
        params = {"cursor": cursors[-1]} if cursors else {}
        try:
            answer = await session.raw_result(method, params)
        except MCPError as error:
            capability = "resources" if what == "resourceTemplates" else what
            offered = getattr(session.server_capabilities, capability)
            if error.code == METHOD_NOT_FOUND and (offered is None or capability != what):
                return []  # a server without this kind of row
            raise
        page = answer.get(what)
        cursor = answer.get("nextCursor")
        if not isinstance(page, list):
            raise ServerProblem(f"its answer to {method} has no list of {what}")
        problem = _cursor_problem(cursor, cursors)
        rows += _new_rows(page, rows) if problem else page
        if len(rows) > MAX_ROWS:
            raise ServerProblem(f"it lists more than {MAX_ROWS:,} {what}; correct the server")
        if problem and report is not None:
            report(f"the list of {what} ends after {len(rows):,}, because {problem}")
        if problem or _is_last(cursor):
            return rows
        cursors.append(cursor)


def _is_last(cursor: Any) -> bool:
    return cursor is None or cursor is False or cursor == ""


def _cursor_problem(cursor: Any, cursors: list[Any]) -> str:
    """Return why a server's next page cannot be requested; "" if it can be, or there is none."""
    if _is_last(cursor):
        return ""
    if isinstance(cursor, bool) or not isinstance(cursor, str | int | float):
        return f"the cursor of its next page is {cursor!r:.200}, expected text; correct the server"
    if cursor in cursors:
        return f"it sent the cursor {cursor!r:.200} twice; correct the server"
    return ""


def _new_rows(page: list[Any], rows: list[Any]) -> list[Any]:
    """Return the rows of a page that are not among those listed before."""
    listed = {json.dumps(row, sort_keys=True, default=repr) for row in rows}
    return [row for row in page if json.dumps(row, sort_keys=True, default=repr) not in listed]


def silence_sdk() -> None:
    """Turn off the logs of the SDK and the HTTP client, which contain URLs, unless their levels are
    set; and the SDK's warnings about deprecated parts of the protocol, which are still in use.
    """
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL + 1)
