"""Publishes a state of the world: the target of a process that a test may kill.

Its events are lines of `FOLDER/events.jsonl`. At some of them it waits until the test opens a gate.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

import lance  # noqa: E402, F401
import lancedb  # noqa: E402, F401
import polars  # noqa: E402, F401

from flows.reindex import reindex  # noqa: E402
from flows.runner import DirectRunner  # noqa: E402
from tasks.settings.configuration import load_configuration  # noqa: E402
from tests.children import follow_parent  # noqa: E402
from tests.faults import world  # noqa: E402
from tests.step_events import StepEvents  # noqa: E402

PAUSE = 0.002
# What of the result of a step an event holds.
DETAILS: dict[str, Callable[[Sequence[Any]], dict[str, Any]]] = {
    "end make_plan": lambda results: {"live": results[0].live},
    "end make_release_spec": lambda results: {"release": results[0].release},
    "end embed_shard": lambda results: {"encoded": sum(result.texts for result in results)},
}


def gate(folder: Path, pid: int, event: str) -> Path:
    """The file that lets a process go on which waits at an event."""
    return folder / f"gate-{pid}-{event.replace(' ', '-')}"


def publish(folder: Path, n: int, keep: str, holds: Collection[str]) -> None:
    """Publish the n-th state to the board `FOLDER/board`.

    Args:
        keep: further lines of the table [board].
        holds: the events at which it waits until the file `gate(folder, pid, event)` is there.
    """
    follow_parent()
    pid = os.getpid()

    def note(event: str, **details: Any) -> None:
        line = {"n": n, "what": event, "at": time.monotonic(), "pid": pid, **details}
        with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def step(event: str, results: Sequence[Any]) -> None:
        note(event, **(DETAILS[event](results) if event in DETAILS else {}))
        while event in holds and not gate(folder, pid, event).exists():
            time.sleep(PAUSE)

    try:
        configuration = load_configuration(world.write(folder, n, keep))
        outcome = reindex(configuration, runner=StepEvents(DirectRunner(), step))
    except Exception as error:
        note("error", text=f"{type(error).__name__}: {error}")
        sys.exit(getattr(error, "exit_code", 1))
    note("end run", **{key: outcome[key] for key in ("outcome", "release", "encoded")})
