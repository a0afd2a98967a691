"""The words by which parameters and results are compared."""

import pytest

from tasks.dependencies.language import words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getOrders wi-fi\tWi-Fi2", "get order wifi wi fi2"),
        ("orderIds ids repos databases", "order id id repository database"),
        ("statuses addresses aliases movies analysis", "status address alias movie analysis"),
        ("订单 ＡＢ", "订单 ab"),
        (" \n", ""),
    ],
)
def test_words_are_singular_and_written_out(text, words):
    assert " ".join(words_of(text)) == words
