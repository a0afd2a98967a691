"""The messages of an MCP server as the SDK's sessions receive them: without the secrets that the
server was given, and with invalid text repaired. Results, errors, progress, logs and the server's
own requests all pass through here."""

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, Self, cast

from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    CallToolResult,
    JSONRPCError,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from pegboard.errors import SourceError
from pegboard.foreign.files import parse_json
from pegboard.servers.config import ServerProblem
from pegboard.text.secret_values import SecretValues

NOT_SHOWN = "Not shown: it has a secret of the gateway in it."
"""Replaces binary content with a secret, since clients refuse results with invalid content."""
MAX_ITEMS = 30_000
"""Most messages, or lines that are none, that a server may send in a minute."""


class MessageSecrets(SecretValues):
    """Secrets that are removed from MCP messages, which stay valid."""

    def hide_in(self, value: Any) -> Any:
        """Return JSON values without the secrets; binary content with a secret becomes text."""
        redacted = super().hide_in(value)
        if redacted is value or not isinstance(value, Mapping):
            return redacted
        if "blob" in value and value["blob"] != redacted.get("blob"):
            return {"uri": redacted.get("uri", ""), "mimeType": "text/plain", "text": NOT_SHOWN}
        if value.get("type") in ("image", "audio") and value.get("data") != redacted.get("data"):
            return {"type": "text", "text": NOT_SHOWN}
        return redacted

    def hide_in_message(self, message: Any) -> Any:
        """Return a JSON-RPC message without the secrets."""
        if isinstance(message, JSONRPCError):
            redacted = self.hide_in(message.error.model_dump())
            error = message.error.model_copy(update=redacted)
            return message.model_copy(update={"error": error})
        member = "result" if isinstance(message, JSONRPCResponse) else "params"
        return message.model_copy(update={member: self.hide_in(getattr(message, member))})


class ServerStream:
    """The messages of a transport, without secrets. A request would never be answered if the SDK
    could not parse its response, so that lone surrogates, values that are nested too deeply, and
    numbers with too many digits become U+FFFD.

    Args:
        stream: the SDK's stream.
        on_invalid: is called with the error of each item that is not a message.

    Attributes:
        ended: whether the stream has ended, and no request will be answered.
        problem: why it ended, if the server is at fault; else "".
    """

    def __init__(
        self,
        stream: Any,
        secrets: MessageSecrets,
        on_invalid: Callable[[ValidationError], None],
    ) -> None:
        self._stream = stream
        self._secrets = secrets
        self._on_invalid = on_invalid
        self._items = 0
        self._counted_since = 0.0
        self.ended = False
        self.problem = ""

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self.ended = True
        await self._stream.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._stream:
            try:
                self._count()
                if isinstance(item, ServerProblem):
                    raise item
                message = repaired(item) if isinstance(item, ValidationError) else item
            except ServerProblem as problem:
                self.problem = str(problem)
                return
            if isinstance(message, SessionMessage):
                yield replace(message, message=self._secrets.hide_in_message(message.message))
            elif isinstance(message, ValidationError):
                self._on_invalid(message)
            else:
                yield message

    def _count(self) -> None:
        """Raise ServerProblem if a server sends more than `MAX_ITEMS` in a minute."""
        now = time.monotonic()
        if now - self._counted_since > 60:
            self._counted_since = now
            self._items = 0
        self._items += 1
        if self._items > MAX_ITEMS:
            raise ServerProblem(
                f"it sent more than {MAX_ITEMS:,} messages or lines in a minute; correct the server"
            )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def repaired(error: ValidationError) -> SessionMessage | ValidationError:
    """Return the message that the SDK could not parse, repaired; the error if it is not a message.

    Raises:
        ServerProblem: the message is nested too deeply.
    """
    try:
        value = _as_message(parse_json(error.errors(include_url=False)[0]["input"], ""))
        text = json.dumps(value, ensure_ascii=False, default=lambda _: "\ufffd")
        readable = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        message = jsonrpc_message_adapter.validate_python(json.loads(readable), by_name=False)
    except RecursionError:
        raise ServerProblem("its answer is nested too deeply; correct the server") from None
    except (SourceError, TypeError, ValidationError):
        return error
    return SessionMessage(message)


def _as_message(value: Any) -> Any:
    """Return an answer in the form that the SDK reads, so that its request does not wait in vain:
    with the version, a result that is an object, and an error that is one.
    """
    if not isinstance(value, dict) or "id" not in value or "method" in value:
        return value
    message = {**cast("dict[str, Any]", value), "jsonrpc": "2.0"}
    error = message.get("error")
    result = message.get("result")
    if error is not None:
        message.pop("result", None)
        details = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
        code = details.get("code")
        message["error"] = {
            **details,
            "code": code if isinstance(code, int) else INTERNAL_ERROR,
            "message": str(details.get("message", "")),
        }
    elif "result" in message and not isinstance(result, dict):
        message.pop("error", None)
        message["result"] = {} if result is None else {"content": result}
    return message


class RelaySession(ClientSession):
    """A session that forwards the results of servers unchanged."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Accept any result, whatever the output schema."""

    async def raw_result(
        self, method: str, params: Mapping[str, Any], on_progress: ProgressFnT | None = None
    ) -> Mapping[str, Any]:
        """Return the answer to a request without validation: the SDK would refuse a whole list for
        one malformed tool, and a whole result for one block.

        Args:
            on_progress: called with the server's progress.
        """
        data: dict[str, Any] = {"method": method, "params": {**params}}
        options = CallOptions()
        if on_progress is not None:
            options["on_progress"] = on_progress
        self._stamp(data, options)
        return await self._dispatcher.send_raw_request(method, data["params"], options)
