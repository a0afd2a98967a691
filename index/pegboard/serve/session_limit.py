"""How many sessions of the protocols before 2026-07-28 a client may have: the SDK counts those of
all clients together, and answers 503 to everyone when there are too many."""

from collections import OrderedDict, defaultdict
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_OPEN = 1_000
"""Sessions of one client; the one that was idle longest ends, as if the client ended it."""
MAX_BYTES = 33_554_432
"""Of the requests that opened them: what a client says of itself is held as long as its session."""
HEADER = "mcp-session-id"


class SessionLimit:
    """Ends the oldest session of a client that opens too many, by a request in its name.

    Args:
        app: the SDK's, behind `ClientMiddleware`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: defaultdict[str, OrderedDict[str, int]] = defaultdict(OrderedDict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        own = self._open[scope["state"]["client"].name]
        used = Headers(scope=scope).get(HEADER, "")
        if used in own:
            own.move_to_end(used)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                await self._note(scope, used, Headers(raw=message["headers"]).get(HEADER, ""))
            await send(message)

        await self._app(scope, receive, noting)

    async def _note(self, scope: Scope, used: str, answered: str) -> None:
        own = self._open[scope["state"]["client"].name]
        if scope["method"] == "DELETE":
            own.pop(used, None)
        elif answered and answered != used:
            own[answered] = scope["state"]["size"]
            while len(own) > MAX_OPEN or sum(own.values()) > MAX_BYTES:
                await self._end(scope, own.popitem(last=False)[0])

    async def _end(self, scope: Scope, session: str) -> None:
        """End a session. One that ended already is not found, which changes nothing."""
        own: MutableMapping[str, Any] = {**scope, "method": "DELETE", "headers": []}
        MutableHeaders(scope=own)[HEADER] = session

        async def empty() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unread(message: Message) -> None:
            pass

        await self._app(own, empty, unread)
