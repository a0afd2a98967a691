"""On Linux, the process above one that lists sources: whatever the other starts is found below it,
and ended.

Linux gives a process whose parent has ended to the nearest ancestor that is a subreaper. A session
or an environment of its own does not take a process out of this tree. On other systems there is no
such process, and what a source started ends with it only if it stayed in its process group."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def supervise() -> None:
    """Return in a child process, to list sources there. The parent stays here until the child has
    ended, kills what it started, and exits with its status, or 128 and the number of its signal.
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
    """Kill what a process started, and what that started, until there is nothing new."""
    killed = set[int]()
    while descendants := _descendants(process) - killed:
        for descendant in descendants:
            with suppress(OSError):
                os.kill(descendant, signal.SIGKILL)
        killed |= descendants


def _descendants(process: int) -> set[int]:
    """Return the process ids; a process that has ended and was not waited for is none."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name before them may hold anything, brackets and spaces included.
            state, parent, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if state != "Z":
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    out = [process]
    for each in out:
        out += children.get(each, [])
    return {*out[1:]}
