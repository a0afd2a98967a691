"""The words of a text that changed: exact for short texts, bounded for hostile ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.report.changes import MAX_CHARACTERS, MAX_PAIRS, diff_words


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        (
            "Opens the door of a customer.",
            "Opens the front door of a customer.",
            [("same", "Opens the "), ("added", "front "), ("same", "door of a customer.")],
        ),
        ("Opens it.", "Shuts it.", [("removed", "Opens "), ("added", "Shuts "), ("same", "it.")]),
        ("an element", "an element of it", [("same", "an element "), ("added", "of it")]),
        ("two  words", "two words", [("removed", "two  words"), ("added", "two words")]),
    ],
)
def test_the_changed_words_stand_between_the_equal_ones(before, after, pieces):
    assert diff_words(before, after) == pieces


texts = st.text("ab <&.\n", max_size=40)


@given(before=texts, after=texts)
def test_both_texts_can_be_read_from_the_pieces(before, after):
    pieces = diff_words(before, after)

    for kind, text in (("removed", before), ("added", after)):
        joined = "".join(piece for name, piece in pieces if name in ("same", kind))
        assert "".join(joined.split()) == "".join(text.split())
    assert all(text for _, text in pieces)


@pytest.mark.parametrize("unit", ["a b ", "! ? ", "x"])
def test_texts_that_differ_in_too_many_words_are_shown_one_after_the_other(unit):
    before, after = unit * 100_000, f"{unit[::-1]}-" * 100_000

    pieces = diff_words(before, after)

    assert len(before.split()) ** 2 > MAX_PAIRS or unit == "x"
    assert {kind for kind, _ in pieces} <= {"removed", "added", "same"}
    assert sum(len(text) for _, text in pieces) <= 2 * MAX_CHARACTERS
