"""What the gateway remembers of a session: the tools that it found, and whom to tell of changes."""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastmcp.server.dependencies import get_context
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.serve.access.clients import Client
from pegboard.serve.access.control import AccessControl

IDLE_SECONDS = 1_800.0
"""After which a session is forgotten, as by the SDK's transport."""
MAX_SESSIONS = 500
"""Of one client; the one that was idle longest goes first."""
MAX_FOUND = 200
"""Tools that a session remembers; the first ones go first."""
MAX_GIVEN = 1_000
SESSION_HEADER, SESSION_META = "pegboard-session", "pegboard/session"
"""By which a client of the protocol since 2026-07-28, which has no sessions, names one."""
Request = Any
"""The context of an MCP request, FastMCP's or the SDK's."""


@dataclass(slots=True, eq=False)
class Session:
    """One session of one client.

    Attributes:
        id: "" for requests that belong to no session: they share nothing but notifications.
        found: ids of the tools that it found, in order of discovery.
        given: the id of each tool that it was given, by the name that it had then: a name that
            comes to mean another tool is not obeyed.
        listed: the names that it was sent last by `tools/list`; None before.
        peer: the connection of a protocol before 2026-07-28, to be told of changes.
        changes: whom to tell in the protocol since then.
        used: when, by the monotonic clock.
    """

    client: Client
    id: str
    found: dict[str, None] = field(default_factory=dict[str, None])
    given: dict[str, str] = field(default_factory=dict[str, str])
    listed: tuple[str, ...] | None = None
    peer: Any = None
    changes: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    listen: ListenHandler = field(init=False)
    used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.listen = ListenHandler(self.changes, max_subscriptions=64 if self.id else 1_024)

    def remember(self, tools: Mapping[str, str]) -> bool:
        """Add tools that were found, ids by name; return whether any is new."""
        if not self.id:
            return False
        new = [tool for tool in tools.values() if tool not in self.found]
        self.found |= dict.fromkeys(new)
        self.give(tools)
        _drop_first(self.found, MAX_FOUND)
        return bool(new)

    def give(self, tools: Mapping[str, str]) -> None:
        """Note what the names mean that the client is sent, ids by name."""
        if self.id:
            self.given |= tools
            _drop_first(self.given, MAX_GIVEN)

    async def tell_of_changes(self) -> None:
        """Tell the client that its `tools/list` changed. Never raises for a client that is gone."""
        if self.peer is not None:
            await self.peer.send_tool_list_changed()
        await self.changes.publish(ToolsListChanged())


class Sessions:
    """The sessions by client and id, so that an id is worth nothing to another client.

    Args:
        access: says which client a request comes from.
    """

    def __init__(self, access: AccessControl) -> None:
        self._access = access
        self._sessions: defaultdict[str, OrderedDict[str, Session]] = defaultdict(OrderedDict)

    def current(self) -> Session:
        """Return the session of the MCP request that is being answered."""
        request = get_context().request_context
        assert request is not None
        return self.of_request(request)

    def get(self, client: Client, identity: str) -> Session:
        """Return a client's session of that id, a new one if there is none."""
        own = self._sessions[client.name]
        session = own.get(identity)
        if session is None:
            session = own[identity] = Session(client, identity)
            self._drop_old()
        own.move_to_end(identity)
        session.client, session.used = client, time.monotonic()
        return session

    def of_request(self, request: Request) -> Session:
        """Return the session of an MCP request, whose client is decided anew for each request."""
        session = self.get(self._client(request), _session_id(request))
        if request.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            session.peer = request.session
        return session

    async def tell_of_changes(self) -> None:
        """Tell each session that was sent a list that its list may have changed."""
        for session in self.all():
            if session.listed is not None:
                await session.tell_of_changes()

    def all(self) -> list[Session]:
        """Return the sessions there are, without idle ones."""
        self._drop_old()
        return [session for own in self._sessions.values() for session in own.values()]

    def _client(self, request: Request) -> Client:
        if request.request is None:
            return self._access.stdio_client()
        client = getattr(request.request.state, "client", None)
        if client is None:
            raise MCPError(INVALID_REQUEST, "The credentials are not known here.")
        return client

    def _drop_old(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        for own in self._sessions.values():
            while own:
                session = next(iter(own.values()))
                if len(own) <= MAX_SESSIONS and session.used > oldest:
                    break
                session.listen.close()
                del own[session.id]


def stated_text(request: Request, header: str, meta: str) -> str:
    """Return what an MCP request states in `_meta` or in a header; "" for nothing."""
    text = (request.meta or {}).get(meta)
    if not text and request.request is not None:
        text = request.request.headers.get(header)
    return text if isinstance(text, str) else ""


def _session_id(request: Request) -> str:
    """Return the id of a request's session, "" for none; ids of both eras cannot meet."""
    if request.request is None:
        return "stdio"
    if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        named = stated_text(request, SESSION_HEADER, SESSION_META)
        return f"named:{named[:200]}" if named else ""
    return request.request.headers.get("mcp-session-id", "")


def _drop_first(values: dict[str, Any], most: int) -> None:
    for key in list(values)[: max(0, len(values) - most)]:
        del values[key]
