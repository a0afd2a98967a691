"""OpenTelemetry spans: `pegboard.find`, with what was found and why. FastMCP records those of MCP
requests and of calls to upstream servers; they are told which tool was called, and how it ended.

Spans go to the tracer provider of the process, which the operator sets up as for any service
(`opentelemetry-instrument pegboard serve`); without one they cost nothing and go nowhere.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from opentelemetry import trace

from pegboard.redaction import redact
from pegboard.serve.access import Client
from pegboard.serve.observer import Found, Observer, Outcome

MAX_HITS = 10
"""Hits that a span has."""


class Tracing(Observer):
    """Records a span for each request for tools.

    Args:
        texts: whether spans hold the words of requests, redacted; else only their length.
        tracer: that of the process by default.
    """

    def __init__(self, *, texts: bool = False, tracer: trace.Tracer | None = None) -> None:
        self._tracer, self._texts = tracer or trace.get_tracer("pegboard.serve"), texts

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
        end = time.time_ns()
        start = end - int(ms * 1e6)
        span = self._tracer.start_span("pegboard.find", attributes=attributes, start_time=start)
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
        """Add a call's tool and outcome to the span of its request."""
        values = {"client": client.name, "tool": tool, "outcome": outcome, "bytes": size}
        trace.get_current_span().set_attributes(
            {f"pegboard.{name}": value for name, value in values.items()}
        )


def _part_values(part: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a part, and how many candidates it ranked."""
    values = {name: value for name, value in part.items() if isinstance(value, int | float)}
    return {**values, "candidates": len(part.get("ranks", ()))}


def _without_texts(why: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        scorer: {name: value for name, value in values.items() if name not in ("query", "reason")}
        for scorer, values in why.items()
    }
