"""Limits that the SDK's endpoint does not have: it would swap the answers of two requests with one
id in one session, and one client could open all sessions."""

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
"""Most bytes of a message, the same as the SDK's limit."""
MAX_OPENING = 16_384
"""Most bytes of the message that opens a session. Its content is kept as long as the session."""
MAX_OPEN = 500
"""Most sessions of one client; one more ends the least recently used one."""
MAX_IDS = 1_000
"""Most requests of one session that have no answer yet."""
SESSION_ID = "mcp-session-id"
"""The header with the id of a session, in protocols before 2026-07-28."""


class McpEndpoint:
    """The SDK's endpoint, with unique ids of the requests in a session, and a limit on the sessions
    of a client. A request goes on after its connection broke, so that its id stays in use.

    Args:
        app: the SDK's endpoint. `ClientMiddleware` answers errors of bodies that are too long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: defaultdict[str, OrderedDict[str, set[int]]] = defaultdict(OrderedDict)
        """The sessions of each client, the most recently used last, with hashes of ids in use."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = MutableHeaders(scope=scope)
        del headers["last-event-id"]  # nothing is stored, and the SDK would fail
        session = headers.get(SESSION_ID, "")
        open_sessions = self._open[scope["state"]["client"].name]
        if session in open_sessions:
            open_sessions.move_to_end(session)
        protocol = headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0])
        opens = not session and protocol in HANDSHAKE_PROTOCOL_VERSIONS
        if scope["method"] != "POST" or not (session in open_sessions or opens):
            return await self._app(scope, receive, send)
        try:
            max_bytes = MAX_OPENING if opens else MAX_MESSAGE
            body = await Request(scope, limited_body(receive, max_bytes)).body()
        except ClientDisconnect:
            return None
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        if opens:
            return await self._opening(scope, receive_again, send, open_sessions)
        identity = _request_id(body)
        if identity is None:
            return await self._app(scope, receive_again, send)
        ids_in_use = open_sessions[session]
        key = hash(str(identity))  # the SDK takes 7 and "7" for one id
        if key in ids_in_use or len(ids_in_use) >= MAX_IDS:
            why = f"A request with the id {identity!r:.50} is under way in this session"
            why += f", or {MAX_IDS:,} others are. Give each one its own."
            error = {"code": INVALID_REQUEST, "message": why}
            values = {"jsonrpc": "2.0", "id": identity, "error": error}
            return await JSONResponse(values, 400)(scope, receive_again, send)
        ids_in_use.add(key)

        async def send_and_release(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                ids_in_use.discard(key)

        return await self._app(scope, receive_again, send_and_release)

    async def _opening(
        self, scope: Scope, receive: Receive, send: Send, open_sessions: OrderedDict[str, set[int]]
    ) -> None:
        """Answer a request that opens a session, and end the client's sessions above the limit."""

        async def send_and_record(message: Message) -> None:
            session = MutableHeaders(raw=message.get("headers", [])).get(SESSION_ID)
            if session and message["status"] < 400:
                open_sessions[session] = set()
            await send(message)

        async def receive_nothing() -> Message:
            return {"type": "http.request", "body": b""}

        async def send_nowhere(_: Message) -> None: ...

        await self._app(scope, receive, send_and_record)
        while len(open_sessions) > MAX_OPEN:
            headers = MutableHeaders(raw=list(scope["headers"]))
            del headers["content-length"]
            headers[SESSION_ID], _ = open_sessions.popitem(last=False)
            end_request = {**scope, "method": "DELETE", "headers": headers.raw}
            await self._app(end_request, receive_nothing, send_nowhere)


def limited_body(receive: Receive, max_bytes: int) -> Receive:
    """Return a `receive` that raises RequestError if the body has more than `max_bytes` bytes."""
    size = 0

    async def receive_counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > max_bytes:
            raise RequestError(
                413, "too_large", f"The body has more than {max_bytes:,} bytes.", "body",
                "Shorten it.",
            )  # fmt: skip
        return message

    return receive_counted


def _request_id(body: bytes) -> str | int | None:
    """Return the id of a JSON-RPC request; None for other messages, which the SDK answers."""
    try:
        message = from_json(body)
    except ValueError:
        return None
    if not isinstance(message, dict) or "method" not in message:
        return None
    identity = message.get("id")
    return identity if isinstance(identity, str | int) else None
