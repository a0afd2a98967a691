"""How counts, lists, measures and tables are written for people: on terminals, in messages, in
Markdown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def plain(text: str) -> str:
    """Return a text of a catalog as a part of one line."""
    return "".join(char if char.isprintable() else " " for char in text)


def interval_text(row: Mapping[str, Any]) -> str:
    """A mean with its interval: `0.912 [0.871, 0.947]`, of a row with value, low and high."""
    return f"{row['value']:z.3f} [{row['low']:z.3f}, {row['high']:z.3f}]"


def difference_text(row: Mapping[str, Any]) -> str:
    """A difference with its interval: `+0.012 [-0.004, +0.031]`."""
    return f"{row['value']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def count_text(count: int, noun: str, plural: str = "") -> str:
    """A number of things: `1 tool`, `2,310 tools`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def list_text(items: Iterable[Any], limit: int, separator: str = ", ") -> str:
    """The first items in one line, and how many more there are: `a, b and 3 more`."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return separator.join(texts[:limit]) + more


def limited_lines(lines: Sequence[str], limit: int, indent: str = "", note: str = "") -> list[str]:
    """The first lines, then `... and N more` with a note such as where all are listed."""
    if len(lines) <= limit:
        return list(lines)
    return [*lines[:limit], f"{indent}... and {len(lines) - limit} more{note}"]


def table_lines(
    header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = ""
) -> list[str]:
    """Rows as columns aligned to the left; a column without header and text is left out.

    Args:
        header: may be empty.
    """
    every = [[plain(cell) for cell in row] for row in (header, *rows) if row]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    lines: list[str] = []
    for row in every:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table; what would break a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(markdown_text(cell) for cell in line)} |" for line in lines]


def markdown_text(text: str) -> str:
    """Text of a catalog that cannot break a table cell or open an HTML tag."""
    return plain(text).replace("|", "\\|").replace("<", "&lt;")


def progress_text(done: int, total: int, seconds: float) -> str:
    """`120 of 400, 12/s, 23 s left`: done, total and, while it lasts, the rate and the time left.

    Args:
        seconds: since the start.
    """
    text = f"{done} of {total}"
    if not 0 < done < total or seconds < 1:
        return text
    rate = done / seconds
    speed = f"{rate:.3g}/s" if rate >= 1 else f"{60 * rate:.2g}/min"
    return f"{text}, {speed}, {_duration((total - done) / rate)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
