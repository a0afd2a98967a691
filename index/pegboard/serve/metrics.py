"""Counts and times of requests for Prometheus, in a registry of their own (`/metrics`).

Labels have few values: clients, which the operator names, catalogs, and outcomes. Requests, tools
and sessions are in the request log.
"""

from typing import Any

from pegboard.serve.access import Client
from pegboard.serve.observer import Found, Outcome

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
SIZES = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts what the gateway finds and calls."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        common: Any = {"registry": self._registry}
        self._finds = Counter(
            "pegboard_finds", "Requests for tools.", ["client", "outcome"], **common
        )
        self._find_seconds = Histogram(
            "pegboard_find_seconds", "Seconds of a request for tools.", buckets=SECONDS, **common
        )
        self._hits = Counter("pegboard_hits", "Tools found, by catalog.", ["catalog"], **common)
        self._calls = Counter(
            "pegboard_calls", "Calls of tools.", ["client", "catalog", "outcome"], **common
        )
        self._call_seconds = Histogram(
            "pegboard_call_seconds", "Seconds of a call.", ["catalog"], buckets=SECONDS, **common
        )
        self._call_bytes = Histogram(
            "pegboard_call_bytes", "Bytes of a call's answer.", ["catalog"], buckets=SIZES, **common
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
        self._release = Gauge(
            "pegboard_release_info", "The release that answered last: 1.", ["release"], **common
        )

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        """Count a request for tools."""
        result = found.result
        outcome = "empty" if not result else "nothing_fits" if result.nothing_fits else "found"
        self._finds.labels(client.name, outcome).inc()
        self._find_seconds.observe(ms / 1_000)
        for hit in result:
            self._hits.labels(hit.tool.catalog).inc()
        self._release.clear()
        self._release.labels(result.release).set(1)

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """Count a call of a tool."""
        catalog = tool.partition("/")[0]
        self._calls.labels(client.name, catalog, outcome).inc()
        self._call_seconds.labels(catalog).observe(ms / 1_000)
        self._call_bytes.labels(catalog).observe(size)

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        """Count the tokens of definitions that were sent, and those that were saved."""
        self._tokens_sent.labels(client.name).inc(sent)
        self._tokens_saved.labels(client.name).inc(max(0.0, whole - sent))

    def text(self) -> bytes:
        """Return all values as Prometheus reads them."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)


def open_metrics() -> Metrics | None:
    """Return the metrics; None where prometheus-client is not installed."""
    try:
        return Metrics()
    except ImportError:
        return None
