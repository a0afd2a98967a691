"""A killed test session leaves no process behind: what tests start ends with them, and what that
forks or starts as well.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.children import end_child, start_child

MARK = "TEST_SESSION_TO_BE_KILLED"
# Which test, and how many processes with the given words in their command lines it has at once.
SESSIONS = {
    "publishers that fork": ("tests/faults/test_publishers.py -k once", {"publisher.py": 3}),
    "readers": ("tests/faults/test_soak.py", {"publisher.py": 1, "reader.py": 3}),
    "enrichment": (
        "tests/tasks/enrichment/test_kill.py -k under_way",
        {"scripted_llm.py": 1, "enrich_worker.py": 2},
    ),
    "rivals in a bucket": (
        "tests/pegboard/store/test_s3.py -k of_two",
        {"moto.server": 1, "tests.rival": 2},
    ),
    "a flow and its server": (
        "tests/faults/test_kill_publishing.py -k flow",
        {"publisher.py": 1, "flow.py": 1, "prefect server": 1},
    ),
}


def processes(mark):
    """The command lines of the processes that inherited the mark, by their ids; those that have
    ended have none.
    """
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # it ended meanwhile, or is another user's
    return found


def counts(mark, words):
    return {word: sum(word in command for command in processes(mark).values()) for word in words}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="there is no /proc to find processes in"
)
@pytest.mark.parametrize(
    "session",
    [pytest.param(name, marks=pytest.mark.prefect if "flow" in name else ()) for name in SESSIONS],
)
def test_a_killed_test_session_leaves_no_process_behind(session, tmp_path):
    tests, expected = SESSIONS[session]
    mark = uuid.uuid4().hex
    log = tmp_path / "log"
    with log.open("wb") as output:
        killed = start_child(
            [
                sys.executable,
                "-m",
                "pytest",
                "-m",
                "",
                f"--basetemp={tmp_path / 'inner'}",
                *tests.split(),
            ],
            cwd=Path(__file__).parents[1],
            env={**os.environ, MARK: mark},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        while any(count < expected[word] for word, count in counts(mark, expected).items()):
            assert killed.poll() is None, log.read_text()
            time.sleep(0.01)

        killed.kill()

        assert killed.wait() == -signal.SIGKILL
        while processes(mark):  # pytest-timeout is the guard
            time.sleep(0.01)
    finally:
        end_child(killed)
