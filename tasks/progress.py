"""Progress of a run: one live display on a terminal, plain lines elsewhere, all on stderr.

Steps run as threads of the run's process and share the display that `showing` opened. Without one
(a worker, a test) the lines go to the log, which Prefect shows."""

import logging
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from pegboard.cli.output import plain, raw_stream
from pegboard.cli.tables import progress_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Step:
    """A step that is under way; `before` pieces were done when it started."""

    total: int
    before: int
    done: int
    began: float
    shown: float

    def text(self) -> str:
        return progress_text(self.done, self.total, time.monotonic() - self.began, self.before)


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

    def start(self, name: str, total: int, done: int) -> None:
        with self._lock:
            now = time.monotonic()
            step = self._steps[name] = _Step(total, done, done, now, now)
            self._begin(name, step)

    def advance(self, name: str, pieces: int, note: str) -> None:
        with self._lock:
            if (step := self._steps.get(name)) is not None:
                step.done += pieces
                self._show(name, step, plain(note))

    def note(self, line: str) -> None:
        self._write(line)

    def _begin(self, name: str, step: _Step) -> None:
        before = f", {step.before} done before" if step.before else ""
        self._write(f"{name}: {step.total} to do{before}")

    def _show(self, name: str, step: _Step, note: str) -> None:
        now = time.monotonic()
        if step.done >= step.total or now - step.shown >= self._interval:
            step.shown = now
            self._write(f"{name}: {step.text()}{note and f', {note}'}")


class _Bars(_Lines):
    """Draws the steps on a terminal."""

    def __init__(self, bars: "Progress") -> None:
        super().__init__(partial(bars.print, markup=False), 0)
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def _begin(self, name: str, step: _Step) -> None:
        self._tasks[name] = self._bars.add_task(
            name, total=step.total, completed=step.done, text=step.text(), note=""
        )

    def _show(self, name: str, step: _Step, note: str) -> None:
        task = self._tasks[name]
        self._bars.update(task, completed=step.done, text=step.text())
        if note:
            self._bars.update(task, note=note)


_display = _Lines(logger.info, 30.0)


@contextmanager
def showing(enabled: bool = True) -> Generator[None]:
    """Show the progress of what runs inside on stderr, unless told not to."""
    global _display
    before = _display
    try:
        if not enabled:
            yield
        elif not raw_stream(sys.stderr).isatty():
            _display = _Lines(partial(print, file=sys.stderr, flush=True), 2.0)
            yield
        else:
            with _terminal() as bars:
                _display = _Bars(bars)
                yield
    finally:
        _display = before


def start(step: str, total: int, done: int = 0) -> None:
    """Announce a step of `total` pieces, of which some may be done."""
    _display.start(step, total, done)


def advance(step: str, pieces: int = 1, text: str | None = None) -> None:
    """Count pieces of a step as done; `text` says which, or at what cost."""
    _display.advance(step, pieces, text or "")


def note(line: str) -> None:
    """Show a line about the run, such as what it waits for."""
    _display.note(line)


def _terminal() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description:<10}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}", markup=False),
        TextColumn("{task.fields[note]}", style="dim", markup=False),
        TimeElapsedColumn(),
        console=Console(file=raw_stream(sys.stderr), highlight=False, soft_wrap=True),
    )
