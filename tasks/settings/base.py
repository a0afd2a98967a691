"""What all settings share: the reading of pegboard.toml, the base class of its tables, and how
their problems are worded.
"""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pegboard.errors import ConfigurationError

MESSAGES = {"extra_forbidden": "no such setting", "missing": "missing"}


class Settings(BaseModel):
    """A table of pegboard.toml: immutable, and without unknown settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_toml(file: str | Path, alternative: str) -> dict[str, Any]:
    """Read a pegboard.toml, without checking what is in it.

    Args:
        alternative: what to do instead of giving a file with -c, for the error message.

    Raises:
        ConfigurationError: the file is missing or is not TOML.
    """
    try:
        return tomllib.loads(Path(file).expanduser().read_text("utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"No configuration at {file}. Give one with -c, or {alternative}."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"{file} cannot be read as TOML: {error}. Correct that place."
        ) from error


def problems_of(error: ValidationError, prefix: str = "") -> list[str]:
    """Return the problems of a table, each as `place: what is wrong`."""
    problems: list[str] = []
    for problem in error.errors(include_url=False):
        kind, place = problem["type"], ".".join(str(part) for part in problem["loc"])
        message = MESSAGES.get(kind, problem["msg"].removeprefix("Value error, "))
        if kind not in (*MESSAGES, "value_error"):
            message += f" (got {problem['input']!r:.80})"
        problems.append(f"{prefix}{place}: {message}")
    return problems


def duplicates(names: list[str]) -> list[str]:
    """Return the names that occur more than once, in their order, each once."""
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]
