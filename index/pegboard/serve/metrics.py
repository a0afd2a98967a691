"""Counts and times of requests: for Prometheus in a registry of their own (`/metrics`), and counts
of the last hour for the page.

Labels have few values: clients, which the operator names, catalogs, and outcomes. Requests, tools
and sessions are in the request log.
"""

import time
from collections import Counter as Counts
from collections import deque
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pegboard.serve.access import Client
from pegboard.serve.observer import Found, Observer, Outcome

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MINUTES = 60
"""Minutes of which the page shows the traffic."""


class Metrics(Observer):
    """Counts what the gateway finds, calls and refuses."""

    def __init__(self) -> None:
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
        self._minutes: deque[tuple[int, Counts[tuple[str, str]]]] = deque(maxlen=MINUTES)

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        """Count a request for tools."""
        result = found.result
        outcome = "empty" if not result else "nothing_fits" if result.nothing_fits else "found"
        self._finds.labels(client.name, outcome).inc()
        self._find_seconds.observe(ms / 1_000)
        self._count("finds", outcome)

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """Count a call of a tool."""
        catalog = tool.partition("/")[0]
        self._calls.labels(client.name, catalog, outcome).inc()
        self._call_seconds.labels(catalog).observe(ms / 1_000)
        self._count("calls", outcome)

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        """Count the tokens of definitions that were sent, and those that were saved."""
        self._tokens_sent.labels(client.name).inc(sent)
        self._tokens_saved.labels(client.name).inc(max(0.0, whole - sent))

    def refused(self, reason: str, detail: str, client: str = "", session: str = "") -> None:
        """Count a refused request."""
        self._refusals.labels(reason).inc()
        self._count("refusals", reason)

    def text(self, upstreams: Mapping[str, Mapping[str, str]]) -> bytes:
        """Return all values as Prometheus reads them; `upstreams` as in `Upstreams.health`."""
        self._upstreams.clear()
        for agent, health in upstreams.items():
            self._upstreams.labels(agent, health["state"]).set(1)
        return generate_latest(self._registry)

    def last_hour(self) -> list[dict[str, dict[str, int]]]:
        """Return the counts of the last 60 minutes, the current one last: numbers of `finds`,
        `calls` and `refusals` by outcome or reason.
        """
        now = int(time.time() // 60)
        counts = {now - minute: counts for minute, counts in self._minutes}
        rows: list[dict[str, dict[str, int]]] = []
        for age in reversed(range(MINUTES)):
            row: dict[str, dict[str, int]] = {"finds": {}, "calls": {}, "refusals": {}}
            for (kind, outcome), count in counts.get(age, {}).items():
                row[kind][outcome] = count
            rows.append(row)
        return rows

    def _count(self, kind: str, outcome: str) -> None:
        now = int(time.time() // 60)
        if not self._minutes or self._minutes[-1][0] != now:
            self._minutes.append((now, Counts()))
        self._minutes[-1][1][kind, outcome] += 1
