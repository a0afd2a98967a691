"""What one client may have under way, and how many requests it may make in a minute. Without
clients that are told apart, all there is."""

import resource
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from fastmcp.server.middleware.rate_limiting import TokenBucketRateLimiter
from mcp_types import INVALID_REQUEST
from pydantic_core import from_json
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.serve.access import ANYONE, Client
from pegboard.serve.http_errors import ApiError

MAX_BODY = 4_194_304
"""Of one message, as for the SDK."""
HEADER = "mcp-session-id"


class RequestShare:
    """How many requests of one client may be under way: half of the connections that the process
    may have.
    """

    def __init__(self) -> None:
        self._share = max(1, _max_files() // 2)
        self._under_way = Counter[str]()

    @contextmanager
    def of(self, client: Client) -> Generator[None]:
        """Count a request of a client in the block.

        Raises:
            ApiError: the client has too many under way.
        """
        if client != ANYONE and self._under_way[client.name] >= self._share:
            raise _too_many(
                f"More than {self._share:,} requests are under way.", "some of them to end"
            )
        self._under_way[client.name] += 1
        try:
            yield
        finally:
            self._under_way[client.name] -= 1


class RateLimit:
    """A token bucket for each client: `per_minute` requests, all of which may come at once.

    Args:
        per_minute: None for no limit.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._buckets: dict[str, TokenBucketRateLimiter] = {}

    async def check(self, client: Client) -> None:
        """Count a request. Raises ApiError if there were too many."""
        most = self._per_minute
        if most is None or client == ANYONE:
            return
        bucket = self._buckets.setdefault(client.name, TokenBucketRateLimiter(most, most / 60))
        if not await bucket.consume():
            raise _too_many(f"More than {most:,} requests in a minute.", f"{60 / most:.0f} seconds")


class RequestIds:
    """The ids of requests under way, by session: of two with one id, the SDK would swap the
    answers. An id counts as long as its HTTP request or its handler goes on.
    """

    def __init__(self) -> None:
        self._held = Counter[tuple[str, str]]()

    def is_held(self, session: str, identity: Any) -> bool:
        """Whether a request with that id is under way; 7 and "7" are one for the SDK."""
        return self._held[session, str(identity)] > 0

    @contextmanager
    def held(self, session: str, identity: Any) -> Generator[None]:
        """Hold an id in the block."""
        key = session, str(identity)
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]


class McpEndpoint:
    """The SDK's endpoint for one session's requests at a time with one id.

    Args:
        app: the SDK's, behind `ClientMiddleware`.
    """

    def __init__(self, app: ASGIApp, ids: RequestIds) -> None:
        self._app, self._ids = app, ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = MutableHeaders(scope=scope)
        del headers["last-event-id"]  # nothing is stored, and the SDK would fail
        session, identity = headers.get(HEADER, ""), None
        if session and scope["method"] == "POST":
            body, receive = await _read(receive)
            identity = _request_id(body)
        if identity is None:
            await self._app(scope, receive, send)
        elif self._ids.is_held(session, identity):
            why = f"A request with the id {identity!r:.50} is under way in this session."
            error = {"code": INVALID_REQUEST, "message": f"{why} Give each one its own."}
            values = {"jsonrpc": "2.0", "id": identity, "error": error}
            await JSONResponse(values, 400)(scope, receive, send)
        else:
            with self._ids.held(session, identity):
                await self._app(scope, receive, send)


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """Read a body up to the limit; return it, and what receives it again with what follows."""
    messages: list[Message] = []
    body = bytearray()
    while len(body) <= MAX_BODY:
        message = await receive()
        messages.append(message)
        body += message.get("body", b"")
        if not message.get("more_body"):
            break

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return bytes(body), again


def _request_id(body: bytes) -> str | int | None:
    """Return the id of a JSON-RPC request; None for what is none, which the SDK answers."""
    try:
        message = from_json(body)
    except ValueError:
        return None
    if not isinstance(message, dict) or "method" not in message:
        return None
    identity = message.get("id")
    return identity if isinstance(identity, str | int) else None


def _too_many(what: str, wait_for: str) -> ApiError:
    return ApiError(429, "too_many_requests", what, "client", f"Wait for {wait_for}.")


def _max_files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 100_000 if soft == resource.RLIM_INFINITY else soft
