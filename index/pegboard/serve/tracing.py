"""OpenTelemetry spans: `pegboard.find` and `pegboard.call`, with what was found and why.

Spans go to the tracer provider of the process, which the operator sets up as for any service
(`opentelemetry-instrument pegboard serve`); without one they cost nothing and go nowhere.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from pegboard.redaction import redact
from pegboard.serve.access import Client
from pegboard.serve.observer import Found, Outcome

MAX_HITS = 10
"""Hits that a span has."""


class Tracing:
    """Records a span for each request.

    Args:
        texts: whether spans hold the words of requests, redacted; else only their length.
    """

    def __init__(self, tracer: Any, *, texts: bool = False) -> None:
        self._tracer, self._texts = tracer, texts

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        """Record a request for tools: each part as an event, each of the first hits as another."""
        result = found.result
        attributes: dict[str, Any] = {
            "pegboard.client": client.name,
            "pegboard.query.length": len(query),
            "pegboard.release": result.release,
            "pegboard.strategy": result.trace.strategy,
            "pegboard.hits": len(result),
            "pegboard.nothing_fits": result.nothing_fits,
        }
        if result.probability is not None:
            attributes["pegboard.probability"] = result.probability
        if self._texts:
            attributes["pegboard.query"] = redact(query)
        span, end = self._span("pegboard.find", attributes, ms)
        for part in result.trace.parts:
            span.add_event(f"{part.stage} {part.part}", _part_values(part.to_dict()), end)
        for rank, hit in enumerate(result[:MAX_HITS], start=1):
            why = json.dumps(_without_texts(hit.why))
            values = {"rank": rank, "tool": hit.tool.id, "score": hit.score, "why": why}
            span.add_event("hit", values, end)
        span.end(end)

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """Record a call of a tool."""
        attributes = {
            "pegboard.client": client.name,
            "pegboard.tool": tool,
            "pegboard.outcome": outcome,
            "pegboard.bytes": size,
        }
        span, end = self._span("pegboard.call", attributes, ms)
        if outcome != "ok":
            from opentelemetry.trace import Status, StatusCode

            span.set_status(Status(StatusCode.ERROR, outcome))
        span.end(end)

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        """Do nothing: lists are in the metrics and the log."""

    def _span(self, name: str, attributes: Mapping[str, Any], ms: float) -> tuple[Any, int]:
        """Return a span that began so long ago, and the time at which it ends, in nanoseconds."""
        end = time.time_ns()
        start = end - int(ms * 1e6)
        return self._tracer.start_span(name, attributes=attributes, start_time=start), end


def open_tracing(*, texts: bool = False) -> Tracing | None:
    """Return the tracing; None where opentelemetry-api is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return Tracing(trace.get_tracer("pegboard.serve"), texts=texts)


def _part_values(part: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a part, and how many candidates it ranked."""
    values = {name: value for name, value in part.items() if isinstance(value, int | float)}
    return {**values, "candidates": len(part.get("ranks", ()))}


def _without_texts(why: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        scorer: {name: value for name, value in values.items() if name not in ("query", "reason")}
        for scorer, values in why.items()
    }
