"""`pegboard watch` as a process, with real builds."""

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pegboard.store.releases import ReleaseStore
from tests.children import end_child, start_child


class Watching:
    """A watch with --json, whose events are read as they come."""

    def __init__(self, folder: Path, environment: dict[str, str], *options: str) -> None:
        command = [sys.executable, "-m", "pegboard", "watch", "--json", *options]
        self.process = start_child(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        )

    def event(self, kind: str) -> dict[str, Any]:
        """Return the next event of a kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == kind:
                return event
        raise AssertionError(f"the watch ended before it reported {kind}")

    def end(self) -> None:
        end_child(self.process)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def watching(workshop, alone) -> Generator[Watching]:
    workshop.servers(workshop.named("commit", "branch"))
    workshop.configure()
    watching = Watching(workshop.folder, alone)
    yield watching
    watching.end()


def test_a_changed_file_is_live_and_sigterm_ends_the_watch(watching, workshop):
    first = watching.event("built")
    workshop.servers(workshop.named("commit", "branch", "merge"))
    second = watching.event("built")
    live = ReleaseStore(workshop.uri).channel("live").release

    watching.process.send_signal(signal.SIGTERM)

    assert watching.event("stopped")["text"] == "SIGTERM"
    assert watching.process.wait() == 0
    assert first["outcome"] == second["outcome"] == "published"
    assert second["catalogs"] == ["kit"]
    assert live == second["release"] != first["release"]


def test_an_interrupt_during_a_build_ends_the_build_too(watching, workshop):
    watching.event("building")

    watching.process.send_signal(signal.SIGINT)

    watching.event("stopped")
    assert watching.process.wait() == 0
    assert processes_in(workshop.folder) == []


def test_once_builds_what_changed_and_ends(command, workshop):
    workshop.servers(workshop.named("commit"))
    workshop.configure()
    file = workshop.folder / "pegboard.toml"

    first = command("watch", "--once", "-c", file)
    second = command("watch", "--once", "-c", file)

    assert first[0] == second[0] == 0
    assert "kit: published, release" in first[1]
    assert "nothing changed since the last build" in second[1]


def test_an_invalid_interval_is_refused(command, workshop):
    workshop.configure()

    code, _, err = command("watch", "--interval", "0")

    assert code == 2
    assert "--interval 0: expected seconds, at least 0.05." in err


def processes_in(folder: Path) -> list[str]:
    """Return the command lines that name a folder."""
    lines: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(folder) in line:
            lines.append(line)
    return lines
