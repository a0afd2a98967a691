"""Whether work on a text grows with its length, or faster.

Compared is the time that this thread has the processor for a text and for one of sixteen times its
length: linear work takes sixteen times as long, quadratic work 256 times. What counts lies between,
four times from each, so that neither the load nor the machine decides."""

import time
from collections.abc import Callable

LENGTHS = (16, 20, 24, 28, 32, 40, 50, 64, 80, 100, 125, 500, 2_000, 8_000)
"""They begin in small steps, at which exponential work is noticed while it still ends."""
APART = 16
TOO_MUCH = APART * 4
NOTICED = 0.005
"""Seconds below which work on the longest text is too short to be other than linear."""
ENOUGH = 0.05
"""Seconds after which no longer text is tried."""

Work = Callable[[str], object]


def grows_too_fast(work: Work, texts: Callable[[int], str]) -> bool:
    """Return whether work on a text takes more than proportionally longer when the text grows.

    Args:
        texts: makes the text of a length.
    """
    seconds = 0.0
    length = 0
    for length in LENGTHS:
        if (seconds := _seconds(work, texts(length))) > ENOUGH:
            break
    if seconds <= NOTICED:
        return False
    short = texts(max(1, length // APART))
    long = texts(length)
    # The best of three: caches fill, and collections of garbage pass.
    earlier = min(_seconds(work, short) for _ in range(3))
    return all(_seconds(work, long) > TOO_MUCH * earlier for _ in range(3))


def _seconds(work: Work, text: str) -> float:
    start = time.thread_time()
    work(text)
    return time.thread_time() - start
