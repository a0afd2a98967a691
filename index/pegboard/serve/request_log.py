"""The request log: one JSON line for each request, without argument values and secrets.

    {"time": "2026-11-23T15:04:05.678Z", "event": "find", "client": "support", "session": "9f2c...",
     "query": "what are 30 dollars in yen?", "release": "83b384d1c0aa", "probability": 0.97,
     "nothing_fits": false, "hits": [{"tool": "finance/money/convert", "score": 4.1}], "ms": 12.5}
    {"time": ..., "event": "call", "client": "support", "session": "9f2c...",
     "tool": "finance/money/convert", "outcome": "ok", "ms": 230.1, "bytes": 512}
    {"time": ..., "event": "refused", "client": "", "session": "",
     "reason": "credentials", "detail": "203.0.113.9 POST /mcp"}

`pegboard examples` reads it. A session is written as a digest: the id itself would let a reader of
the log into the session.
"""

import json
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from queue import Queue
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.redaction import redact, redact_line
from pegboard.serve.access import Client
from pegboard.serve.observer import Found, Observer, Outcome

MAX_BYTES = 50_000_000
"""Bytes of the file at which it is rotated."""
ROTATED_FILES = 5
"""Rotated files that stay: `LOG.1` is the newest."""
MAX_QUEUED = 100_000
"""Lines that wait for the disk; further ones are dropped and counted."""
MAX_QUERY = 2_000
"""Characters of a request that are logged."""

logger = logging.getLogger("pegboard.serve")


class RequestLog(Observer):
    """Writes one line for each request, in a thread of its own, so that no request waits for the
    disk. `close` returns when every line is written.

    Raises:
        ConfigurationError: the file cannot be opened for appending.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, rotated_files: int = ROTATED_FILES
    ) -> None:
        try:
            self._file = _PrivateFile(
                path, "a", max_bytes, rotated_files, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise ConfigurationError(
                f"The request log {path} cannot be written: {error.strerror}. Name a file in "
                "a folder that exists under [serve] log, or leave it out for no log."
            ) from error
        waiting = Queue[logging.LogRecord | None](MAX_QUEUED)
        self._queue = _BoundedQueue(waiting)
        self._listener = _Writer(waiting, self._file)
        self._listener.start()
        self._closed = False

    @property
    def dropped(self) -> int:
        """Lines that could not be written."""
        return self._queue.dropped + self._file.dropped

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        """Log a request for tools."""
        result = found.result
        self._add(
            "find",
            client.name,
            session,
            query=redact(query[:MAX_QUERY]),
            release=result.release,
            strategy=result.trace.strategy,
            probability=result.probability,
            nothing_fits=result.nothing_fits,
            hits=[{"tool": hit.tool.id, "score": round(hit.score, 5)} for hit in result],
            ms=round(ms, 1),
        )

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """Log a call of a tool: how it ended, and the bytes of the answer."""
        values: dict[str, Any] = {"tool": tool, "outcome": outcome, "bytes": size}
        self._add("call", client.name, session, **values, ms=round(ms, 1))

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        """Log a list of definitions, with the tokens that were sent and those of all tools."""
        tokens = {"tokens": round(sent), "tokens_of_all": round(whole)}
        self._add("list", client.name, session, tools=tools, **tokens)

    def refused(self, reason: str, detail: str, client: str = "", session: str = "") -> None:
        """Log a request that was refused."""
        self._add("refused", client, session, reason=reason, detail=redact_line(detail, 300))

    def close(self) -> None:
        """Write what waits, and close the file. Further lines are dropped."""
        if not self._closed:
            self._closed = True
            self._listener.stop()
            with suppress(OSError):
                self._file.close()

    def _add(self, event: str, client: str, session: str, **values: Any) -> None:
        if self._closed:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": now, "event": event, "client": client, "session": _digest(session)}
        text = json.dumps({**line, **values}, ensure_ascii=False)
        self._queue.handle(logging.makeLogRecord({"msg": text}))


class _BoundedQueue(QueueHandler):
    """Hands lines over to the thread that writes, as long as few wait."""

    dropped = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        self.dropped += 1


class _Writer(QueueListener):
    """Writes the lines that wait, all of them before it stops."""

    def __init__(self, lines: Queue[logging.LogRecord | None], file: logging.Handler) -> None:
        super().__init__(lines, file)
        self._lines = lines

    def enqueue_sentinel(self) -> None:
        self._lines.put(None)


class _PrivateFile(RotatingFileHandler):
    """A rotated file that its owner alone reads."""

    dropped = 0

    def _open(self) -> Any:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(
            self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=private
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if not self.dropped:
            logger.warning(
                "The request log %s cannot be written.", self.baseFilename, exc_info=True
            )
        self.dropped += 1


def _digest(session: str) -> str:
    """Return a session's id as the log has it; the empty text for none."""
    return sha256(session.encode("utf-8", "replace")).hexdigest()[:16] if session else ""
