"""What the pipeline's commands share: options, quiet encoders, and how a file is written."""

import argparse
import gc
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from tasks.settings.configuration import BoardSettings


def add_config_option(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add -c and --config."""
    parser.add_argument(
        "-c",
        "--config",
        default=default,
        metavar="FILE",
        help="the configuration (default: pegboard.toml)",
    )


def named_board(options: argparse.Namespace) -> "tuple[str, BoardSettings]":
    """Return the address of --board, else that of -c, else $PEGBOARD_BOARD, else that of
    ./pegboard.toml; and the `[board]` table of the configuration, its defaults without one.
    """
    from tasks.settings.configuration import BoardSettings, load_configuration

    uri = options.board or (None if options.config else os.environ.get("PEGBOARD_BOARD"))
    if uri and not options.config:
        return uri, BoardSettings(uri=uri)
    configuration = load_configuration(options.config or "pegboard.toml")
    return uri or configuration.uri, configuration.board


def collect_garbage_rarely() -> None:
    """Collect cyclic garbage rarely: imports and rows are objects that stay."""
    gc.set_threshold(100_000, 50, 50)


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


def write_file(path: str | Path, text: str) -> None:
    """Write a file that an option names."""
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}. Choose a folder that can be."
        ) from error
