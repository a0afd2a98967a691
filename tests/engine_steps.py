"""Steps for tests of engines, which workers import."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.engines import THREAD_VARIABLES
from pegboard.errors import SourceError
from tasks.settings.configuration import IndexSettings
from tasks.settings.encoders import encoder_for


class Strange(Exception):
    """An error that does not survive pickling."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


def add(one: int, two: int) -> int:
    return one + two


def describe(index: IndexSettings | None = None) -> dict[str, Any]:
    """This process, the limits of its threads, and the encoder of an index as an object."""
    return {
        "pid": os.getpid(),
        "limits": {os.environ.get(name) for name in THREAD_VARIABLES},
        "encoder": id(encoder_for(index)) if index else None,
    }


def fail(kind: str) -> None:
    raise {
        "own": SourceError("The source is gone."),
        "unexpected": KeyError("column"),
        "strange": Strange("one", "two"),
    }[kind]


def leave() -> None:
    os._exit(7)


def call_and_leave_once(marker: str, when: str, call: Callable[[], Any]) -> Any:
    """Make a call; the first time, its process ends before or after it."""
    if not Path(marker).exists():
        Path(marker).touch()
        if when == "after":
            call()
        os._exit(7)
    return call()
