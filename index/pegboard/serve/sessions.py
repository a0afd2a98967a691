"""What the gateway remembers of a session: the tools that it found, and whom to tell of changes."""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from pegboard.serve.access import Client

IDLE_SECONDS = 1_800.0
"""After which a session is forgotten, as by the SDK's transport."""
MAX_SESSIONS = 10_000
"""Of one client; the one that was idle longest goes first."""
MAX_FOUND = 200
"""Tools that a session remembers; the first ones go first."""
MAX_GIVEN = 2_000


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
        for tool in list(self.found)[: max(0, len(self.found) - MAX_FOUND)]:
            del self.found[tool]
        return bool(new)

    def give(self, tools: Mapping[str, str]) -> None:
        """Note what the names mean that the client is sent, ids by name."""
        if self.id:
            self.given |= tools
            for name in list(self.given)[: max(0, len(self.given) - MAX_GIVEN)]:
                del self.given[name]

    async def tell_of_changes(self) -> None:
        """Tell the client that its `tools/list` changed. Never raises for a client that is gone."""
        if self.peer is not None:
            await self.peer.send_tool_list_changed()
        await self.changes.publish(ToolsListChanged())


class Sessions:
    """The sessions by client and id, so that an id is worth nothing to another client."""

    def __init__(self) -> None:
        self._sessions: defaultdict[str, OrderedDict[str, Session]] = defaultdict(OrderedDict)

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

    def all(self) -> list[Session]:
        """Return the sessions there are, without idle ones."""
        self._drop_old()
        return [session for own in self._sessions.values() for session in own.values()]

    def _drop_old(self) -> None:
        oldest = time.monotonic() - IDLE_SECONDS
        for own in self._sessions.values():
            while own:
                session = next(iter(own.values()))
                if len(own) <= MAX_SESSIONS and session.used > oldest:
                    break
                session.listen.close()
                del own[session.id]
