"""The processes of these tests: publishers, which a test may hold and kill, and readers.

They are forked from a process that has imported the libraries."""

import json
import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pegboard
from pegboard.store.releases import ReleaseStore
from pegboard.store.verify import verify_release
from pegboard.store.writing import open_table
from tests.faults import reader, world
from tests.faults.publisher import PAUSE, gate, publish

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.faults.publisher", "tests.faults.reader"])


def start(target: Callable[..., None], *args: Any) -> BaseProcess:
    """Start a process; at the latest it ends with this one."""
    process = PROCESSES.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def wait_until(condition: Callable[[], Any], *processes: BaseProcess) -> None:
    """Wait for a condition as long as all of the processes run; pytest-timeout is the guard."""
    while not condition():
        ended = [process.exitcode for process in processes if not process.is_alive()]
        assert not ended or condition(), f"ended too early: {ended}"
        time.sleep(PAUSE)


class JsonLines:
    """A file to which other processes append JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
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
    """Publishes states of the world to the board `FOLDER/board`, each in a process of its own.

    Args:
        keep: further lines of the table [board].
    """

    def __init__(self, folder: Path, keep: str = "") -> None:
        self.folder = folder
        self.keep = keep
        self.uri = str(folder / "board")
        self._events = JsonLines(folder / "events.jsonl")

    @property
    def store(self) -> ReleaseStore:
        return ReleaseStore(self.uri)

    def start(self, n: int, holds: Sequence[str] = ()) -> BaseProcess:
        """Start a process that publishes the n-th state and waits at some events."""
        return start(publish, self.folder, n, self.keep, holds)

    def wait_for(self, run: BaseProcess, event: str) -> None:
        """Wait until a process has come to an event."""
        wait_until(lambda: self.has(run, event), run)

    def has(self, run: BaseProcess, event: str) -> bool:
        return any(seen["what"] == event for seen in self.events(run))

    def release(self, run: BaseProcess, event: str) -> None:
        """Let a process go on that waits at an event."""
        assert run.pid
        gate(self.folder, run.pid, event).touch()

    def kill(self, run: BaseProcess) -> None:
        """Kill a process that waits at an event or comes to one where it would."""
        run.kill()
        run.join()
        assert run.exitcode == -signal.SIGKILL, self.events(run)[-1]

    def ended(self, run: BaseProcess) -> dict[str, Any]:
        """Wait for the end of a process; returns its last event: `end run`, or `error`."""
        run.join()
        return self.events(run)[-1]

    def publish(self, n: int) -> dict[str, Any]:
        """Publish the n-th state, undisturbed; returns the last event."""
        end = self.ended(self.start(n))
        assert end["what"] == "end run", end
        return end

    def events(self, run: BaseProcess | None = None) -> list[dict[str, Any]]:
        """What the runs did so far, in order; only of one if given."""
        return [event for event in self._events.read() if run is None or event["pid"] == run.pid]

    def states(self) -> dict[str, int]:
        """Which state of the world a release shows, by the release's id."""
        return {
            event["release"]: event["n"]
            for event in self.events()
            if event["what"] == "end make_release_spec"
        }

    def check(self, allowed: set[int]) -> int:
        """Check that the live release verifies, and that every table and mode shows one of the
        allowed states; returns which.
        """
        store = self.store
        channel = self.store.channel()
        assert channel
        release = store.get(channel.release)
        report = verify_release(store, release)
        assert not report.problems, report.problems
        n = self.states()[release.id]
        assert n in allowed
        content = world.content(n)

        def rows(name: str, *columns: str) -> list[dict[str, str]]:
            pin = release.tables[name]
            table = open_table(store.database, pin.table, store.uri, pin.version)
            return table.search().select(list(columns)).limit(1_000).to_list()

        assert {row["id"]: row["description"] for row in rows("tools", "id", "description")} == (
            content
        )
        for name in ("emb_full", "emb_fine"):
            assert {row["tool"] for row in rows(name, "tool", "text")} == set(content)
        board = pegboard.open(self.uri)
        for tool in range(0, world.TOOLS, 5):
            for mode in ("hybrid", "vector", "text"):
                hits = board.search(f"handle {world.WORDS[tool]}", 5, mode=mode)
                world.check_hits(tool, n, [hit.tool.id for hit in hits])
        return n


class Reader:
    """A process that searches a board all the time; see `reader.read` for the options."""

    def __init__(self, folder: Path, uri: str, stop: Path, **options: Any) -> None:
        self.options = options
        path = folder / f"answers-{options['seed']}.jsonl"
        self._answers = JsonLines(path)
        self.process = start(reader.read, uri, path, stop, options)

    def has_answered_from(self, generation: int) -> bool:
        """Whether an answer began when the reader knew of that generation of the channel."""
        answers = self._answers.read()
        return bool(answers) and answers[-1]["before"] >= generation

    def finish(self) -> list[dict[str, Any]]:
        """Wait for its end, and return all answers in the order in which they were noted."""
        self.process.join()
        assert self.process.exitcode == 0
        return self._answers.read()
