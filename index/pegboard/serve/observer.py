"""What the gateway reports of each request: to metrics, spans and the request log."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pegboard.hits import Hit
from pegboard.retrieval.found import FindResult
from pegboard.serve.access import Client
from pegboard.serve.catalogue import View

Outcome = Literal[
    "ok",
    "tool_error",
    "invalid",
    "unknown",
    "refused",
    "unconfirmed",
    "timeout",
    "too_large",
    "failed",
    "cancelled",
]
"""How a call ended: answered; answered with an error of the tool's own; arguments against the
schema; no such tool that the client may see; not agreed to or not configured; the user is asked
first; no answer in time; a longer answer than is allowed; not reached, or broken off; the client
gave up."""

log = logging.getLogger("pegboard.serve")


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        view: the release as the client sees it; gives the hits' call names.
        result: the hits, best first, all of them visible to the client.
        reason: why there are none, or why those there are may not fit; else "".
    """

    view: View
    result: FindResult
    reason: str = ""

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits, best first."""
        return self.result.hits


class Observer:
    """Is told of each search, call, list and refusal; does nothing of its own. Methods must not
    block: they run in the event loop.
    """

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        """A client searched. `session` is "" outside a session."""

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """A client called a tool.

        Args:
            tool: its id, "" for a name that means none.
            size: bytes of the answer.
        """

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        """A client was sent definitions of tools: by a list or by a search.

        Args:
            sent: their tokens, about.
            whole: those of all tools that the client may see.
        """

    def refused(self, reason: str, detail: str, client: str = "", session: str = "") -> None:
        """A request was refused.

        Args:
            reason: one of few words, such as `credentials`, `origin`, `unknown_tool`.
            detail: who asked for what, without the credentials; secrets are taken out of it.
            client: its name, "" for one that is not known.
        """


class Observers(Observer):
    """Tells several observers; one that fails costs neither the request nor the others."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self.observers = list(observers)

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        self._tell(lambda each: each.found(client, session, query, found, ms))

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        self._tell(lambda each: each.called(client, session, tool, outcome, ms, size))

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        self._tell(lambda each: each.listed(client, session, tools, sent, whole))

    def refused(self, reason: str, detail: str, client: str = "", session: str = "") -> None:
        self._tell(lambda each: each.refused(reason, detail, client, session))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for observer in self.observers:
            try:
                tell(observer)
            except Exception:
                log.exception("An observer failed.")
