"""Reading catalog files so that one broken record cannot take the others with it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pegboard.errors import SourceError


def matching_files(base: Path, pattern: str) -> list[Path]:
    """The files that a path or glob pattern names, sorted; relative patterns count from `base`.

    Raises SourceError if there is none.
    """
    path = Path(pattern).expanduser()
    path = path if path.is_absolute() else base / path
    if path.is_file():
        return [path]
    anchor = Path(path.anchor)
    found = sorted(p for p in anchor.glob(str(path.relative_to(anchor))) if p.is_file())
    if not found:
        raise SourceError(
            f"There is no file {path}. Expected a file, or a pattern such as 'dumps/*.json' that "
            f"matches some; "
            "relative paths count from the folder of pegboard.toml."
        )
    return found


def read_text(path: Path) -> str:
    """Read a file. Bytes that are not UTF-8 become lone surrogates, which mark a broken record.

    Raises SourceError if the file cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise SourceError(
            f"Cannot read {path}: {error.strerror}. Check the path and its permissions."
        ) from error


def parse_json(text: str, where: str) -> Any:
    """The value of a JSON text. Raises SourceError that says where the text stops being JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}. Save "
            f"it again, or correct that place."
        ) from error
    except RecursionError as error:
        raise SourceError(f"{where} is nested too deeply to be read.") from error


def read_json(path: Path) -> Any:
    """The value of a JSON file. Raises SourceError as `read_text` and `parse_json` do."""
    return parse_json(read_text(path), str(path))


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, each with its number counted from 1."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line
