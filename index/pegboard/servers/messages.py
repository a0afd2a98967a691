"""The messages of one MCP server, as the SDK's sessions read them: without the secrets that it was
given, and with half characters mended. One boundary for results, errors, progress, logs and what
the server asks its client."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, Self

from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from pegboard.errors import SourceError
from pegboard.foreign.files import parse_json
from pegboard.servers.config import ServerProblem
from pegboard.text.secret_values import SecretValues

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

    def hide_in_message(self, message: Any) -> Any:
        """Return a JSON-RPC message without the secrets."""
        name = "result" if isinstance(message, JSONRPCResponse) else "params"
        if isinstance(message, JSONRPCError):
            error = self.hide_in(message.error.model_dump())
            return message.model_copy(update={"error": message.error.model_copy(update=error)})
        return message.model_copy(update={name: self.hide_in(getattr(message, name))})


class ServerStream:
    """The messages of a transport, without secrets. One that the SDK could not parse would never
    be answered: half characters, and what is nested too deeply or has too many digits, become
    U+FFFD.

    Args:
        stream: the SDK's.
        on_invalid: is told of what is no message.

    Attributes:
        ended: whether nothing will be answered any more.
    """

    def __init__(
        self,
        stream: Any,
        secrets: MessageSecrets,
        on_invalid: Callable[[ValidationError], None],
    ) -> None:
        self._stream, self._secrets, self._on_invalid = stream, secrets, on_invalid
        self.ended = False

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self.ended = True
        await self._stream.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._stream:
            message = mended(item) if isinstance(item, ValidationError) else item
            if isinstance(message, SessionMessage):
                yield replace(message, message=self._secrets.hide_in_message(message.message))
            elif isinstance(message, ValidationError):
                self._on_invalid(message)
            else:
                yield message

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


class RelaySession(ClientSession):
    """A session that passes on what servers send as it is."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Accept any result: to hold it against the output schema is the caller's part."""

    async def raw_result(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a request, unchecked: for one malformed tool of a list the SDK
        would refuse all.
        """
        data: dict[str, Any] = {"method": method, "params": {**params}}
        options = CallOptions()
        self._stamp(data, options)
        return await self._dispatcher.send_raw_request(method, data["params"], options)
