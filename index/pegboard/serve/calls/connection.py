"""One session with an MCP server: FastMCP's client over the server's streams."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

from fastmcp.client.transports import ClientTransport
from fastmcp.server.context import Context
from fastmcp.server.providers import proxy
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import x_mcp_header_map
from mcp_types import (
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.canonical import canonical_json
from pegboard.records import Tool
from pegboard.serve.calls.client_request import client_request, is_modern
from pegboard.serve.calls.confirmation import KEY, AskFirst, split_state
from pegboard.serve.calls.results import call_result
from pegboard.serve.errors import CallProblem, answer_too_large
from pegboard.serve.settings import CallSettings
from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.connect import (
    REFUSAL,
    Refusal,
    ServerTransport,
    handshake,
    is_closed,
    list_all,
)
from pegboard.servers.stdio import TOO_LARGE

PING_SECONDS = 5.0
"""Seconds that a server has to answer a ping after a cancelled call, before it is restarted."""
CLOSE_SECONDS = 5.0
"""Seconds in which a session ends by itself, before the server's process is killed."""
END_SECONDS = 0.05
"""Seconds in which a connection that was closed is seen as ended."""
UNKNOWN = "Whether this call had an effect is not known: check before you repeat it."
"""What is said of a call that was sent, and did not get a valid answer."""
SESSION = re.compile(
    r"(?i)session\b.{0,200}\b(not found|unknown|invalid|expired|terminated|closed|lost|missing"
    r"|required|gone|does(n't| not) exist|no longer|not valid)"
    r"|\b(no|no valid|unknown|invalid|missing|expired|bad|stale)\b.{0,20}\bsession"
)
"""Matches what servers say of a session that they do not know."""
NOT_INITIALIZED = re.compile(
    r"(?i)\b(server|client|session|connection)\b.{0,20}\bnot( been| yet){0,2} initiali[sz]ed"
    r"|before initiali[sz]"
)
"""Matches what servers say to a request in a session that did not begin with a handshake."""
SDK_ERROR = re.compile(
    "SSE stream |Failed to parse |Unexpected content type|server answered a request with 202"
)
"""Matches errors of the SDK about an answer that it could not read."""
RESERVED_META = ("progressToken", "pegboard/session", "pegboard/context")
"""Keys of a request's `_meta` that are meant for the gateway."""
MAX_DETAILS = 1_000
"""Most characters of the data of an error that a message shows."""
SERVER_REQUESTS = ("roots", "sampling_handler", "elicitation_handler", "log_handler")
"""Options of `ProxyClient` for requests of the server that it forwards by default."""

ListChange = (
    ToolListChangedNotification | PromptListChangedNotification | ResourceListChangedNotification
)
"""What a server says of its lists."""

log = logging.getLogger("pegboard.serve")


class SessionLost(CallProblem):
    """A call that the server refused, since it does not know the session any longer, or that could
    not be sent. It may be made once more in a new session.
    """

    def __init__(self, message: str) -> None:
        super().__init__("failed", message)


class _Transport(ServerTransport, ClientTransport):
    """A server's transport as FastMCP's client takes it."""


