"""Excerpts of long texts and long lists for reports."""

from collections.abc import Sequence
from typing import Any

SHORT = 300
"""Largest number of characters of a description, or of one item of a list."""
LONG = 600
"""Largest number of characters of a changed field, or of an error message."""


def excerpt(text: str, length: int = SHORT) -> str:
    """Return the start of a text, with an ellipsis if it is cut; line breaks are kept."""
    text = text.strip()
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def first_rows(rows: Sequence[Any], count: int) -> dict[str, Any]:
    """Return the first `count` rows as `shown`, and the number of all rows as `total`."""
    return {"total": len(rows), "shown": list(rows[:count])}
