"""The nearest existing names to an unknown one, for messages."""

import difflib
import heapq
from collections.abc import Iterable

SHORTLIST = 50
"""Names that are compared letter by letter with one that is not there; with all of a large catalog
that would take seconds.
"""


def nearest_names(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the most similar names, best first; none if none is similar."""
    pairs = _letter_pairs(name)
    shortlist = heapq.nlargest(
        SHORTLIST,
        sorted(names),
        key=lambda one: len(pairs & _letter_pairs(one)) / (len(pairs) + len(one) or 1),
    )
    return difflib.get_close_matches(name, shortlist, n=most)


def _letter_pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}
