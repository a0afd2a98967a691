"""What the SDK's endpoint leaves to others: of two requests in one session with one id it would
swap the answers, and one client could open all sessions there may be."""

from collections import OrderedDict, defaultdict

from mcp_types import INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import from_json
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.serve.errors import RequestError

MAX_MESSAGE = 4_194_304
"""Bytes of a message, as for the SDK."""
MAX_OPENING = 16_384
"""Bytes of the message that opens a session: what a client says of itself is kept as long as it."""
MAX_OPEN = 500
"""Sessions of one client; one more ends the one that was used longest ago."""
MAX_IDS = 1_000
"""Requests of one session that are under way, or were left without their answer."""
SESSION_ID = "mcp-session-id"
"""The header that has the id of a session, in protocols before 2026-07-28."""


class McpEndpoint:
    """The SDK's endpoint for one session's requests at a time with one id, and for so many sessions
    of a client. A request whose connection broke goes on, so its id stays in use.

    Args:
        app: the SDK's, behind `ClientMiddleware`, which answers a body that is too long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: defaultdict[str, OrderedDict[str, set[int]]] = defaultdict(OrderedDict)
        """The sessions of each client, those used last at the end, with hashes of ids in use."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = MutableHeaders(scope=scope)
        del headers["last-event-id"]  # nothing is stored, and the SDK would fail
        session, opened = headers.get(SESSION_ID, ""), self._open[scope["state"]["client"].name]
        if session in opened:
            opened.move_to_end(session)
        protocol = headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0])
        opens = not session and protocol in HANDSHAKE_PROTOCOL_VERSIONS
        if scope["method"] != "POST" or not (session in opened or opens):
            return await self._app(scope, receive, send)
        try:
            most = MAX_OPENING if opens else MAX_MESSAGE
            body = await Request(scope, limited(receive, most)).body()
        except ClientDisconnect:
            return None
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        if opens:
            return await self._opening(scope, again, send, opened)
        identity = _request_id(body)
        if identity is None:
            return await self._app(scope, again, send)
        ids, key = opened[session], hash(str(identity))  # 7 and "7" are one for the SDK
        if key in ids or len(ids) >= MAX_IDS:
            why = f"A request with the id {identity!r:.50} is under way in this session"
            why += f", or {MAX_IDS:,} others are. Give each one its own."
            error = {"code": INVALID_REQUEST, "message": why}
            values = {"jsonrpc": "2.0", "id": identity, "error": error}
            return await JSONResponse(values, 400)(scope, again, send)
        ids.add(key)

        async def ending(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                ids.discard(key)

        return await self._app(scope, again, ending)

    async def _opening(
        self, scope: Scope, receive: Receive, send: Send, opened: OrderedDict[str, set[int]]
    ) -> None:
        """Answer a request that opens a session, and end those of its client that are too many."""

        async def noting(message: Message) -> None:
            session = MutableHeaders(raw=message.get("headers", [])).get(SESSION_ID)
            if session and message["status"] < 400:
                opened[session] = set()
            await send(message)

        async def nothing() -> Message:
            return {"type": "http.request", "body": b""}

        async def unheard(_: Message) -> None: ...

        await self._app(scope, receive, noting)
        while len(opened) > MAX_OPEN:
            headers = MutableHeaders(raw=list(scope["headers"]))
            del headers["content-length"]
            headers[SESSION_ID], _ = opened.popitem(last=False)
            end = {**scope, "method": "DELETE", "headers": headers.raw}
            await self._app(end, nothing, unheard)


def limited(receive: Receive, most: int) -> Receive:
    """Return what receives a request, and raises RequestError if its body has more bytes."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise RequestError(
                413, "too_large", f"The body has more than {most:,} bytes.", "body",
                "Shorten it.",
            )  # fmt: skip
        return message

    return counted


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
