"""The request log: one JSON line for each request, without argument values and secrets.

    {"time": "2026-11-23T15:04:05.678Z", "event": "find", "client": "support", "session": "9f2c...",
     "query": "what are 30 dollars in yen?", "release": "83b384d1c0aa", "probability": 0.97,
     "nothing_fits": false, "hits": [{"tool": "finance/money/convert", "score": 4.1}], "ms": 12.5}
    {"time": ..., "event": "call", "client": "support", "session": "9f2c...",
     "tool": "finance/money/convert", "outcome": "ok", "bytes": 512, "credentials": true,
     "ms": 230.1}
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
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError

MAX_BYTES = 50_000_000
"""Bytes of the file at which it is rotated."""
ROTATED_FILES = 5
"""Rotated files that stay: `LOG.1` is the newest."""

logger = logging.getLogger("pegboard.serve")


class RequestLog(RotatingFileHandler):
    """A rotated file that its owner alone reads. A line that cannot be written costs no request:
    the first one is named in the log of the process.

    Raises:
        ConfigurationError: the file cannot be opened for appending.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, rotated_files: int = ROTATED_FILES
    ) -> None:
        self._has_failed = False
        try:
            super().__init__(
                path, "a", max_bytes, rotated_files, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise ConfigurationError(
                f"The request log {path} cannot be written: {error.strerror}. Name a file in "
                "a folder that exists under [serve] log, or leave it out for no log."
            ) from error

    def write(self, event: str, client: str, session: str, **values: Any) -> None:
        """Write a line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": now, "event": event, "client": client, "session": _digest(session)}
        text = json.dumps({**line, **values}, ensure_ascii=False)
        self.handle(logging.makeLogRecord({"msg": text}))

    def close(self) -> None:
        """Close the file; what a full disk did not take is lost."""
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say once that lines cannot be written."""
        if not self._has_failed:
            self._has_failed = True
            logger.warning(
                "The request log %s cannot be written.", self.baseFilename, exc_info=True
            )

    def _open(self) -> Any:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(
            self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=private
        )


def _digest(session: str) -> str:
    """Return a session's id as the log has it; the empty text for none."""
    return sha256(session.encode("utf-8", "replace")).hexdigest()[:16] if session else ""
