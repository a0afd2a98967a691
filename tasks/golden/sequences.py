"""Which tools follow which, learned from use (`[examples] sequences`), as a release records it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError
from tasks.lake.files import Lake
from tasks.lake.row_sets import read_rows
from tasks.lake.snapshot_rows import tool_of
from tasks.settings.configuration import Configuration


def learned_sequences(configuration: Configuration, tools: str) -> dict[str, dict[str, float]]:
    """Return for each tool the tools that followed it, with their shares of the clients; none
    without `[examples] sequences`. Nothing leads to a destructive tool, as none learns requests.

    Args:
        tools: the path of the release's tools in the lake.

    Raises:
        ConfigurationError: the file cannot be read; lists every invalid line.
    """
    settings = configuration.examples
    if settings is None or settings.sequences is None:
        return {}
    counts = _read(configuration.base / settings.sequences)
    ids = sorted({tool for own in counts.values() for tool in own})
    rows = read_rows(Lake(configuration.uri), tools, keys=ids).iter_rows(named=True)
    harmless = {tool.id for tool in map(tool_of, rows) if not tool.is_destructive}
    shares = {
        tool: {
            following: round(clients / (sum(own.values()) + 1), 3)
            for following, clients in own.items()
            if following in harmless
        }
        for tool, own in counts.items()
    }
    return {tool: own for tool, own in shares.items() if own}


def _read(file: Path) -> Mapping[str, Mapping[str, int]]:
    """Return the number of clients by the tool before and the tool after."""
    counts: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(
            f"[examples] sequences: {file} cannot be read: {why}. `pegboard examples LOG "
            f"--sequences FILE` writes it."
        ) from error
    for number, line in enumerate(lines, start=1):
        try:
            row: Any = json.loads(line)
            after, following, clients = row["after"], row["next"], row["clients"]
            valid = isinstance(after, str) and isinstance(following, str)
            if not valid or not isinstance(clients, int) or clients < 1:
                raise TypeError
        except (ValueError, TypeError, KeyError):
            problems.append(f"line {number}: expected after, next and clients, got {line!r:.80}")
            continue
        counts.setdefault(after, {})[following] = clients
    if problems:
        raise ConfigurationError.from_problems(str(file), problems)
    return counts
