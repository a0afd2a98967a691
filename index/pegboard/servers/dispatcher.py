"""The messages of one MCP server, as the SDK's sessions read them: without the secrets that it was
given, and with half characters mended. One boundary for results, errors, progress, logs and what
the server asks its client."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import anyio
from anyio.abc import TaskStatus
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import CallToolResult, jsonrpc_message_adapter
from pydantic import ValidationError

from pegboard.errors import SourceError
from pegboard.foreign.files import parse_json
from pegboard.secret_values import SecretValues
from pegboard.servers.config import ServerProblem
from pegboard.servers.failures import Progress

EMPTY = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
NOT_SHOWN = "Not shown: it has a secret of the gateway in it."
"""In place of binary content without a part of it, which clients refuse with the whole result."""


class MessageSecrets(SecretValues):
    """Secrets that are taken out of MCP messages, which stay valid."""

    def hide_in(self, value: Any) -> Any:
        """Return JSON values without the secrets; binary content that has one becomes a text."""
        shown = super().hide_in(value)
        if shown is value or not isinstance(value, Mapping):
            return shown
        if "blob" in value and value["blob"] != shown.get("blob"):
            return {"uri": shown.get("uri", ""), "mimeType": "text/plain", "text": NOT_SHOWN}
        if value.get("type") in ("image", "audio") and value.get("data") != shown.get("data"):
            return {"type": "text", "text": NOT_SHOWN}
        return shown


class RelaySession(ClientSession):
    """A session that does not hold results against the output schema: that is the caller's part."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Accept any result."""


class MendedStream:
    """The messages of a transport. One that the SDK could not parse would never be answered: half
    characters, and what is nested too deeply or has too many digits, become U+FFFD.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._stream:
            yield mended(item) if isinstance(item, ValidationError) else item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def mended(error: ValidationError) -> SessionMessage | ValidationError:
    """Return the message that the SDK could not parse as it can read it, or the error if it is no
    message. Raises ServerProblem if it is nested too deeply.
    """
    try:
        value = parse_json(error.errors(include_url=False)[0]["input"], "")
        text = json.dumps(value, ensure_ascii=False, default=lambda _: "\ufffd")
        readable = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        message = jsonrpc_message_adapter.validate_python(json.loads(readable), by_name=False)
    except RecursionError:
        raise ServerProblem("its answer is nested too deeply; correct the server") from None
    except (SourceError, TypeError, ValidationError):
        return error
    return SessionMessage(message)


class ServerDispatcher(JSONRPCDispatcher[TransportContext]):
    """Hides secrets, and keeps answers to `tools/list` as they are: the session would refuse a
    whole page for one malformed tool.

    Attributes:
        page: the last answer that was kept.
        kept: the methods whose answers are kept, each with the member that is a list.
        ended: whether nothing will be answered any more.
    """

    def __init__(self, streams: Any, progress: Progress, secrets: MessageSecrets) -> None:
        read, write = streams
        messages: Any = MendedStream(read)
        super().__init__(messages, write, on_stream_exception=progress.on_invalid_message)
        self._secrets = secrets
        self.page: Mapping[str, Any] = {}
        self.kept = {"tools/list": "tools"}
        self.ended = False

    async def send_raw_request(
        self, method: str, params: Any, opts: Any = None, **more: Any
    ) -> dict[str, Any]:
        """Send a request; see the SDK."""
        hide = self._secrets
        if opts and (report := opts.get("on_progress")):

            async def reported(progress: float, total: float | None, message: str | None) -> None:
                await report(progress, total, message and hide.hide(message))

            opts = {**opts, "on_progress": reported}
        try:
            raw = hide.hide_in(await super().send_raw_request(method, params, opts, **more))
        except MCPError as error:
            raise MCPError(error.code, hide.hide(error.message), hide.hide_in(error.data)) from None
        if method not in self.kept:
            return raw
        self.page = raw
        return {self.kept[method]: [], **EMPTY}

    async def run(
        self,
        on_request: Any,
        on_notify: Any,
        on_notify_intercept: Any = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Read messages until there are no more."""

        async def request(context: Any, method: str, params: Any) -> Any:
            return await on_request(context, method, self._secrets.hide_in(params))

        async def notify(context: Any, method: str, params: Any) -> None:
            await on_notify(context, method, self._secrets.hide_in(params))

        try:
            await super().run(request, notify, on_notify_intercept, task_status=task_status)
        finally:
            self.ended = True