class Connection:
    """A session with one server, for one session of a client or for all. Call `open` first.

    Args:
        server: the server with its secrets resolved.
        forwards: whether the server's own requests are forwarded to the client that called last.
            Only allowed if all calls come from one session.
        modern: whether the protocol since 2026-07-28 is tried first.
        on_list_changed: called with the server's notification that its list of tools changed; for
            a session of all clients, also of prompts and of resources.

    Attributes:
        client: FastMCP's client of the server.
        last_used: when the last call ended, by the monotonic clock.
    """

    def __init__(
        self,
        server: Server,
        limits: CallSettings,
        *,
        forwards: bool,
        modern: bool,
        on_list_changed: Callable[[ListChange], None],
    ) -> None:
        self._on_list_changed = on_list_changed
        self._forwards = forwards
        self._modern = modern
        self._transport = _Transport(server, limits.timeout, limits.max_bytes)
        options: dict[str, Any] = {} if forwards else dict.fromkeys(SERVER_REQUESTS)
        self.client = proxy.ProxyClient(
            self._transport,
            name="pegboard",
            auto_initialize=False,
            message_handler=self._on_message,
            timeout=limits.timeout,
            **options,
        )
        self._max_bytes = limits.max_bytes
        self._definitions_stale = True
        self._definitions: dict[str, str] | None = None
        """The server's definitions of tools by name; None if they could not be listed."""
        self._ping: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._users = 0
        self._closed = False
        self.last_used = time.monotonic()

    @property
    def usable(self) -> bool:
        """Whether calls may still be answered."""
        messages = self._transport.messages
        return not self._closed and (messages is None or not messages.ended)

    @property
    def in_use(self) -> bool:
        """Whether a call is under way."""
        return self._users > 0

    @contextmanager
    def held(self) -> Generator[None]:
        """Count the connection as in use in the block."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self.last_used = time.monotonic()

    async def open(self) -> None:
        """Start or reach the server, and agree on a protocol. Raises ServerProblem."""
        try:
            await self.client.__aenter__()
            self._transport.stage = "initialize"
            await handshake(self.client.session, self._modern)
            self._transport.refused = False  # the other protocol's first request may have been
        except Exception as error:
            await self.close()
            raise ServerProblem(await asyncio.to_thread(self._transport.explain, error)) from None
        except BaseException:
            await self.close()
            raise

    async def settled(self) -> None:
        """Wait until it is known whether the server still answers, after a cancelled call or a
        refused request.
        """
        if self._ping is not None:
            await asyncio.wait({self._ping})
        if self._transport.refused and self.usable:
            self._transport.refused = False
            self._closed = self._has_session and not await self._answers_ping()

    async def close(self) -> None:
        """End the session, and the server if the gateway started it, within `CLOSE_SECONDS`. If
        that is interrupted, the server is killed at once.
        """
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.create_task(self._end_session())
        try:
            _, late = await asyncio.wait({self._closing}, timeout=CLOSE_SECONDS)
        finally:
            self._transport.kill()
            self._closing.cancel()
        if late:
            await self._transport.ended()

    async def _end_session(self) -> None:
        with suppress(Exception):
            await self.client.close()

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the result of a call. The server is notified if the call is cancelled.

        Raises:
            SessionLost: the server refused the call since it no longer knows the session.
            CallProblem: the connection broke, or the server answered with a protocol error.
            AskFirst: the server asks the user something first.
        """
        request = client_request()
        if self._forwards and request is not None:
            proxy_context: Any = request.request_context, request._fastmcp  # pyright: ignore[reportPrivateUsage]
            self.client._proxy_rc_ref[0] = proxy_context  # pyright: ignore[reportPrivateUsage]
        self._transport.stage = "tools/call"
        self._transport.status = 0
        refusal = Refusal()
        context = REFUSAL.set(refusal)
        try:
            result = await self._result(tool, arguments, request)
        except asyncio.CancelledError:
            if self.usable and (self._ping is None or self._ping.done()):
                self._ping = asyncio.create_task(self._end_if_silent())
            raise
        except Exception as error:
            raise await self._problem(tool, error, refusal) from None
        finally:
            REFUSAL.reset(context)
        if not isinstance(result, InputRequiredResult):
            return result
        if is_modern(request):
            raise AskFirst(result)
        raise CallProblem(
            "failed",
            f"The server of {tool.id} asks for input, which this client's protocol cannot pass on.",
        )

    async def _result(
        self, tool: Tool, arguments: Mapping[str, Any], request: Context | None
    ) -> CallToolResult | InputRequiredResult:
        """Send a call, and return its result as far as it is valid."""
        session: Any = self.client.session
        if headers := x_mcp_header_map(dict(tool.input_schema)):
            session._x_mcp_header_maps[tool.name] = headers
        responses, state = _responses_for_server(request)
        params = CallToolRequestParams(
            name=tool.name,
            arguments=dict(arguments),
            input_responses=responses,
            request_state=state,
            _meta=_meta_for_server(request),
        )
        reporting = asyncio.Lock()
        raw = await session.raw_result(
            "tools/call",
            params.model_dump(by_alias=True, mode="json", exclude_none=True),
            _progress_reporter(request, reporting) if request else None,
        )
        async with reporting:  # progress that came before the result is reported before it
            pass
        return call_result(raw)

    async def _problem(self, tool: Tool, error: Exception, refusal: Refusal) -> CallProblem:
        """Return why a call failed, and mark the session as closed if it has ended."""
        if _is_too_large(error):
            return answer_too_large(self._max_bytes)
        server = f"The MCP server '{tool.agent}'"
        if await self._has_ended(error):
            why = self._transport.reason(error)
            if self._transport.unreached:
                return SessionLost(f"{server} was not called: {why}.")
            return CallProblem(
                "failed",
                f"{server} broke off: {why}. It is started again for the next call. {UNKNOWN}",
            )
        why = self._transport.reason(error)
        if refusal.text:
            why = f"{why}. It said: {refusal.text}" if refusal.text not in why else why
        if await self._has_forgotten(error, refusal):
            self._closed = True
            if refusal.status < 500 or refusal.status == 503 or SESSION.search(refusal.text):
                return SessionLost(f"{server} refused the call: {why}.")
            return CallProblem("failed", f"{server} failed: {why}. {UNKNOWN}")
        if isinstance(error, MCPError) and not SDK_ERROR.match(error.message):
            details = f" Details: {_shortened_json(error.data)}" if error.data else ""
            effect = f" {UNKNOWN}" if refusal.status >= 500 else ""
            return CallProblem("failed", f"{server} failed: {why}.{details}{effect}")
        return CallProblem("failed", f"{server} failed: {why}. {UNKNOWN}")

    async def _has_ended(self, error: Exception) -> bool:
        """Whether a request failed since the connection ended. A server may answer with the same
        error, which is an answer.
        """
        if self.usable and is_closed(error):
            await asyncio.sleep(END_SECONDS)
        if self.usable:
            return False
        self._closed = True
        await self._transport.ended()
        return True

    async def _has_forgotten(self, error: Exception, refusal: Refusal) -> bool:
        """Whether the server no longer knows the session, in whatever form it says so. A refusal
        that may have another reason is compared with that of a ping.
        """
        if not self._has_session or not isinstance(error, MCPError):
            return False
        self._transport.refused = False
        if NOT_INITIALIZED.search(error.message):
            return True
        says_so = SESSION.search(error.message) is not None
        return (refusal.status >= 400 or says_so) and not await self._answers_ping()

    @property
    def _has_session(self) -> bool:
        """Whether the server may keep a session: over HTTP, in the protocols with a handshake."""
        version = self.client.session.protocol_version
        return self._transport.is_http and version not in MODERN_PROTOCOL_VERSIONS

    async def _answers_ping(self) -> bool:
        """Whether the server answers a ping in the session; an error may be an answer, too."""
        refusal = Refusal()
        context = REFUSAL.set(refusal)
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self.client.session.send_ping()
        except TimeoutError:
            return False
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND or refusal.status == 429:
                return True
            lost = SESSION.search(error.message) or NOT_INITIALIZED.search(error.message)
            return self.usable and refusal.status < 400 and lost is None
        except Exception as error:
            log.debug("A ping failed: %s", type(error).__name__)
            return self.usable
        finally:
            REFUSAL.reset(context)
        return True

    async def differs(self, tool: Tool) -> bool:
        """Whether the server's definition of a tool is known, and differs from the release's."""
        if self._definitions_stale:
            self._definitions_stale = False
            try:
                rows = await list_all(self.client.session)
            except Exception as error:
                reason = self._transport.reason(error)
                log.warning("The tools of a server cannot be compared: %s", reason)
            else:
                self._definitions = dict(map(_definition, rows))
        if self._definitions is None:
            return False
        release_definition = _definition_text(tool.description, tool.input_schema)
        return self._definitions.get(tool.name) != release_definition

    async def _end_if_silent(self) -> None:
        """End the session if the server does not answer a ping in time."""
        if not await self._answers_ping():
            await self.close()

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._definitions_stale = True  # clients are not notified: their list is the release's
            self._on_list_changed(message)
        elif self._forwards:
            proxy._restore_request_context(self.client._proxy_rc_ref)  # pyright: ignore[reportPrivateUsage]
            await proxy.default_proxy_message_handler(message)
        elif isinstance(message, PromptListChangedNotification | ResourceListChangedNotification):
            self._on_list_changed(message)


