"""The messages of one MCP server, as the SDK's sessions read them: without the secrets that it was
given. One boundary for results, errors, progress, logs and what the server asks its client."""

from collections.abc import Mapping
from typing import Any

import anyio
from anyio.abc import TaskStatus
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CallToolResult

from pegboard.secret_values import SecretValues
from pegboard.servers.failures import Progress

NO_TOOLS = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class RelaySession(ClientSession):
    """A session that does not hold results against the output schema: that is the caller's part."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Accept any result."""


class ServerDispatcher(JSONRPCDispatcher[TransportContext]):
    """Hides secrets, and keeps answers to `tools/list` as they are: the session would refuse a
    whole page for one malformed tool.

    Attributes:
        page: the last answer to `tools/list`.
        ended: whether nothing will be answered any more.
    """

    def __init__(self, streams: Any, progress: Progress, secrets: SecretValues) -> None:
        super().__init__(*streams, on_stream_exception=progress.on_invalid_message)
        self._secrets = secrets
        self.page: Mapping[str, Any] = {}
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
        if method != "tools/list":
            return raw
        self.page = raw
        return dict(NO_TOOLS)

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
