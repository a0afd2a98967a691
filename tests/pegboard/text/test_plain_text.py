"""Descriptions with Markdown, HTML and docstrings as plain sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.text.plain_text import sentences, shortened


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n*** --- ```\n", []),
        ("Opens an\n  issue.", ["Opens an issue."]),
        ("List issues\n\nLists them. Also pulls.", ["List issues", "Lists them.", "Also pulls."]),
        ("Uses e.g. Git, vs. others. Ends", ["Uses e.g. Git, vs. others.", "Ends"]),
        ("Reads 3.5 files. env stays", ["Reads 3.5 files. env stays"]),
        ("返回天气。需要城市。", ["返回天气。", "需要城市。"]),
        ("See [the `docs`](https://a.b/c_(d)), ok.", ["See the docs, ok."]),
        ("See https://a.b/c. Then <http://d.e> go.", ["See.", "Then go."]),
        ("![logo](x.png) A tool", ["logo A tool"]),
        ("<p>Gets <code>x</code>.</p><p>Of a &amp; b</p>", ["Gets x.", "Of a & b"]),
        ("An option of a <select> element", ["An option of a <select> element"]),
        ("a <!-- hidden --> b", ["a b"]),
        ("# Head\n- one\n- two\n1. three", ["Head", "one", "two", "three"]),
        ("> [!NOTE]\n> Mind **this** _word_, ISSUE\\_TEMPLATE and a_b", None),
        ("Before\n```json\n{}\n```\nafter", ["Before", "after"]),
        ("Call ```this``` now", ["Call this now"]),
        ("An unclosed ```\nblock stays", ["An unclosed block stays"]),
        ("Sums.\n\nExamples\n--------\n>>> sum([1])\n", ["Sums.", "Examples"]),
        (".. versionadded:: 1.2\nNew", ["New"]),
        ("Notion | Create a page", ["Notion Create a page"]),
    ],
)
def test_a_description_becomes_plain_sentences(text, expected):
    assert sentences(text) == ([MARKED] if expected is None else expected)


MARKED = "Mind this word, ISSUE_TEMPLATE and a_b"


def test_a_long_first_sentence_is_cut_between_words():
    assert shortened("One.") == "One."
    assert shortened("word " * 100) == ("word " * 60).strip()
    assert shortened("x" * 400) == "x" * 300


@given(st.text(alphabet="ab A.!?`*_[](){}<>/#-|\\&;\n\r\t。"))
def test_sentences_have_words_and_no_line_breaks(text):
    for sentence in sentences(text):
        assert any(map(str.isalnum, sentence))
        assert sentence == " ".join(sentence.split())
