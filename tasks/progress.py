"""Progress of a run for the person who started it: one live display on a terminal, plain lines
elsewhere.

Everything goes to stderr, so that stdout stays the result. Tasks run as threads of the run's
process and all speak to the one display that `showing` opened; without one (a worker, a test) they
are silent, and the Prefect log tells the story."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from pegboard.cli.output import plain, raw_stream

if TYPE_CHECKING:
    from rich.progress import TaskID

_PLAIN_INTERVAL = 2.0
"""Seconds between two plain lines about the same step, so that a log stays readable."""


class _Display:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        terminal = raw_stream(sys.stderr)  # the display draws; its texts are escaped below
        self.console = Console(file=terminal, highlight=False, soft_wrap=True)
        self.live = terminal.isatty()
        self.bars = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<10}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.live,
        )
        self.steps: dict[str, TaskID] = {}
        self.totals: dict[str, int] = {}
        self.done: dict[str, int] = {}
        self.last: dict[str, float] = {}
        self.lock = Lock()


_display: _Display | None = None


@contextmanager
def showing(enabled: bool = True) -> Generator[None]:
    """Show the progress of what runs inside, unless told not to."""
    global _display
    if not enabled:
        yield
        return
    _display = _Display()
    try:
        with _display.bars:
            yield
    finally:
        _display = None


def start(step: str, total: int) -> None:
    """Announce a step of `total` pieces."""
    display = _display
    if display is None:
        return
    with display.lock:
        display.totals[step], display.done[step] = total, 0
        display.steps[step] = display.bars.add_task(plain(step), total=total, note="")
        if not display.live:
            display.console.print(f"{plain(step)}: {total} to do", markup=False)


def advance(step: str, pieces: int = 1, text: str | None = None) -> None:
    """Say that so many more pieces of a step are done."""
    display = _display
    if display is None or step not in display.steps:
        return
    with display.lock:
        display.done[step] += pieces
        display.bars.advance(display.steps[step], pieces)
        if text is not None:
            display.bars.update(display.steps[step], note=plain(text))
        done, total, now = display.done[step], display.totals[step], time.monotonic()
        due = done >= total or now - display.last.get(step, 0) >= _PLAIN_INTERVAL
        if not display.live and due:
            display.last[step] = now
            line = f"{step}: {done} of {total}{f', {text}' if text else ''}"
            display.console.print(plain(line), markup=False)
