"""Short forms of words of a name."""

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
def test_the_start_the_consonants_and_the_initials_of_a_name_are_short_for_it(form, name):
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
def test_other_words_are_not(form, name):
    short = short_forms([form], ())

    assert abbreviated(short, name.split()) == 0.0


def test_a_word_that_the_index_knows_or_that_is_long_or_in_other_letters_is_no_short_form():
    words = ["ep", "rec", "recommend", "v2", "天気", "é"]

    assert short_forms(words, {"ep": 3}) == ["rec"]
