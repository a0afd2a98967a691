"""Sessions of clients: the tools that each found, and how it is notified of changes."""

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastmcp.server.dependencies import get_context
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST, PromptListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.serve.access.clients import Client
from pegboard.serve.access.control import AccessControl

IDLE_SECONDS = 1_800.0
"""Seconds of inactivity after which a session is dropped, as by the SDK's transport."""
MAX_SESSIONS = 500
"""Most sessions of one client; the one that was idle longest is dropped first."""
MAX_FOUND = 200
"""Most found tools that a session remembers; the oldest ones are dropped first."""
MAX_SENT_NAMES = 1_000
"""Most call names whose meaning a session remembers; the oldest ones are dropped first."""
MAX_SUBSCRIPTIONS = 64
"""Most subscriptions to notifications of one session."""
MAX_ANONYMOUS_SUBSCRIPTIONS = 1_024
"""Most subscriptions to notifications of all requests of a client outside sessions."""
SESSION_HEADER = "pegboard-session"
"""The header by which a client names a session in the protocol since 2026-07-28."""
SESSION_META = "pegboard/session"
"""The key in `_meta` by which a client names its session, instead of the header."""
Request = Any
"""The context of an MCP request, FastMCP's or the SDK's."""


@dataclass(slots=True, eq=False)
class Session:
    """One session of one client.

    Attributes:
        id: "" for requests outside sessions, which share only notifications.
        found: ids of the tools that the session found, in order of discovery.
        sent_names: the id of each tool that the session was sent, by its call name then. If a name
            comes to mean another tool, calls by the name are refused.
        listed: the names in the last `tools/list`; None before the first one.
        peer: the connection in protocols before 2026-07-28, for notifications.
        changes: the subscriptions to notifications in the protocol since then.
        listen: answers requests for subscriptions.
        last_used: the time of the last request, by the monotonic clock.
    """

    client: Client
    id: str
    found: dict[str, None] = field(default_factory=dict[str, None])
    sent_names: dict[str, str] = field(default_factory=dict[str, str])
    listed: tuple[str, ...] | None = None
    peer: Any = None
    changes: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    listen: ListenHandler = field(init=False)
    last_used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        limit = MAX_SUBSCRIPTIONS if self.id else MAX_ANONYMOUS_SUBSCRIPTIONS
        self.listen = ListenHandler(self.changes, max_subscriptions=limit)

    def remember(self, tools: Mapping[str, str]) -> bool:
        """Add found tools, ids by call name; return whether the session found any of them first."""
        if not self.id:
            return False
        new = [tool for tool in tools.values() if tool not in self.found]
        self.found |= dict.fromkeys(new)
        self.note_names(tools)
        _drop_first(self.found, MAX_FOUND)
        return bool(new)

    def note_names(self, tools: Mapping[str, str]) -> None:
        """Remember which tools the call names mean that the client is sent, ids by name."""
        if self.id:
            self.sent_names |= tools
            _drop_first(self.sent_names, MAX_SENT_NAMES)

    async def tell_of_changes(self) -> None:
        """Notify the client that its `tools/list` changed. Disconnected clients are no error."""
        if self.peer is not None:
            await self.peer.send_tool_list_changed()
        await self.changes.publish(ToolsListChanged())


class Sessions:
    """The sessions by client and id. An id gives no access to the sessions of other clients.

    Args:
        access: says which client a request comes from.
    """

    def __init__(self, access: AccessControl) -> None:
        self._access = access
        self._telling: set[asyncio.Task[None]] = set()
        self._sessions: defaultdict[str, OrderedDict[str, Session]] = defaultdict(OrderedDict)

    def current(self) -> Session:
        """Return the session of the MCP request that is being answered."""
        request = get_context().request_context
        assert request is not None
        return self.of_request(request)

    def get(self, client: Client, identity: str) -> Session:
        """Return a client's session with that id; start one if there is none."""
        sessions = self._sessions[client.name]
        session = sessions.get(identity)
        if session is None:
            session = Session(client, identity)
            sessions[identity] = session
            self._drop_old()
        sessions.move_to_end(identity)
        session.client = client
        session.last_used = time.monotonic()
        return session

    def of_request(self, request: Request) -> Session:
        """Return the session of an MCP request. Its client is determined again for each request."""
        session = self.get(self._client(request), _session_id(request))
        if request.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            session.peer = request.session
        return session

    async def tell_of_changes(self) -> None:
        """Notify the sessions that were sent a list that it may have changed."""
        for session in self.all():
            if session.listed is not None:
                await session.tell_of_changes()

    def tell_soon(self, agent: str, change: Any) -> None:
        """Start to notify the sessions whose clients may see an agent that its prompts or resources
        changed.
        """
        telling = asyncio.create_task(self._tell_of(agent, change))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _tell_of(self, agent: str, change: Any) -> None:
        is_prompts = isinstance(change, PromptListChangedNotification)
        for session in self.all():
            if not await self._access.sees_agent(session.client, agent):
                continue
            if session.peer is not None and is_prompts:
                await session.peer.send_prompt_list_changed()
            elif session.peer is not None:
                await session.peer.send_resource_list_changed()
            event = PromptsListChanged() if is_prompts else ResourcesListChanged()
            await session.changes.publish(event)

    def all(self) -> list[Session]:
        """Return all sessions, after the idle ones are dropped."""
        self._drop_old()
        return [session for sessions in self._sessions.values() for session in sessions.values()]

    def _client(self, request: Request) -> Client:
        if request.request is None:
            return self._access.stdio_client()
        client = getattr(request.request.state, "client", None)
        if client is None:
            raise MCPError(INVALID_REQUEST, "The credentials are not known here.")
        return client

    def _drop_old(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        for sessions in self._sessions.values():
            while sessions:
                session = next(iter(sessions.values()))
                if len(sessions) <= MAX_SESSIONS and session.last_used > oldest:
                    break
                session.listen.close()
                del sessions[session.id]


def stated_text(request: Request, header: str, meta: str) -> str:
    """Return the text that an MCP request has in `_meta` or in a header; "" if there is none."""
    text = (request.meta or {}).get(meta)
    if not text and request.request is not None:
        text = request.request.headers.get(header)
    return text if isinstance(text, str) else ""


def _session_id(request: Request) -> str:
    """Return the id of a request's session; "" outside one. The ids of clients that name sessions
    themselves have a prefix, so that they cannot equal an id of the SDK.
    """
    if request.request is None:
        return "stdio"
    if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        name = stated_text(request, SESSION_HEADER, SESSION_META)
        return f"named:{name[:200]}" if name else ""
    return request.request.headers.get("mcp-session-id", "")


def _drop_first(values: dict[str, Any], limit: int) -> None:
    for key in list(values)[: max(0, len(values) - limit)]:
        del values[key]
