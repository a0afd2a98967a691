"""Files of JSON lines that Pegboard's commands write, and people edit or merge."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from pegboard.errors import ConfigurationError

Row = TypeVar("Row")


def read_lines(path: Path, row: type[Row], next_step: str) -> list[Row]:
    """Return the rows of a file.

    Args:
        row: the dataclass of a row; each line has its fields.
        next_step: the last sentence of an error, such as which command writes the file.

    Raises:
        ConfigurationError: the file cannot be read, or lines are invalid; all of them are listed.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"{path} cannot be read: {why}. {next_step}") from error
    adapter = TypeAdapter(row)
    expected = ", ".join(row.__annotations__)
    rows: list[Row] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                rows.append(adapter.validate_json(line))
        except ValidationError:
            problems.append(f"line {number}: expected {expected}, got {line!r:.80}")
    if problems:
        raise ConfigurationError.from_problems(str(path), problems, next_step)
    return rows
