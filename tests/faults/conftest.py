"""The publisher as a process, the world that it publishes, and a check that a release is whole."""

import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Queue
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

import pegboard
from pegboard.releases import ReleaseStore
from pegboard.store import open_table
from pegboard.verify import verify_release

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def world() -> SimpleNamespace:
    """The functions of world.py."""
    return SimpleNamespace(**runpy.run_path(str(HERE / "world.py")))


class Publisher:
    """The publisher's process. `start` forks a child; `ended` waits for the end of one."""

    def __init__(self, folder: Path, keep: str) -> None:
        self.folder = folder
        self.uri = str(folder / "board")
        command = [sys.executable, str(HERE / "publisher.py"), str(folder), keep]
        self._errors = (folder / "publisher.err").open("a")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._pids: Queue[int] = Queue()
        self._ends: dict[int, tuple[int, str]] = {}
        self._read = 0
        self._events: list[dict[str, Any]] = []
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), (folder / "publisher.err").read_text()
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def store(self) -> ReleaseStore:
        return ReleaseStore(self.uri)

    def start(self, n: int, gate: Path | None = None) -> int:
        """Fork a child that publishes the n-th state; returns its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"n": n, "gate": str(gate) if gate else None}) + "\n")
        self._process.stdin.flush()
        return self._pids.get(timeout=60)

    def ended(self, child: int, seconds: float = 120) -> tuple[int, str]:
        """The exit status of a child, negative for a signal, and the error that it said."""
        wait_until(lambda: child in self._ends, seconds)
        return self._ends[child]

    def publish(self, n: int) -> None:
        """Publish the n-th state, undisturbed."""
        status, said = self.ended(self.start(n))
        assert status == 0, said

    def events(self, child: int | None = None) -> list[dict[str, Any]]:
        """What the children did so far, in order; only of one if given."""
        path = self.folder / "events.jsonl"
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read)
                fresh = file.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._read += len(whole)
            self._events += [json.loads(line) for line in whole.splitlines()]
        return [event for event in self._events if child in (None, event["pid"])]

    def state_of(self, release: str) -> int:
        """Which state of the world a release shows."""
        return next(event["n"] for event in self.events() if event.get("release") == release)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._listener.join(timeout=10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "ended" in said:
                self._ends[said["pid"]] = said["ended"], said["said"]
            else:
                self._pids.put(said["pid"])


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Any]:
    """Starts a publisher of a new board; its argument is what stands under [board]."""
    started: list[Publisher] = []

    def start(keep: str = "") -> Publisher:
        folder = tmp_path / f"board-{len(started)}"
        folder.mkdir()
        started.append(Publisher(folder, keep))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def whole(world: SimpleNamespace) -> Any:
    """Checks that what a channel names is whole: it proves itself, and every table and mode shows one state of the world."""

    def check(publisher: Publisher, allowed: set[int]) -> int:
        store = publisher.store
        channel = store.channel()
        assert channel is not None
        release = store.get(channel.release)
        report = verify_release(store, release)
        assert not report.problems, report.problems
        n = publisher.state_of(release.id)
        assert n in allowed
        content = world.content(n)
        tools = open_table(store.database, release.tables["tools"].table, store.uri, release.tables["tools"].version)
        rows = tools.search().select(["id", "description"]).limit(1_000).to_list()
        assert {row["id"]: row["description"] for row in rows} == content
        for index in ("emb_full", "emb_fine"):
            pin = release.tables[index]
            table = open_table(store.database, pin.table, store.uri, pin.version)
            texts = table.search().select(["tool", "text"]).limit(1_000).to_list()
            assert {row["tool"] for row in texts} == set(content)
        board = pegboard.open(publisher.uri, encoder=world.HashingEncoder())
        for tool in range(0, world.TOOLS, 5):
            for mode in ("hybrid", "vector", "text"):
                hits = board.search(f"handle {world.WORDS[tool]}", 5, mode=mode)
                found = [hit.tool.id for hit in hits]
                assert (
                    (found[0] == world.identity(tool)) if world.exists(tool, n) else (world.identity(tool) not in found)
                )
        return n

    return check


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.002)


@pytest.fixture(name="wait_until")
def _wait_until() -> Any:
    return wait_until


@pytest.fixture
def kill() -> Any:
    """Ends a child of the publisher at once; one that has ended already is left as it is."""

    def end(pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)

    return end
