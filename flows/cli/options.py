"""What the pipeline's commands share: options, quiet encoders, and the seconds since the start."""

import argparse
import gc
import logging
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pegboard.cli.output import Subparsers

_LOADED = time.monotonic()


def collect_garbage_rarely() -> None:
    """Collect cyclic garbage rarely: imports and rows are objects that stay."""
    gc.set_threshold(100_000, 50, 50)


def add_command(
    commands: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], int] | None = None,
    epilog: str = "",
    **texts: Any,
) -> argparse.ArgumentParser:
    """Add a command that calls `run`; `texts` are its help and description."""
    if epilog:
        texts |= {"epilog": epilog, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser: argparse.ArgumentParser = commands.add_parser(name, **texts)
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def add_config_option(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add -c and --config."""
    parser.add_argument(
        "-c",
        "--config",
        default=default,
        metavar="FILE",
        help="the configuration (default: pegboard.toml)",
    )


def add_quiet_option(parser: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def add_prefect_option(parser: argparse.ArgumentParser) -> None:
    """Add --prefect and --no-prefect; the value is None where neither is given."""
    parser.add_argument(
        "--prefect",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run as a Prefect flow, or directly (default: as a flow if PREFECT_API_URL or the "
        "Prefect profile names a server; with --prefect and no server, Prefect starts one for the "
        "run)",
    )


@contextmanager
def quiet_encoders() -> Generator[None]:
    """Mute warnings of encoders: the command reports at its end how many texts were truncated."""
    logger = logging.getLogger("pegboard.encoders")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def process_seconds() -> float:
    """Return the seconds since this process started; off Linux, since this module was loaded."""
    try:
        started = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
    except OSError:
        return time.monotonic() - _LOADED
    return uptime - started / os.sysconf("SC_CLK_TCK")
