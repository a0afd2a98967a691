"""When a process counts as gone; test_deployments.py ends its run on a real server."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flows.prefect.stale_runs import this_process

HERE = this_process()
pytestmark = pytest.mark.skipif(HERE is None, reason="there is no /proc to tell processes apart")


def stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on: the state, ..., the start (twentieth)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def test_a_process_that_was_killed_is_gone_before_and_after_its_parent_collects_it():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        noted = replace(HERE, pid=child.pid, started=int(stat(child.pid)[19]))
        assert not noted.is_gone(HERE)

        child.kill()
        while stat(child.pid)[0] != "Z":
            pass

        assert noted.is_gone(HERE)
    assert noted.is_gone(HERE)


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({}, False),
        ({"started": 1}, True),
        ({"boot": "an earlier one"}, True),
        ({"started": 1, "machine": "other/1"}, False),
        ({"started": 1, "machine": "other/1", "boot": "2"}, False),
        ({"started": 1, "namespace": "3"}, False),
    ],
    ids=["runs", "same id", "restart", "machine", "machine and boot", "container"],
)
def test_a_process_is_gone_only_if_this_machine_can_tell(changes, gone):
    assert replace(HERE, **changes).is_gone(HERE) is gone
