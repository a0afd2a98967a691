"""Listing in a separate process: failures are isolated per source."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

import pytest

from catalogs.shared import isolation
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
from tests.children import end_child, start_child

PROC = Path("/proc/self/environ").exists()


@pytest.fixture
def isolated(tmp_path):
    """A function that lists a source of one kind in a separate process."""

    def listing_of(kind, **options):
        model = source_kind(kind).options.model_validate({"type": kind, **options})
        return list_isolated("kit", tmp_path, model)

    return listing_of


@pytest.fixture
def module(isolated, tmp_path):
    """A function that lists a Python module with this text, and a function `fine`."""

    def listing_of(text, **options):
        (tmp_path / "hostile.py").write_text(f"def fine(): ...\n{text}\n")
        return isolated("python", target="hostile", search_path=".", **options)

    return listing_of


@pytest.fixture
def started(monkeypatch):
    """The processes that the test starts; processes of other tests are not reused."""
    processes = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: processes.append(a) or start(*a, **k))
    monkeypatch.setattr(isolation, "_idle", [])
    return processes


def only_failure(listing):
    (failure,) = listing.failures
    assert (failure.agent, listing.tools) == ("*", ())
    return failure.why


def writes(content):
    """A module that writes to all files of its process, and then hangs."""
    return (
        "import os, time\nfor file in range(3, 1_000):\n"
        f"  try: os.write(file, {content!r})\n  except OSError: pass\ntime.sleep(600)"
    )


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("import os; os._exit(7)", {}, "ended without an answer (exit status 7)"),
        ("import os; os.kill(os.getpid(), 9)", {}, "(SIGKILL). If it needs more memory"),
        ("import ctypes; ctypes.string_at(0)", {}, "(SIGSEGV)"),
        ("raise BaseException('no')", {}, "hostile cannot be imported: BaseException: no"),
        ("raise SystemExit(3)", {}, "hostile cannot be imported: SystemExit: 3"),
        ("while True: pass", {"max_seconds": 1}, "more than 1 seconds"),
        ("a = bytearray(10**9)", {"max_memory": 800_000_000}, "raise `max_memory`"),
        (writes(b"\0\0\0\x05junk."), {}, "sent an invalid listing"),
        (writes(b"\0\0\0\x07retry x" * 1_002), {}, "sent an invalid listing"),
        (writes(b"\0\0"), {"max_seconds": 2}, "more than 2 seconds"),
        (writes(b"\x7f\xff\xff\xff"), {}, "has more than 2,000,000,000 bytes"),
    ],
)
def test_a_source_that_ends_or_exhausts_its_process_does_not_affect_others(
    module, isolated, tmp_path, text, options, why
):
    assert why in only_failure(module(text, **options))

    (tmp_path / "good.json").write_text('[{"name": "good"}]')
    listing = isolated("records", path="good.json", columns={"name": "name"})
    assert [tool.name for tool in listing.tools] == ["good"]


def test_output_of_a_module_is_discarded_and_its_input_is_empty(module, capfd):
    listing = module(
        "import os, sys\nprint('x' * 10**6)\nsys.stderr.write('y' * 10**6)\nos.close(1)\n"
        "assert sys.stdin.read() == ''"
    )

    assert [tool.name for tool in listing.tools] == ["fine"]
    assert capfd.readouterr() == ("", "")


def test_a_process_is_reused_for_files_but_not_after_running_code(
    isolated, module, tmp_path, started
):
    (tmp_path / "good.json").write_text('[{"name": "good"}]')

    for _ in range(3):
        isolated("records", path="good.json", columns={"name": "name"})
    files = len(started)
    module("")
    isolated("records", path="good.json", columns={"name": "name"})

    assert (files, len(started)) == (1, 2)


def test_file_sources_use_at_most_one_process_per_processor(isolated, tmp_path, started):
    (tmp_path / "good.json").write_text('[{"name": "good"}]')
    sources = 2 * os.cpu_count()

    with ThreadPoolExecutor(sources) as pool:
        listings = list(
            pool.map(
                lambda _: isolated("records", path="good.json", columns={"name": "name"}),
                range(sources),
            )
        )

    assert [len(listing.tools) for listing in listings] == [1] * sources
    assert len(started) <= os.cpu_count()


LEAVES = """
import os, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
if not os.fork():  # its child has another session, another environment and no parent
    child = subprocess.Popen(sleep, env={}, start_new_session=True)
    with open("pids.part", "w") as file:
        file.write(f"{os.getppid()} {child.pid}")
    os.rename("pids.part", "pids")
    os._exit(0)
os.wait()
"""
LISTS = """
import sys
from pathlib import Path
from catalogs.shared.isolation import list_isolated
from catalogs.shared.kinds import source_kind
options = {"type": "python", "target": "hostile", "search_path": ["."]}
list_isolated("kit", Path.cwd(), source_kind("python").options.model_validate(options))
"""


@pytest.mark.skipif(not PROC, reason="only Linux tells the environment of a process")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_and_its_descendants_end_with_their_parent(tmp_path, number):
    (tmp_path / "hostile.py").write_text(LEAVES + "time.sleep(600)")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    asking = start_child([sys.executable, "-c", LISTS], cwd=tmp_path, env=environment)
    try:
        wait_for_file(tmp_path / "pids")
        asking.send_signal(number)
        asking.wait()
    finally:
        end_child(asking)

    wait_for_the_end(tmp_path)


@pytest.mark.skipif(not PROC, reason="only Linux tells the parent of a process")
@pytest.mark.parametrize("end", ["", "os._exit(7)", "os.kill(os.getpid(), 9)", "time.sleep(600)"])
def test_processes_started_by_a_source_end_with_its_listing(module, tmp_path, monkeypatch, end):
    def passes_once_it_started(seconds, end_listing):
        return Timer(0, lambda: [wait_for_file(tmp_path / "pids"), end_listing()])

    monkeypatch.chdir(tmp_path)
    if "sleep" in end:
        monkeypatch.setattr(isolation, "Timer", passes_once_it_started)

    listing = module(LEAVES + end)

    assert bool(listing.failures) == bool(end)
    wait_for_the_end(tmp_path)


def wait_for_file(path):
    while not path.exists():
        time.sleep(0.02)


def wait_for_the_end(folder):
    for process in (folder / "pids").read_text().split():
        while is_running(process):  # the test's own limit ends it
            time.sleep(0.02)


def is_running(process):
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
