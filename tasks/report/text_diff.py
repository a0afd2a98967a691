"""The words of a text that were added and removed, in time bounded whatever the texts are."""

import re

MAX_CHARACTERS = 4_000
"""Of each text; what follows is not compared."""
MAX_CELLS = 20_000
"""Pairs of words that are compared, after the equal beginning and end were set aside. Texts that
differ in more are shown one after the other."""
CONTEXT = 12
"""Words that are shown before and after a change."""
GAP = " … "
WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")

Piece = tuple[str, str]
"""`same`, `added` or `removed`, and a text."""


def diff_words(before: str, after: str) -> list[Piece]:
    """Return the pieces of two texts in order; of long equal pieces only the ends."""
    old, new = (WORD.findall(text[:MAX_CHARACTERS]) for text in (before, after))
    if [word.strip() for word in old] == [word.strip() for word in new]:
        return _replaced(before[:MAX_CHARACTERS], after[:MAX_CHARACTERS])
    start = 0
    while start < min(len(old), len(new)) and _is_same(old[start], new[start]):
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and _is_same(old[-1 - end], new[-1 - end]):
        end += 1
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    words = [("same", word) for word in new[:start]]
    words += _diff_middle(middle_old, middle_new)
    words += [("same", word) for word in new[len(new) - end :]]
    return _shortened(_joined(words))


def _replaced(before: str, after: str) -> list[Piece]:
    return [(kind, text) for kind, text in (("removed", before), ("added", after)) if text]


def _is_same(word: str, other: str) -> bool:
    return word.strip() == other.strip()


def _diff_middle(old: list[str], new: list[str]) -> list[Piece]:
    """The longest common subsequence of words, by the table of its lengths."""
    if len(old) * len(new) > MAX_CELLS:
        return _replaced("".join(old), "".join(new))
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            if _is_same(old[i], new[j]):
                lengths[i][j] = lengths[i + 1][j + 1] + 1
            else:
                lengths[i][j] = max(lengths[i + 1][j], lengths[i][j + 1])
    pieces: list[Piece] = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and _is_same(old[i], new[j]):
            pieces.append(("same", new[j]))
            i, j = i + 1, j + 1
        elif j == len(new) or (i < len(old) and lengths[i + 1][j] >= lengths[i][j + 1]):
            pieces.append(("removed", old[i]))
            i += 1
        else:
            pieces.append(("added", new[j]))
            j += 1
    return pieces


def _joined(words: list[Piece]) -> list[Piece]:
    """Pieces of one kind that follow each other as one; removed before added."""
    pieces: list[Piece] = []
    removed, added = "", ""
    for kind, text in [*words, ("same", "")]:
        if kind == "removed":
            removed += text
        elif kind == "added":
            added += text
        else:
            pieces += _replaced(removed, added)
            removed, added = "", ""
            if pieces and pieces[-1][0] == "same":
                pieces[-1] = ("same", pieces[-1][1] + text)
            elif text:
                pieces.append(("same", text))
    return pieces


def _shortened(pieces: list[Piece]) -> list[Piece]:
    result: list[Piece] = []
    for place, (kind, text) in enumerate(pieces):
        words = WORD.findall(text)
        if kind != "same" or len(words) <= 2 * CONTEXT + 1:
            result.append((kind, text))
            continue
        first = "".join(words[:CONTEXT]) if place else ""
        last = "".join(words[-CONTEXT:]) if place < len(pieces) - 1 else ""
        result.append(("same", f"{first}{GAP}{last}"))
    return result
