"""A board in a folder on a disk that is full, or that can only be read: a clear error, the old
release intact.
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

import pegboard
from pegboard.errors import StoreError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake

FIRST, SECOND = "Opens an issue in a repository.", "Reports a bug in a repository."


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a few megabytes of its own, on which the workshop stands."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def on_disk(small_disk, workshop):
    workshop.folder = small_disk
    workshop.uri = str(small_disk / "board")
    return workshop


def write_tools(workshop, description):
    tools = [
        workshop.tool("create_issue", description),
        workshop.tool("merge_branch", "Merges a branch."),
    ]
    workshop.servers({"git": tools})
    return workshop.configure()


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return ballast


@pytest.mark.parametrize("until", ["snapshot", "compose", "embed", "stage", "publish"])
def test_a_full_disk_stops_a_run_at_any_step_and_the_next_one_completes_it(on_disk, until):
    steps = ("snapshot", "plan", "compose", "embed", "stage", "publish")
    one = on_disk.run(write_tools(on_disk, FIRST))
    configuration = write_tools(on_disk, SECOND)
    before = steps[steps.index(until) - 1] if until != "snapshot" else None
    if before:
        on_disk.run(configuration, until=before)
    ballast = fill(Path(on_disk.folder))

    with pytest.raises(StoreError, match="there is no space left"):
        on_disk.run(configuration)
    with pegboard.open(on_disk.uri) as board:
        assert board.release.id == one.release.id
        assert board.search("an issue", k=1)[0].tool.description == FIRST
    assert not [path for path in Lake(on_disk.uri).walk() if path.endswith(".tmp")]

    ballast.unlink()
    two = on_disk.run(configuration)
    assert two.release.id != one.release.id
    with pegboard.open(on_disk.uri) as board:
        assert board.search("an issue", k=1)[0].tool.description == SECOND


def writes(uri):
    store, lake = ReleaseStore(uri), Lake(uri)
    yield lambda: store.rollback()
    yield lambda: store.promote(store.all()[0].id, "canary")
    yield lambda: lake.write_json("latest.json", {})
    yield lambda: lake.delete(next(iter(lake.walk("documents"))))


def test_a_disk_that_can_only_be_read_is_searched_and_not_written(on_disk, small_disk):
    on_disk.run(write_tools(on_disk, FIRST))
    configuration = write_tools(on_disk, SECOND)
    two = on_disk.run(configuration)
    write_tools(on_disk, "Something else.")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    with pegboard.open(on_disk.uri) as board:
        assert board.search("an issue", k=1)[0].tool.description == SECOND
    for write in [*writes(on_disk.uri), lambda: on_disk.run(configuration)]:
        with pytest.raises(
            StoreError, match=r"it can only be read \(Read-only file system.*Make it writable"
        ):
            write()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)

    assert on_disk.store.channel().release == two.release.id
    assert on_disk.run(configuration).release.id != two.release.id


AS_NOBODY = """
import os, sys
import pegboard
from pegboard.errors import PegboardError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake
uri = sys.argv[1]
pegboard.open(uri).search("an issue", k=1)
store, lake = ReleaseStore(uri), Lake(uri)
store.create()
lake.read(next(path for path in lake.walk("documents") if path.endswith(".parquet")))
if not os.getuid():
    os.setgid(65534)
    os.setuid(65534)
print(pegboard.open(uri).search("an issue", k=1)[0].tool.name)
for use in (
    store.rollback,
    lambda: store.promote(store.all()[0].id, "canary"),
    lambda: lake.write_json("latest.json", {}),
    lambda: lake.delete(next(iter(lake.walk("documents")))),
):
    try:
        print("done", use())
    except PegboardError as error:
        print(type(error).__name__, error)
"""


def test_a_folder_that_may_only_be_read_is_searched_and_not_written(workshop):
    workshop.run(write_tools(workshop, FIRST))
    workshop.run(write_tools(workshop, SECOND))
    # Not in tmp_path, into which no other user may look.
    with tempfile.TemporaryDirectory() as folder:
        uri = str(shutil.copytree(workshop.uri, Path(folder) / "board"))
        for path in [Path(folder), Path(uri), *Path(uri).rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        result = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, uri], capture_output=True, text=True
        )
        for path in [Path(folder), Path(uri), *Path(uri).rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)

    assert result.returncode == 0, result.stderr
    name, *said = result.stdout.splitlines()
    assert name == "create_issue"
    assert len(said) == 4
    for line in said:
        assert line.startswith("StoreError ")
        assert "permission was denied (" in line
        assert "run as a user who may" in line


LIMITED = """
import resource, runpy, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pegboard.errors import StoreError
from tasks.lake.files import Lake
import polars as pl
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    rows = pl.DataFrame({"a": [str(i * 7919 % 100003) for i in range(50_000)]})
    Lake(sys.argv[1]).write("documents/a.parquet", rows)
except StoreError as error:
    print(error)
print(sorted(Lake(sys.argv[1]).walk()))
"""


def test_a_file_that_may_not_become_so_large_is_said_and_leaves_nothing(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )

    message, left = result.stdout.splitlines()
    assert (
        "documents/a.parquet cannot be written: a file would become larger than is allowed here"
        in message
    )
    assert left == "[]"
