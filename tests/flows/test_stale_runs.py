"""When a process counts as gone. That its run is ended then is tested on a real server:
test_deployments.py.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flows.prefect.stale_runs import this_process

HERE = this_process()
pytestmark = pytest.mark.skipif(HERE is None, reason="there is no /proc to tell processes apart")


def stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on: its state is the first of them, its start
    the twentieth.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def test_a_running_process_is_not_gone():
    assert not HERE.is_gone(HERE)


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


def test_another_process_with_the_same_id_is_not_taken_for_it():
    assert replace(HERE, started=HERE.started - 1).is_gone(HERE)


def test_after_a_restart_of_the_machine_every_process_is_gone():
    assert replace(HERE, boot="an earlier one").is_gone(HERE)


@pytest.mark.parametrize(
    "elsewhere", [{"machine": "other/1"}, {"machine": "other/1", "boot": "2"}, {"namespace": "3"}]
)
def test_nothing_is_said_of_a_process_of_another_machine_or_container(elsewhere):
    gone_here = replace(HERE, started=HERE.started - 1)

    assert not replace(gone_here, **elsewhere).is_gone(HERE)
