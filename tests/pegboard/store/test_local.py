"""A board in a folder on a disk that is full, or that can only be read: a clear error, the old
release intact.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

import pegboard
from flows.reindex import reindex
from flows.runner import DirectRunner
from pegboard.errors import StoreError
from tests.step_events import StepEvents

FIRST = "Opens an issue in a repository."
SECOND = "Reports a bug in a repository."
STEPS = (None, "snapshot", "plan", "compose", "embed", "stage", "publish")


@pytest.fixture
def small_disk(tmp_path, workshop):
    """A disk of a few megabytes of its own, on which the workshop stands."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    workshop.folder, workshop.uri = disk, str(disk / "board")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def write_tools(workshop, description):
    tool = workshop.tool("create_issue", description)
    workshop.servers({"git": [tool, workshop.tool("merge_branch", "Merges a branch.")]})
    return workshop.configure()


def live_description(uri):
    with pegboard.open(uri) as board:
        return board.search("an issue", k=1)[0].tool.description


@pytest.mark.parametrize("until", ["snapshot", "compose", "embed", "stage", "publish"])
def test_a_build_stopped_by_a_full_disk_at_any_step_is_completed_by_the_next(
    small_disk, workshop, until
):
    workshop.run(write_tools(workshop, FIRST))
    configuration = write_tools(workshop, SECOND)
    if before := STEPS[STEPS.index(until) - 1]:
        workshop.run(configuration, until=before)
    ballast = fill(small_disk)

    with pytest.raises(StoreError, match="there is no space left"):
        workshop.run(configuration)
    assert live_description(workshop.uri) == FIRST
    assert not [path for path in workshop.lake.walk() if path.endswith(".tmp")]

    ballast.unlink()
    workshop.run(configuration)
    assert live_description(workshop.uri) == SECOND


def fill(folder):
    """Leave no space on a disk; returns the file to remove."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return ballast


def test_a_disk_full_after_publishing_is_reported_with_the_live_release(small_disk, workshop):
    workshop.run(write_tools(workshop, FIRST))
    write_tools(workshop, SECOND)
    configuration = workshop.configure(board="report = true\n[board.keep]\nreleases = 1\n")

    def fill_after_publishing(event, _):
        if event == "end publish_release":
            fill(small_disk)

    published = reindex(configuration, runner=StepEvents(DirectRunner(), fill_after_publishing))
    assert (published["outcome"], published["report"]["html"]) == ("published", None)
    assert "there is no space left" in published["report"]["problem"]
    assert live_description(workshop.uri) == SECOND

    (small_disk / "ballast").unlink()
    again = reindex(configuration)
    assert (again["outcome"], again["unfinished"]) == ("unchanged", {})
    assert Path(again["report"]["html"]).name == f"{published['release']}.html"
    assert Path(again["report"]["html"]).exists()
    assert reindex(configuration)["report"] is None


def test_a_board_on_a_read_only_disk_is_searched_but_not_written(small_disk, workshop):
    workshop.run(write_tools(workshop, FIRST))
    second = workshop.run(write_tools(workshop, SECOND))
    configuration = write_tools(workshop, "Something else.")
    store = workshop.store
    lake = workshop.lake
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    assert live_description(workshop.uri) == SECOND
    for write in (
        store.rollback,
        lambda: store.promote(store.all()[0].id, "canary"),
        lambda: lake.write_json("latest.json", {}),
        lambda: lake.delete(next(iter(lake.walk("documents")))),
        lambda: workshop.run(configuration),
    ):
        with pytest.raises(StoreError, match=r"it can only be read \(Read-only.*Make it writable"):
            write()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)

    assert store.channel().release == second.release.id
    assert workshop.run(configuration).release.id != second.release.id
