"""A supervisor process for the process that lists sources (Linux): it kills all descendants.

Linux reparents an orphaned process to the nearest ancestor that is a subreaper, so descendants
cannot leave this tree, even in a new session. Other systems have no supervisor; there, descendants
are killed only if they stay in the process group."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""Option number of prctl(2)."""


def supervise() -> None:
    """Fork, and return in the child, which lists sources.

    The parent waits for the child, kills its descendants, and exits with the child's status, or 128
    plus the number of the signal that ended the child.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        return
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the pipe ends with the child
    ended = status = 0
    while ended != child:
        ended, status = os.wait()
    kill_descendants(os.getpid())
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def kill_descendants(process: int) -> None:
    """Kill all descendants of a process, until no new ones appear."""
    killed = set[int]()
    while descendants := _descendants(process) - killed:
        for descendant in descendants:
            with suppress(OSError):
                os.kill(descendant, signal.SIGKILL)
        killed |= descendants


def _descendants(process: int) -> set[int]:
    """Return the ids of all descendants of a process, without zombies."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The process name before these fields may contain brackets and spaces.
            state, parent, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if state != "Z":
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    tree = [process]
    for member in tree:
        tree += children.get(member, [])
    return {*tree[1:]}
