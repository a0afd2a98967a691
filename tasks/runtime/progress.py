"""Progress of a run, as lines on stderr.

Steps run in threads of the run's process and share the output that `showing` opened. Elsewhere, as
in a worker or a test, progress goes to the log, which Prefect shows."""

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
    """A step that is running.

    Attributes:
        total, done: number of parts of the step, and of those that are done.
        started_at, shown_at: monotonic seconds at which it started, and was last shown.
    """

    total: int
    done: int
    started_at: float
    shown_at: float

    def text(self) -> str:
        return progress_text(self.done, self.total, time.monotonic() - self.started_at)


class _Lines:
    """Writes the progress of steps as lines.

    Args:
        write: writes a line.
        interval: smallest number of seconds between two lines about the same step.
    """

    def __init__(self, write: Callable[[str], None], interval: float) -> None:
        self._write = write
        self._interval = interval
        self._steps: dict[str, _Step] = {}
        self._lock = Lock()

    def start(self, name: str, total: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._steps[name] = _Step(total, 0, now, now)
            self._write(f"{name}: {total} to do")

    def advance(self, name: str, count: int, note: str) -> None:
        with self._lock:
            if (step := self._steps.get(name)) is not None:
                step.done += count
                self._show(name, step, plain(note))

    def note(self, line: str) -> None:
        self._write(line)

    def _show(self, name: str, step: _Step, note: str) -> None:
        now = time.monotonic()
        if step.done >= step.total or now - step.shown_at >= self._interval:
            step.shown_at = now
            suffix = f", {note}" if note else ""
            self._write(f"{name}: {step.text()}{suffix}")


_display = _Lines(logger.info, 30.0)
Observer = Callable[[str, int, int], None]
"""Called with a step, pieces that are added to its total, and pieces that are done."""
_observer: Observer | None = None


@contextmanager
def showing(enabled: bool = True) -> Generator[None]:
    """Show the progress of the steps that run inside on stderr, if enabled."""
    global _display
    previous_display = _display
    try:
        if enabled:
            _display = _Lines(partial(print, file=sys.stderr, flush=True), 2.0)
        yield
    finally:
        _display = previous_display


@contextmanager
def observed(observer: Observer) -> Generator[None]:
    """Report the progress of what runs inside to an observer, too, from threads of steps."""
    global _observer
    previous_observer = _observer
    _observer = observer
    try:
        yield
    finally:
        _observer = previous_observer


def start(step: str, total: int) -> None:
    """Announce a step that has `total` parts."""
    _display.start(step, total)
    if _observer is not None:
        _observer(step, total, 0)


def advance(step: str, count: int = 1, text: str | None = None) -> None:
    """Count parts of a step as done; `text` says which, or at what cost."""
    _display.advance(step, count, text or "")
    if _observer is not None:
        _observer(step, 0, count)


def note(line: str) -> None:
    """Show a line about the run, such as the reason for a delay."""
    _display.note(line)
