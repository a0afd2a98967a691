"""What the commands that run something share: --prefect, the encoders' warnings, and the time since
the process started.
"""

import argparse
import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_LOADED = time.monotonic()


def add_prefect_option(parser: argparse.ArgumentParser) -> None:
    """Add --prefect and --no-prefect; the value is None where neither is given."""
    parser.add_argument(
        "--prefect",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run as a Prefect flow, or directly (default: as a flow if PREFECT_API_URL or the "
        "Prefect profile names a server; "
        "with --prefect and no server, Prefect starts one for the run)",
    )


@contextmanager
def quiet_encoders() -> Generator[None]:
    """Keep warnings of encoders off the terminal: a command reports once, at its end, how many
    texts were cut.
    """
    logger = logging.getLogger("pegboard.encoders")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def process_seconds() -> float:
    """Seconds since this process was started, imports included; off Linux, since this module was
    loaded.
    """
    try:
        started = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
    except OSError:
        return time.monotonic() - _LOADED
    return uptime - started / os.sysconf("SC_CLK_TCK")