def _progress_reporter(request: Context, reporting: asyncio.Lock) -> ProgressFnT:
    """Return a function that reports progress to the client of a request. It restores the request's
    context, since the server's messages are read in that of the request that opened the session.

    Args:
        reporting: is held while progress is reported.
    """
    context = copy_context()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        async with reporting:
            report_to_client = request.report_progress(progress, total, message)
            await asyncio.create_task(report_to_client, context=context)

    return report


def _responses_for_server(request: Context | None) -> tuple[Any, str | None]:
    """Return the client's answers to the server's questions, and the server's part of the state."""
    if request is None or not is_modern(request):
        return None, None
    all_responses: Any = request.input_responses or {}
    responses = {name: answer for name, answer in all_responses.items() if name != KEY}
    _, state = split_state(request.request_state or "")
    return responses or None, state or None


def _meta_for_server(request: Context | None) -> Any:
    """Return the `_meta` of the client's request without what is meant for the gateway."""
    meta = proxy._forwardable_request_meta(request) or {}  # pyright: ignore[reportPrivateUsage]
    return {key: value for key, value in meta.items() if key not in RESERVED_META} or None


def _is_too_large(error: Exception) -> bool:
    """Whether an answer was longer than the transport accepts."""
    if not isinstance(error, MCPError):
        return False
    return error.data == TOO_LARGE or TOO_LARGE in error.message or "byte limit" in error.message


def _shortened_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_DETAILS else f"{text[:MAX_DETAILS]}..."


def _definition(raw: Any) -> tuple[str, str]:
    """Return the name of a listed tool, and its definition in the form of `_definition_text`."""
    row: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
    hints: Any = row.get("annotations")
    title = row.get("title") or (hints.get("title") if isinstance(hints, Mapping) else "")
    schema = row.get("inputSchema") or {"type": "object", "properties": {}}
    try:
        text = _definition_text(str(row.get("description") or title or ""), schema)
    except (TypeError, ValueError, RecursionError):
        text = ""
    return str(row.get("name", "")).strip(), text


def _definition_text(description: str, schema: Any) -> str:
    """Return a text that is the same for equal definitions, whatever their whitespace."""
    return canonical_json([" ".join(description.split()), schema])
