"""The request log: one JSON line for each request, without argument values and secrets.

    {"time": "2026-11-23T15:04:05.678Z", "event": "find", "client": "support", "session": "9f2c...",
     "query": "what are 30 dollars in yen?", "release": "83b384d1c0aa", "probability": 0.97,
     "nothing_fits": false, "hits": [{"tool": "finance/money/convert", "score": 4.1}], "ms": 12.5}
    {"time": ..., "event": "call", "client": "support", "session": "9f2c...",
     "tool": "finance/money/convert", "outcome": "ok", "ms": 230.1, "bytes": 512}

`pegboard examples` reads it. A session is written as a digest: the id itself would let a reader of
the log into the session.
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from typing import IO, Any

from pegboard.errors import ConfigurationError
from pegboard.redaction import redact
from pegboard.serve.access import Client
from pegboard.serve.observer import Found, Outcome

MAX_BYTES = 50_000_000
"""Bytes of the file at which it is rotated."""
FILES_KEPT = 5
"""Rotated files that stay: `LOG.1` is the newest."""
MAX_QUEUED = 100_000
"""Lines that wait for the disk; further ones are dropped and counted."""
MAX_QUERY = 2_000
"""Characters of a request that are logged."""
LINES_PER_WRITE = 1_000

logger = logging.getLogger("pegboard.serve")


class RequestLog:
    """Writes one line for each request, in a thread of its own, so that no request waits for the
    disk. `close` returns when every line is written.

    Raises:
        ConfigurationError: the file cannot be opened for appending.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, files_kept: int = FILES_KEPT
    ) -> None:
        self._path, self._max_bytes, self._files_kept = path, max_bytes, files_kept
        self.dropped = 0
        self._queue: Queue[str | None] = Queue(MAX_QUEUED)
        self._file = self._open()
        self._thread = Thread(target=self._write_all, name="pegboard-request-log", daemon=True)
        self._thread.start()

    def found(self, client: Client, session: str, query: str, found: Found, ms: float) -> None:
        """Log a request for tools."""
        result = found.result
        values: dict[str, Any] = {
            "query": redact(query[:MAX_QUERY]),
            "release": result.release,
            "strategy": result.trace.strategy,
            "probability": result.probability,
            "nothing_fits": result.nothing_fits,
            "hits": [{"tool": hit.tool.id, "score": round(hit.score, 5)} for hit in result],
        }
        self._add("find", client, session, values, ms)

    def called(
        self, client: Client, session: str, tool: str, outcome: Outcome, ms: float, size: int
    ) -> None:
        """Log a call of a tool: how it ended, and the bytes of the answer."""
        values = {"tool": tool, "outcome": outcome, "bytes": size}
        self._add("call", client, session, values, ms)

    def listed(self, client: Client, session: str, tools: int, sent: float, whole: float) -> None:
        """Log a list of definitions, with the tokens that were sent and those of all tools."""
        values = {"tools": tools, "tokens": round(sent), "tokens_of_all": round(whole)}
        self._add("list", client, session, values)

    def close(self) -> None:
        """Write what waits, and close the file. Further lines are dropped."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._file.close()

    def _add(
        self,
        event: str,
        client: Client,
        session: str,
        values: Mapping[str, Any],
        ms: float | None = None,
    ) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {
            "time": now,
            "event": event,
            "client": client.name,
            "session": session_digest(session),
            **values,
        }
        if ms is not None:
            line["ms"] = round(ms, 1)
        try:
            self._queue.put_nowait(json.dumps(line, ensure_ascii=False) + "\n")
        except Full:
            self.dropped += 1

    def _write_all(self) -> None:
        while True:
            lines, more = self._next_lines()
            if lines:
                self._write(lines)
            if not more:
                return

    def _next_lines(self) -> tuple[list[str], bool]:
        """Wait for a line, and return it with those that wait behind it, and whether to go on."""
        lines: list[str] = []
        line = self._queue.get()
        while line is not None:
            lines.append(line)
            if len(lines) == LINES_PER_WRITE:
                return lines, True
            try:
                line = self._queue.get_nowait()
            except Empty:
                return lines, True
        return lines, False

    def _write(self, lines: Sequence[str]) -> None:
        data = "".join(lines).encode("utf-8", "replace")
        try:
            if self._file.tell() and self._file.tell() + len(data) > self._max_bytes:
                self._rotate()
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            if not self.dropped:
                logger.warning("The request log %s cannot be written: %s", self._path, error)
            self.dropped += len(lines)

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._files_kept - 1, 0, -1):
            older = rotated(self._path, number)
            if older.exists():
                older.replace(rotated(self._path, number + 1))
        if self._files_kept:
            self._path.replace(rotated(self._path, 1))
        else:
            self._path.unlink()
        self._file = self._open()

    def _open(self) -> IO[bytes]:
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"The request log {self._path} cannot be written: {error.strerror}. Name a file in "
                "a folder that exists under [serve] log, or leave it out for no log."
            ) from error
        file = os.fdopen(descriptor, "ab")
        file.seek(0, os.SEEK_END)
        return file


def rotated(path: Path, number: int) -> Path:
    """Return the path of a rotated file; 1 is the newest."""
    return path.with_name(f"{path.name}.{number}")


def session_digest(session: str) -> str:
    """Return a session's id as the log has it; the empty text for none."""
    return sha256(session.encode("utf-8", "replace")).hexdigest()[:16] if session else ""
