"""What the gateway reports of each request: counts and times for Prometheus (`/metrics`), a span of
OpenTelemetry for each search, and lines of the request log.

Labels have few values: clients, which the operator names, catalogs, and outcomes. Spans go to the
tracer provider of the process, which the operator sets up as for any service
(`opentelemetry-instrument pegboard serve`); FastMCP records those of MCP requests and calls.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pegboard.hits import Hit
from pegboard.redaction import redact, redact_line
from pegboard.retrieval.found import FindResult
from pegboard.serve.access import Client
from pegboard.serve.request_log import RequestLog
from pegboard.serve.views import View

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
MAX_QUERY = 2_000
"""Characters of a request that are logged."""
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
    """Is told of each search, call, list and refusal, in the event loop.

    Args:
        log: the request log; None for none.
        tracer: that of the process by default.
    """

    def __init__(self, log: RequestLog | None = None, tracer: trace.Tracer | None = None) -> None:
        self._log, self._tracer = log, tracer or trace.get_tracer("pegboard.serve")
        self._registry = CollectorRegistry()
        common: Any = {"registry": self._registry}
        self._finds = Counter(
            "pegboard_finds", "Requests for tools.", ["client", "outcome"], **common
        )
        self._find_seconds = Histogram(
            "pegboard_find_seconds", "Seconds of a request for tools.", buckets=SECONDS, **common
        )
        self._calls = Counter(
            "pegboard_calls", "Calls of tools.", ["client", "catalog", "outcome"], **common
        )
        self._call_seconds = Histogram(
            "pegboard_call_seconds", "Seconds of a call.", ["catalog"], buckets=SECONDS, **common
        )
        self._tokens_sent = Counter(
            "pegboard_tokens_sent", "Tokens of definitions sent, about.", ["client"], **common
        )
        self._tokens_saved = Counter(
            "pegboard_tokens_saved",
            "Tokens that the definitions of all tools would have taken more, about.",
            ["client"],
            **common,
        )
        self._refusals = Counter("pegboard_refusals", "Requests refused.", ["reason"], **common)
        self._upstreams = Gauge(
            "pegboard_upstream_state", "State of an MCP server: 1.", ["agent", "state"], **common
        )

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        """Record a search, which took `ms` milliseconds. `session` is "" outside a session."""
        result = found.result
        outcome = "empty" if not result else "nothing_fits" if result.nothing_fits else "found"
        self._finds.labels(client.name, outcome).inc()
        self._find_seconds.observe(ms / 1_000)
        values: dict[str, Any] = {
            "release": result.release,
            "strategy": result.trace.strategy,
            "probability": result.probability,
            "nothing_fits": result.nothing_fits,
        }
        attributes = {f"pegboard.{name}": value for name, value in values.items()}
        attributes["pegboard.client"] = client.name
        attributes["pegboard.tools"] = [hit.tool.id for hit in result]
        end = time.time_ns()
        given = {name: value for name, value in attributes.items() if value is not None}
        span = self._tracer.start_span(
            "pegboard.find", attributes=given, start_time=end - int(ms * 1e6)
        )
        span.end(end)
        hits = [{"tool": hit.tool.id, "score": round(hit.score, 5)} for hit in result]
        query = redact(query[:MAX_QUERY])
        self._write("find", client.name, session, query=query, **values, hits=hits, ms=round(ms, 1))

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """Record a call of a tool; FastMCP's span of its request is told the tool and outcome.

        Args:
            tool: its id, "" for a name that means none.
            ms: milliseconds that it took.
            size: bytes of the answer.
        """
        catalog = tool.partition("/")[0]
        self._calls.labels(client.name, catalog, outcome).inc()
        self._call_seconds.labels(catalog).observe(ms / 1_000)
        values: dict[str, Any] = {"tool": tool, "outcome": outcome, "bytes": size}
        trace.get_current_span().set_attributes(
            {f"pegboard.{name}": value for name, value in {**values, "client": client.name}.items()}
        )
        values["credentials"] = client.credentials
        self._write("call", client.name, session, **values, ms=round(ms, 1))

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        """Record definitions of tools that a client was sent, by a list or by a search.

        Args:
            tools: how many.
            sent: their tokens, about.
            whole: those of all tools that the client may see.
        """
        self._tokens_sent.labels(client.name).inc(sent)
        self._tokens_saved.labels(client.name).inc(max(0.0, whole - sent))
        tokens = {"tokens": round(sent), "tokens_of_all": round(whole)}
        self._write("list", client.name, session, tools=tools, **tokens)

    def refused(self, reason: str, detail: str, client: str = "", session: str = "") -> None:
        """Record a request that was refused.

        Args:
            reason: one of few words, such as `credentials`, `origin`, `unknown_tool`.
            detail: who asked for what, without the credentials; secrets are taken out of it.
            client: its name, "" for one that is not known.
        """
        self._refusals.labels(reason).inc()
        self._write("refused", client, session, reason=reason, detail=redact_line(detail, 300))

    def metrics(self, upstreams: Mapping[str, Mapping[str, str]]) -> bytes:
        """Return all values as Prometheus reads them; `upstreams` as in `Upstreams.health`."""
        self._upstreams.clear()
        for agent, health in upstreams.items():
            self._upstreams.labels(agent, health["state"]).set(1)
        return generate_latest(self._registry)

    def close(self) -> None:
        """Close the request log."""
        if self._log is not None:
            self._log.close()

    def _write(self, event: str, client: str, session: str, **values: Any) -> None:
        if self._log is not None:
            self._log.write(event, client, session, **values)
