"""Whether work on a text grows with its length, or faster.

Compared is the time that this thread spent on the processor for texts of growing length. For four
times the characters, linear work takes about four times as long, whatever the load and the machine;
quadratic work sixteen times."""

import time
from collections.abc import Callable
from itertools import pairwise

SHORT = (10, 20, 40, 80, 160, 320, 1_280, 5_120)
"""Lengths for one pattern. They begin where exponential work still ends, and is noticed."""
LONG = (5_000, 20_000, 80_000)
"""Lengths for work of many patterns."""
FACTOR = 2
"""How much longer a character of the longer text may take."""
NOTICED = 0.02
"""Seconds below which work is too short to be compared."""

Work = Callable[[str], object]


def grows_too_fast(
    work: Work, texts: Callable[[int], str], lengths: tuple[int, ...] = SHORT
) -> bool:
    """Return whether work on a text takes more than proportionally longer when the text grows.

    Args:
        texts: makes the text of a length.
    """
    return any(
        _is_longer(work, texts(shorter), texts(longer)) for shorter, longer in pairwise(lengths)
    )


def _is_longer(work: Work, short: str, long: str) -> bool:
    if _seconds(work, long) <= NOTICED:
        return False
    # The best of three: caches fill, and collections of garbage pass.
    later = min(_seconds(work, long) for _ in range(3))
    earlier = max(_seconds(work, short) for _ in range(3))
    return later > NOTICED and later / len(long) > FACTOR * earlier / len(short)


def _seconds(work: Work, text: str) -> float:
    start = time.thread_time()
    work(text)
    return time.thread_time() - start
