"""What a report shows of long texts and long lists."""

from collections.abc import Sequence
from typing import Any

SHORT = 300
"""Characters of a description, or of one item of a list."""
LONG = 600
"""Characters of a field that changed, or of an error message."""


def excerpt(text: str, length: int = SHORT) -> str:
    """Return the beginning of a text, with an ellipsis if it is longer; line breaks stay."""
    text = text.strip()
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def first_rows(rows: Sequence[Any], count: int) -> dict[str, Any]:
    """Return the first `count` rows under `shown`, and the number of all of them as `total`."""
    return {"total": len(rows), "shown": list(rows[:count])}
