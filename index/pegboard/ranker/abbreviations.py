"""Abbreviations in a request of words in a tool's name: "list eps" and `list_episodes`."""

from collections.abc import Container, Sequence

LENGTHS = range(2, 7)
"""Valid lengths of an abbreviation in letters."""
LONGER = 2
"""Minimum number of letters by which a word is longer than its abbreviation."""
_VOWELS = frozenset("aeiou")


def short_forms(words: Sequence[str], index_words: Container[str]) -> list[str]:
    """Return the words of a request that may be abbreviations: short ones that the index does not
    contain.
    """
    return [
        word
        for word in words
        if len(word) in LENGTHS and word.isascii() and word.isalpha() and word not in index_words
    ]


def abbreviated(short: Sequence[str], name: Sequence[str]) -> float:
    """Return the share of the possible abbreviations that abbreviate words of a name: the start of
    a word (`ep`), its first letter and some of its consonants (`msg`), or the initials of
    consecutive words (`lb` for `load balancer`).

    Args:
        short: the possible abbreviations.
        name: the words of the name in order.
    Example:
        >>> abbreviated(["msg", "ep"], ["send", "messag"])
        0.5
    """
    initials = "".join(word[0] for word in name)
    matches = [
        form
        for form in short
        if form in initials or any(_is_short_for(form, word) for word in name)
    ]
    return len(matches) / len(short) if short else 0.0


def _is_short_for(form: str, word: str) -> bool:
    if len(word) < len(form) + LONGER or word[0] != form[0]:
        return False
    return word.startswith(form) or (_VOWELS.isdisjoint(form[1:]) and _is_subsequence(form, word))


def _is_subsequence(letters: str, word: str) -> bool:
    remaining = iter(word)
    return all(letter in remaining for letter in letters)
