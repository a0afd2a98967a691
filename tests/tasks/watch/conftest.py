"""A watch whose builds are recorded, in a folder of its own."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tasks.settings.configuration import Configuration
from tasks.watch import loop
from tasks.watch.loop import BuildResult, Watch
from tasks.watch.watcher import WatchEvent
from tests.children import end_child, start_child

SERVER = Path(__file__).parents[2] / "catalogs/servers/changing_http.py"
POLL = 0.02


class Trial:
    """A pegboard.toml, its sources, and what a watch of it did.

    Attributes:
        builds: the catalogs of each build that began.
        running: builds that are under way, which must never be two.
        events: everything that was reported.
        answer: what a build returns; by default success.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "pegboard.toml"
        self.builds: list[list[str]] = []
        self.events: list[WatchEvent] = []
        self.running = 0
        self.answer: Callable[[list[str]], Awaitable[BuildResult]] = succeed

    def configure(self, catalogs: str) -> None:
        text = f'[board]\nuri = "board"\n[[indexes]]\nencoder = "hashing/256"\n{catalogs}'
        self.file.write_text(text, "utf-8")

    def files(self, *names: str) -> None:
        """Configure a catalog of functions for each name, from NAME.json."""
        for name in names:
            self.write(f"{name}.json", name)
        self.configure(
            "".join(
                f'[catalogs.{name}]\ntype = "functions"\npath = "{name}.json"\n' for name in names
            )
        )

    def write(self, file: str, *tools: str) -> Path:
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        rows = [{"name": name, "description": f"Does {name}.", "parameters": {}} for name in tools]
        path.write_text(json.dumps(rows), "utf-8")
        return path

    async def build(self, configuration: Configuration, catalogs: list[str]) -> BuildResult:
        self.builds.append(catalogs)
        self.running += 1
        assert self.running == 1
        try:
            return await self.answer(catalogs)
        finally:
            self.running -= 1

    def watch(self, interval: float = 600) -> Watch:
        return Watch(self.file, self.build, self.events.append, interval)

    @asynccontextmanager
    async def watching(self, interval: float = 600) -> AsyncGenerator[None]:
        """Watch in the block, which begins after the first build."""
        before = len(self.events)
        async with anyio.create_task_group() as group:
            group.start_soon(self.watch(interval).run)
            await until(lambda: "built" in [event.kind for event in self.events[before:]])
            yield
            group.cancel_scope.cancel()

    def texts(self, kind: str) -> list[str]:
        return [event.text for event in self.events if event.kind == kind]


async def succeed(catalogs: list[str]) -> BuildResult:
    return BuildResult("published")


async def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition; pytest-timeout is the guard."""
    while not condition():
        await anyio.sleep(POLL)


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setattr(loop, "SETTLE_SECONDS", 0.2)
    return Trial(tmp_path)


@pytest.fixture
def changing_server(tmp_path: Path) -> Callable[..., Any]:
    """Run `changing_http.py` in a block, which gets its port; its tools are those of a file."""

    @contextmanager
    def run(*options: str, port: int = 0) -> Generator[int]:
        command = [sys.executable, str(SERVER), str(tmp_path / "tools.json"), str(port), *options]
        server = start_child(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            end_child(server)
            server.stdout.close()

    return run
