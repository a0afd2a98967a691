"""Child processes of tests. They end with the process that started them, also if that one is
killed.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Asks the kernel for SIGKILL at the end of the parent (1 is PR_SET_PDEATHSIG, Linux only) and
# becomes the command. No `preexec_fn`: in a process with threads, newer versions of Python warn of
# it.
_FOLLOW_PARENT = """
import ctypes, os, sys
prctl = getattr(ctypes.CDLL(None), "prctl", None)
if prctl:
    prctl(1, 9)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def start_child(command: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.Popen[Any]:
    """Start a process in a session of its own. The kernel kills it when the thread that started it
    ends.

    Args:
        options: further arguments of `subprocess.Popen`.
    """
    trampoline = [sys.executable, "-I", "-S", "-c", _FOLLOW_PARENT, str(os.getpid())]
    return subprocess.Popen([*trampoline, *command], start_new_session=True, **options)


def follow_parent() -> None:
    """Have the kernel kill this process when the thread that forked it ends."""
    if prctl := getattr(ctypes.CDLL(None), "prctl", None):
        prctl(1, signal.SIGKILL)


def clean_environment(home: Path) -> dict[str, str]:
    """Return the environment for a child, with a home of its own and without the Prefect and
    Pegboard settings of whoever runs the tests.
    """
    others = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "PEGBOARD_"))
    }
    return {**others, "HOME": str(home)}


def end_child(child: subprocess.Popen[Any], grace: float = 20) -> None:
    """End a process of `start_child` and its session: with SIGTERM, and after `grace` seconds with
    SIGKILL.
    """
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
