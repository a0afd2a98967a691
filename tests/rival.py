"""A publisher that stops between its plan and its first write, so that two of them plan against the
same release.

    python -m tests.rival

Every line on stdin names a configuration and starts a run; it prints `planned`, and writes after
another line. Then it prints its outcome as JSON: how it ended, which is `published` or the name of
an error, and the release or the error's message."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.reindex import reindex
from flows.runner import DirectRunner
from pegboard.errors import PegboardError
from tasks.settings.configuration import load_configuration
from tests.children import end_child, start_child
from tests.step_events import StepEvents

ROOT = Path(__file__).parents[1]


class Rival:
    """The process, as a test sees it; its runs follow one another.

    Args:
        log: the file that takes what it writes to stderr.
    """

    def __init__(self, log: Path) -> None:
        self._log = log.open("w+")
        self._process = start_child(
            [sys.executable, "-m", "tests.rival"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> "Rival":
        return self

    def __exit__(self, *_: object) -> None:
        end_child(self._process)
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()

    def start(self, configuration: Path) -> None:
        """Begin a run."""
        self._send_line(str(configuration))

    def wait_until_planned(self) -> None:
        """Wait until the run has planned and encoded; it writes to the board after `publish`."""
        line = self._line()
        assert line == "planned", line

    def publish(self) -> None:
        """Let the run stage and publish."""
        self._send_line()

    def outcome(self) -> tuple[str, str]:
        """`published` and the release, or the name of an error and its message."""
        how, detail = json.loads(self._line())
        return how, detail

    def _send_line(self, line: str = "") -> None:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        if line := self._process.stdout.readline():
            return line.rstrip("\n")
        self._log.seek(0)
        raise AssertionError(self._log.read())


def _stop_before_writing(event: str, _: Sequence[Any]) -> None:
    if event == "begin stage_tables":
        print("planned", flush=True)
        sys.stdin.readline()


def main() -> None:
    for line in sys.stdin:
        try:
            outcome = reindex(
                load_configuration(line.rstrip("\n")),
                runner=StepEvents(DirectRunner(), _stop_before_writing),
            )
            print(json.dumps([outcome["outcome"], outcome["release"]]), flush=True)
        except PegboardError as error:
            print(json.dumps([type(error).__name__, str(error)]), flush=True)


if __name__ == "__main__":
    main()
