"""Words of a request that are short for words of a tool's name: "list eps" and `list_episodes`."""

from collections.abc import Container, Sequence

LENGTHS = range(2, 7)
"""Letters of a short form."""
LONGER = 2
"""By how many letters the word is longer that a short form stands for."""
_VOWELS = frozenset("aeiou")


def short_forms(words: Sequence[str], known: Container[str]) -> list[str]:
    """Return the words of a request that may be short forms: of few letters, and not known to the
    index.
    """
    return [
        word
        for word in words
        if len(word) in LENGTHS and word.isascii() and word.isalpha() and word not in known
    ]


def abbreviated(short: Sequence[str], name: Sequence[str]) -> float:
    """Return the share of the short forms that abbreviate a name, given its words in their order:
    the start of one (`ep`), its first letter and some of its consonants (`msg`), or the initials of
    several in a row (`lb` for `load balancer`).

    Example:
        >>> abbreviated(["msg", "ep"], ["send", "messag"])
        0.5
    """
    initials = "".join(word[0] for word in name)
    fits = [form in initials or any(_is_short_for(form, word) for word in name) for form in short]
    return sum(fits) / len(short) if short else 0.0


def _is_short_for(form: str, word: str) -> bool:
    if len(word) < len(form) + LONGER or word[0] != form[0]:
        return False
    return word.startswith(form) or (_VOWELS.isdisjoint(form[1:]) and _in_order(form, word))


def _in_order(letters: str, word: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in letters)
