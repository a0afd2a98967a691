"""Files of golden queries that commands write to."""

from pathlib import Path

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, read_queries


def queries_to_add_to(file: Path, *, add: bool) -> list[GoldenQuery]:
    """The queries that a file has, to which others are added; none if it is not there.

    Raises ConfigurationError if it is there and nothing is to be added to it, or if its folder is
    missing: before anything is paid for."""
    if not file.parent.is_dir():
        raise ConfigurationError(
            f"{file} cannot be written: there is no folder {file.parent}. Make it first."
        )
    if not file.exists():
        return []
    if not add:
        raise ConfigurationError(
            f"{file} is there already. Give another file, or --add to keep its queries and add to "
            f"them."
        )
    return read_queries(file)
