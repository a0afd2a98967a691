"""The events of a publishing process, which its test reads from a file, and the gates at which it
waits for the test.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

PAUSE = 0.002
# What of the result of a step an event holds.
DETAILS: dict[str, Callable[[Sequence[Any]], dict[str, Any]]] = {
    "end make_plan": lambda results: {"live": results[0].live},
    "end make_release_spec": lambda results: {"release": results[0].release},
    "end embed_shard": lambda results: {"encoded": sum(result.texts for result in results)},
}


class Events:
    """Appends the events of this process to `FOLDER/events.jsonl`, and stops at some of them until
    a gate is opened.

    Args:
        n: the state of the world that this process publishes.
        holds: the events at which it waits until the file `gate(folder, pid, event)` is there.
    """

    def __init__(self, folder: Path, n: int, holds: Collection[str] = ()) -> None:
        self._folder, self._n, self._holds = folder, n, frozenset(holds)

    def step(self, event: str, results: Sequence[Any]) -> None:
        """Note an event of a step, for `StepEvents`."""
        details = DETAILS.get(event)
        self.note(event, **(details(results) if details else {}))

    def note(self, event: str, **details: Any) -> None:
        pid = os.getpid()
        line = {"n": self._n, "what": event, "at": time.monotonic(), "pid": pid, **details}
        with (self._folder / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if event in self._holds:
            while not gate(self._folder, pid, event).exists():
                time.sleep(PAUSE)


def gate(folder: Path, pid: int, event: str) -> Path:
    """The file that lets a process go on which waits at an event."""
    return folder / f"gate-{pid}-{event.replace(' ', '-')}"
