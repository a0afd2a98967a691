"""What the gateway records of each request: counts and times for Prometheus (`/metrics`),
attributes of the OpenTelemetry span that FastMCP or the process has begun, and a line of the
request log, without argument values and secrets:

    {"time": "2026-11-23T15:04:05.678Z", "event": "find", "client": "support", "session": "9f2c...",
     "query": "what are 30 dollars in yen?", "release": "83b384d1c0aa", "probability": 0.97,
     "nothing_fits": false, "hits": [{"tool": "finance/money/convert", "score": 4.1}], "ms": 12.5}
    {"time": ..., "event": "call", "client": "support", "session": "9f2c...",
     "tool": "finance/money/convert", "outcome": "ok", "bytes": 512, "credentials": true,
     "ms": 230.1}
    {"time": ..., "event": "refused", "client": "", "session": "",
     "reason": "unknown_client", "detail": "POST /mcp: The credentials are not known here."}

`pegboard examples` reads the log. A session is logged as a digest, since a reader of the log could
enter the session with its id. Labels have few values: clients, which the operator names, catalogs,
and outcomes.
"""

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pegboard.errors import ConfigurationError
from pegboard.retrieval.found import FindResult
from pegboard.serve.access.clients import Client
from pegboard.serve.errors import Outcome
from pegboard.text.redaction import redact, redact_line

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
"""Upper bounds of the buckets of histograms, in seconds."""
MAX_QUERY = 2_000
"""Characters of a query that are logged; the rest is cut off."""
MAX_BYTES = 50_000_000
"""Bytes of the request log at which it is rotated."""
ROTATED_FILES = 5
"""Number of rotated request logs that are kept: `LOG.1` is the newest."""


class Metrics:
    """Records each search, call, list and refusal, in the event loop.

    Args:
        log: the file of the request log; None for no log.

    Raises:
        ConfigurationError: the file cannot be opened for appending.
    """

    def __init__(self, log: Path | None = None) -> None:
        self._log = None if log is None else _open_log(log)
        self._registry = registry = CollectorRegistry()
        histogram = partial(Histogram, buckets=SECONDS, registry=registry)
        counter = partial(Counter, registry=registry)
        self._finds = histogram(
            "pegboard_find_seconds", "Seconds of a request for tools.", ["client", "outcome"]
        )
        self._calls = histogram(
            "pegboard_call_seconds", "Seconds of a call.", ["client", "catalog", "outcome"]
        )
        self._tokens_sent = counter(
            "pegboard_tokens_sent", "Tokens of definitions sent, about.", ["client"]
        )
        self._tokens_saved = counter(
            "pegboard_tokens_saved",
            "Tokens that the definitions of all tools would have taken more, about.",
            ["client"],
        )
        self._refusals = counter("pegboard_refusals", "Requests refused.", ["reason"])
        self._upstreams = Gauge(
            "pegboard_upstream_state",
            "State of an MCP server: 1.",
            ["agent", "state"],
            registry=registry,
        )

    def record_search(
        self, client: Client, session: str, query: str, result: FindResult, ms: float
    ) -> None:
        """Record a search that took `ms` milliseconds. `session` is "" outside a session."""
        outcome = "empty" if not result else "nothing_fits" if result.nothing_fits else "found"
        self._finds.labels(client.name, outcome).observe(ms / 1_000)
        values: dict[str, Any] = {
            "release": result.release,
            "strategy": result.trace.strategy,
            "probability": result.probability,
            "nothing_fits": result.nothing_fits,
        }
        tools = [hit.tool.id for hit in result]
        _set_attributes(client, {**values, "tools": tools})
        hits = [{"tool": hit.tool.id, "score": round(hit.score, 5)} for hit in result]
        query = redact(query[:MAX_QUERY])
        self._write("find", client.name, session, query=query, **values, hits=hits, ms=round(ms, 1))

    def record_call(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """Record a call of a tool.

        Args:
            tool: its id; "" if the client may see no tool with the name.
            ms: milliseconds that the call took.
            size: bytes of the answer.
        """
        catalog = tool.partition("/")[0]
        self._calls.labels(client.name, catalog, outcome).observe(ms / 1_000)
        values: dict[str, Any] = {"tool": tool, "outcome": outcome, "bytes": size}
        _set_attributes(client, values)
        values["credentials"] = client.has_credentials
        self._write("call", client.name, session, **values, ms=round(ms, 1))

    def record_list(
        self, client: Client, session: str, tools: int, sent: float, tokens_of_all: float
    ) -> None:
        """Record the definitions of tools that a client was sent, by a list or by a search.

        Args:
            tools: the number of definitions.
            sent: their estimated tokens.
            tokens_of_all: the estimated tokens of all tools that the client may see.
        """
        self._tokens_sent.labels(client.name).inc(sent)
        self._tokens_saved.labels(client.name).inc(max(0.0, tokens_of_all - sent))
        tokens = {"tokens": round(sent), "tokens_of_all": round(tokens_of_all)}
        self._write("list", client.name, session, tools=tools, **tokens)

    def record_refusal(self, reason: str, detail: str, client: str = "", session: str = "") -> None:
        """Record a request that was refused.

        Args:
            reason: the code of the error, such as `unknown_client`, `unknown_tool`.
            detail: the request without its credentials; secrets are redacted.
            client: its name; "" for an unknown client.
        """
        self._refusals.labels(reason).inc()
        self._write("refused", client, session, reason=reason, detail=redact_line(detail, 300))

    def as_text(self, upstreams: Mapping[str, Mapping[str, str]]) -> bytes:
        """Return all metrics in the format of Prometheus.

        Args:
            upstreams: the states of MCP servers by agent, from `Caller.health`.
        """
        self._upstreams.clear()
        for agent, health in upstreams.items():
            self._upstreams.labels(agent, health["state"]).set(1)
        return generate_latest(self._registry)

    def close(self) -> None:
        """Close the request log. Lines that did not fit on a full disk are lost."""
        if self._log is not None:
            with suppress(OSError):
                self._log.close()

    def _write(self, event: str, client: str, session: str, **values: Any) -> None:
        if self._log is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        digest = sha256(session.encode("utf-8", "replace")).hexdigest()[:16] if session else ""
        line = {"time": now, "event": event, "client": client, "session": digest, **values}
        text = json.dumps(line, ensure_ascii=False)
        self._log.handle(logging.makeLogRecord({"msg": text}))


class _LogFile(RotatingFileHandler):
    """A rotated file that only its owner can read."""

    def _open(self) -> Any:
        def open_private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(
            self.baseFilename, self.mode, encoding="utf-8", errors="replace", opener=open_private
        )


def _open_log(path: Path) -> logging.Handler:
    try:
        return _LogFile(path, "a", MAX_BYTES, ROTATED_FILES)
    except OSError as error:
        raise ConfigurationError(
            f"The request log {path} cannot be written: {error.strerror}. Name a file in a folder "
            f"that exists under [serve] log, or leave it out for no log."
        ) from error


def _set_attributes(client: Client, values: Mapping[str, Any]) -> None:
    """Set attributes of the current span, which has no effect if spans are not collected."""
    attributes = {f"pegboard.{name}": value for name, value in values.items() if value is not None}
    attributes["pegboard.client"] = client.name
    trace.get_current_span().set_attributes(attributes)
