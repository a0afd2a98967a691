"""How long a sweep will still take, by how long its queries took so far."""

import time
from collections.abc import Collection


class Pace:
    """Made when the work begins.

    Args:
        pieces: how many queries each cell asks.
    """

    def __init__(self, pieces: Collection[int]) -> None:
        self.total = sum(pieces)
        self._done = 0
        self._began = time.monotonic()

    def after(self, done: int) -> str:
        """What is left, in words, now that so many more queries are done."""
        self._done += done
        spent = time.monotonic() - self._began
        left = spent / max(self._done, 1) * (self.total - self._done)
        return f"about {left / 60:.0f} min left" if left >= 90 else f"about {left:.0f} s left"
