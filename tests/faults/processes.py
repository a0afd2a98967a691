"""The processes of these tests as a test sees them: publishers, which it may hold and kill, and
readers."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, Self

from pegboard.store.releases import ReleaseStore
from tests.children import end_child, start_child
from tests.faults.events import gate

HERE = Path(__file__).parent
PAUSE = 0.002


def wait_until(condition: Callable[[], Any], *processes: subprocess.Popen[Any]) -> None:
    """Wait for a condition as long as all of the processes run; pytest-timeout is the guard."""
    while not condition():
        ended = [process.args for process in processes if process.poll() is not None]
        assert not ended or condition(), f"ended too early: {ended}"
        time.sleep(PAUSE)


class JsonLines:
    """A file to which other processes append JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self._lines: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        """All whole lines so far."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._offset)
                fresh = file.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._offset += len(whole)
            self._lines += [json.loads(line) for line in whole.splitlines()]
        return self._lines


class Publisher:
    """The process that publishes to the board `FOLDER/board`. `start` forks a child of it for every
    run.

    Args:
        keep: further lines of the table [board].
    """

    def __init__(self, folder: Path, keep: str = "") -> None:
        self.folder, self.keep = folder, keep
        self.uri = str(folder / "board")
        self._log = folder / "publisher.err"
        self._errors = self._log.open("a")
        self._process = start_child(
            [sys.executable, str(HERE / "publisher.py"), str(folder), keep],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._pids: list[int] = []
        self._ends: dict[int, tuple[int, str]] = {}
        self._events = JsonLines(folder / "events.jsonl")
        assert self._process.stdout.readline(), self._log.read_text()
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def store(self) -> ReleaseStore:
        return ReleaseStore(self.uri)

    def start(self, n: int, holds: Sequence[str] = ()) -> int:
        """Fork a child that publishes the n-th state and waits at some events; returns its id."""
        started = len(self._pids)
        self._process.stdin.write(json.dumps({"n": n, "holds": list(holds)}) + "\n")
        self._process.stdin.flush()
        wait_until(lambda: len(self._pids) > started, self._process)
        return self._pids[-1]

    def wait_for(self, pid: int, event: str) -> None:
        """Wait until a process has come to an event."""
        wait_until(lambda: self.has(pid, event) or pid in self._ends, self._process)
        assert self.has(pid, event), self._ends[pid]

    def has(self, pid: int, event: str) -> bool:
        return any(seen["what"] == event for seen in self.events(pid))

    def release(self, pid: int, event: str) -> None:
        """Let a child go on that waits at an event."""
        gate(self.folder, pid, event).touch()

    def ended(self, pid: int) -> tuple[int, str]:
        """The exit status of a child when it has ended, negative for a signal, and its error."""
        wait_until(lambda: pid in self._ends, self._process)
        return self._ends[pid]

    def kill(self, pid: int) -> None:
        """Kill a child that waits at an event or comes to one where it would."""
        os.kill(pid, signal.SIGKILL)
        status, error = self.ended(pid)
        assert status == -signal.SIGKILL, error

    def publish(self, n: int) -> dict[str, Any]:
        """Publish the n-th state, undisturbed; returns what the run says at its end."""
        pid = self.start(n)
        status, error = self.ended(pid)
        assert status == 0, error
        return self.events(pid)[-1]

    def events(self, pid: int | None = None) -> list[dict[str, Any]]:
        """What the runs did so far, in order; only of one if given."""
        return [event for event in self._events.read() if pid in (None, event["pid"])]

    def states(self) -> dict[str, int]:
        """Which state of the world a release shows, by the release's id."""
        return {
            event["release"]: event["n"]
            for event in self.events()
            if event["what"] == "end make_release_spec"
        }

    def close(self) -> None:
        end_child(self._process)
        self._listener.join()
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def _listen(self) -> None:
        for line in self._process.stdout:
            message = json.loads(line)
            if "status" in message:
                self._ends[message["pid"]] = message["status"], message["error"]
            else:
                self._pids.append(message["pid"])


class Reader:
    """A process that searches a board all the time; see reader.py for the options."""

    def __init__(self, folder: Path, uri: str, stop: Path, **options: Any) -> None:
        self.options = options
        path = folder / f"answers-{options['seed']}.jsonl"
        self._answers = JsonLines(path)
        self._output = (folder / f"reader-{options['seed']}.err").open("w+")
        arguments = [uri, str(path), str(stop), json.dumps(options)]
        command = [sys.executable, str(HERE / "reader.py"), *arguments]
        self.process = start_child(command, stderr=self._output, stdout=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_child(self.process)
        self._output.close()

    def answers(self) -> list[dict[str, Any]]:
        """All answers so far, in the order in which they were noted."""
        return self._answers.read()

    def has_answered_from(self, generation: int) -> bool:
        """Whether an answer began when the reader knew of that generation of the channel."""
        answers = self.answers()
        return bool(answers) and answers[-1]["before"] >= generation

    def finish(self) -> list[dict[str, Any]]:
        """Wait for its end, and return all answers."""
        status = self.process.wait()
        self._output.seek(0)
        assert status == 0, self._output.read()
        return self.answers()
