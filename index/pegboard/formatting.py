"""How counts, lists, measures and tables are written for people: on terminals, in messages, in
Markdown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def plain(text: str) -> str:
    """Return a catalog's text with a blank for every unprintable character, so that it stays on
    one line.
    """
    return "".join(char if char.isprintable() else " " for char in text)


def interval_text(row: Mapping[str, Any]) -> str:
    """Return a mean with its interval: `0.912 [0.871, 0.947]`.

    Args:
        row: has `value`, `low` and `high`.
    """
    return f"{row['value']:z.3f} [{row['low']:z.3f}, {row['high']:z.3f}]"


def difference_text(row: Mapping[str, Any]) -> str:
    """Return a difference with its interval: `+0.012 [-0.004, +0.031]`.

    Args:
        row: has `value`, `low` and `high`.
    """
    return f"{row['value']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 tool`, `2,310 tools`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def llm_calls_text(calls: str) -> str:
    """Return the calls of `Strategy.llm_calls` as a sentence."""
    noun = "LLM call" if calls == "1" else "LLM calls"
    request = "a request of n steps" if "n" in calls else "a request"
    return f"{calls} {noun} for {request}."


def list_text(items: Iterable[Any], limit: int, separator: str = ", ") -> str:
    """Return the first `limit` items and the number of the others: `a, b and 3 more`."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return separator.join(texts[:limit]) + more


def limited_lines(lines: Sequence[str], limit: int, indent: str = "", note: str = "") -> list[str]:
    """Return the first `limit` lines, then `... and N more` with a note, such as where all are
    listed.
    """
    if len(lines) <= limit:
        return list(lines)
    return [*lines[:limit], f"{indent}... and {len(lines) - limit} more{note}"]


def table_lines(
    header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = ""
) -> list[str]:
    """Return the lines of a table with left-aligned columns; empty columns are left out.

    Args:
        header: may be empty.
    """
    table = [[plain(cell) for cell in row] for row in (header, *rows) if row]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines: list[str] = []
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; characters that would break a cell are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(markdown_text(cell) for cell in line)} |" for line in lines]


def markdown_text(text: str) -> str:
    """Return a catalog's text so that it cannot break a table cell or open an HTML tag."""
    return plain(text).replace("|", "\\|").replace("<", "&lt;")


def progress_text(done: int, total: int, seconds: float) -> str:
    """Return `120 of 400, 12/s, 23 s left`; rate and time left only while the work is going on.

    Args:
        seconds: elapsed seconds.
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
