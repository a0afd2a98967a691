"""List the tools of one live MCP server with the official SDK. Nothing that a server does may
hang or end a run: its time, bytes, pages and tools are limited.

A server over stdio is ended shielded from cancellation, so the time limit is one of anyio's scopes:
a native `asyncio.timeout` would break the shield.

The SDK reads a message as a whole or not at all: one tool with a lone surrogate, a number of 6,000
digits or a thousand levels would cost all tools of the server. So `ListedTraffic` takes the tools
out of every message, and the SDK sees none."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_core import from_json

from catalogs.mcp.records import agent_description
from pegboard.errors import SourceError
from pegboard.foreign.files import parse_json
from pegboard.redaction import redact
from pegboard.servers.config import Server, ServerProblem
from pegboard.servers.connect import all_tools, handshake, server_streams, silence_sdk
from pegboard.servers.failures import Progress, evidence, explain_failure
from pegboard.servers.process import Stderr, killing_leftovers
from pegboard.servers.traffic import Traffic


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's description and its raw tools."""

    description: str
    tools: list[Any]


async def list_server(server: Server, timeout: float, max_bytes: int) -> ServerAnswer:
    """All tools of a server, and what it says of itself, within `timeout` seconds.

    Args:
        max_bytes: of all that the server sends.

    Raises ServerProblem that says what happened, with the last lines of the server's stderr,
    without secrets."""
    import anyio
    import mcp.client.sse  # noqa: F401  # loading the SDK takes seconds, which are not the server's

    silence_sdk()
    progress, stderr, traffic = Progress(server.secrets), Stderr(), ListedTraffic(max_bytes)
    trouble: Exception | None = None
    try:
        with killing_leftovers() as mark, anyio.move_on_after(timeout) as limit:
            try:
                marked = replace(server, env={**server.env, **mark})
                async with server_streams(marked, timeout, progress, stderr, traffic) as streams:
                    await _converse(streams, progress, traffic)
            except Exception as error:
                trouble = error
    finally:
        written = stderr.end()
    # A server that answered everything and then would not end properly was listed all the same.
    if traffic.answer:
        return traffic.answer
    if limit.cancel_called:
        why = (
            f"it did not answer within {timeout:g} seconds (waiting for {progress.stage}); try it "
            f"by hand, or raise timeout"
        )
    else:
        # The SDK takes what is raised while it reads an event for the event's end.
        why = explain_failure(traffic.problem or trouble, server, progress)
    raise ServerProblem(
        redact(". ".join([why, *evidence(progress, written)]), server.secrets)
    ) from None


async def _converse(streams: Any, progress: Progress, traffic: "ListedTraffic") -> None:
    from mcp.client.session import ClientSession
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp_types import Implementation

    pages = _Pages(JSONRPCDispatcher(*streams, on_stream_exception=progress.on_invalid_message))
    info = Implementation(name="pegboard", version="1")
    async with ClientSession(dispatcher=pages, client_info=info) as session:
        progress.stage = "initialize"
        await handshake(session)
        progress.stage = "tools/list"
        tools = await all_tools(session, traffic)
        about = session.server_info.model_dump() if session.server_info else {}
        traffic.answer = ServerAnswer(agent_description(about, session.instructions), tools)


@dataclass(slots=True)
class _Pages:
    """A dispatcher that completes answers to tools/list, whose tools `ListedTraffic` has taken out:
    the session would refuse a whole page for a field that is missing or malformed.
    """

    inner: Any

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        raw = await self.inner.send_raw_request(method, params, opts)
        if method != "tools/list":
            return raw
        return {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        await self.inner.notify(method, params, opts)

    async def run(self, *args: Any, **kwargs: Any) -> None:
        await self.inner.run(*args, **kwargs)


class ListedTraffic(Traffic):
    """The bytes received from one server that is listed: their sum is bounded.

    Args:
        max_bytes: of it, decompressed.

    Attributes:
        page: the last answer to tools/list, with its tools.
        answer: all that the server was asked for, once it is complete.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self.page: Mapping[str, Any] = {}
        self.answer: ServerAnswer | None = None
        self._left = max_bytes

    async def body(self, chunks: AsyncIterable[bytes]) -> bytes:
        """Return a whole body."""
        return await super().body(self._counted(chunks))

    def lines(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the lines of a stream."""
        return super().lines(self._counted(chunks))

    async def _counted(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks; raises ServerProblem if the server has sent too many bytes."""
        async for chunk in chunks:
            self._left -= len(chunk)
            if self._left < 0:
                self.problem = ServerProblem(
                    f"it sent more than {self._max_bytes:,} bytes; correct the server, or raise "
                    f"max_bytes of its catalog"
                )
                raise self.problem
            yield chunk

    def sift(self, message: bytes) -> bytes:
        """Return a message as the SDK can read it, without the tools, which become `page`."""
        try:
            value = parse_json(message.decode("utf-8", "surrogateescape"), "")
        except SourceError:
            return message
        if isinstance(value, Mapping):
            row = cast("Mapping[str, Any]", value)
            result = row.get("result")
            if isinstance(result, Mapping) and isinstance(result.get("tools"), list):
                self.page = cast("Mapping[str, Any]", result)
                return _encoded({**row, "result": {**result, "tools": []}})
        try:
            from_json(message)
        except ValueError:
            return _encoded(value)
        return message


def _encoded(value: Any) -> bytes:
    """Return JSON in UTF-8; U+FFFD stands for what cannot be written in it."""
    text = json.dumps(value, ensure_ascii=False, default=lambda _: "\ufffd")
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
