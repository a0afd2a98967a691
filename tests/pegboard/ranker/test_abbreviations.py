"""Abbreviations of words in a name."""

import pytest

from pegboard.ranker.abbreviations import abbreviated, short_forms


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("ep", "list episod"),
        ("repo", "delet repositori"),
        ("msg", "send messag"),
        ("acct", "close account"),
        ("hpa", "get horizont pod autoscal"),
        ("lb", "list load balanc"),
    ],
)
def test_prefixes_consonants_and_initials_abbreviate_a_name(form, name):
    assert abbreviated([form], name.split()) == 1.0


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("ep", "list"),
        ("msg", "send massiv"),
        ("moon", "list mode on network"),
        ("list", "lists"),
        ("pr", "request pull"),
        ("x", "xylophon"),
    ],
)
def test_other_words_do_not_abbreviate_a_name(form, name):
    short = short_forms([form], ())

    assert abbreviated(short, name.split()) == 0.0


def test_indexed_long_and_non_ascii_words_are_not_abbreviations():
    words = ["ep", "rec", "recommend", "v2", "天気", "é"]

    assert short_forms(words, {"ep": 3}) == ["rec"]
