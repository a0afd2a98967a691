"""Progress of a run, as lines on stderr.

Steps run as threads of the run's process and share the lines that `showing` opened. Without them
(a worker, a test) progress goes to the log, which Prefect shows."""

import logging
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock

from pegboard.formatting import plain, progress_text

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Step:
    """A step that is under way."""

    total: int
    done: int
    began: float
    shown: float

    def text(self) -> str:
        return progress_text(self.done, self.total, time.monotonic() - self.began)


class _Lines:
    """Writes the steps as lines.

    Args:
        write: writes a line.
        interval: seconds between two lines about the same step.
    """

    def __init__(self, write: Callable[[str], None], interval: float) -> None:
        self._write, self._interval = write, interval
        self._steps: dict[str, _Step] = {}
        self._lock = Lock()

    def start(self, name: str, total: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._steps[name] = _Step(total, 0, now, now)
            self._write(f"{name}: {total} to do")

    def advance(self, name: str, pieces: int, note: str) -> None:
        with self._lock:
            if (step := self._steps.get(name)) is not None:
                step.done += pieces
                self._show(name, step, plain(note))

    def note(self, line: str) -> None:
        self._write(line)

    def _show(self, name: str, step: _Step, note: str) -> None:
        now = time.monotonic()
        if step.done >= step.total or now - step.shown >= self._interval:
            step.shown = now
            self._write(f"{name}: {step.text()}{note and f', {note}'}")


_display = _Lines(logger.info, 30.0)


@contextmanager
def showing(enabled: bool = True) -> Generator[None]:
    """Show the progress of what runs inside on stderr, unless told not to."""
    global _display
    before = _display
    try:
        if enabled:
            _display = _Lines(partial(print, file=sys.stderr, flush=True), 2.0)
        yield
    finally:
        _display = before


def start(step: str, total: int) -> None:
    """Announce a step of `total` pieces."""
    _display.start(step, total)


def advance(step: str, pieces: int = 1, text: str | None = None) -> None:
    """Count pieces of a step as done; `text` says which, or at what cost."""
    _display.advance(step, pieces, text or "")


def note(line: str) -> None:
    """Show a line about the run, such as what it waits for."""
    _display.note(line)
