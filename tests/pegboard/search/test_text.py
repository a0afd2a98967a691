"""Words of a text, as the contract has every reader count them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.search.text import MAX_TOKEN, identifier_words, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("List all files, getRecord_v2", ["list", "all", "file", "get", "record", "v2"]),
        ("the same word, the same", ["the", "same", "word", "the", "same"]),
        (
            "parseHTTPResponse XMLHttpRequest2",
            ["parse", "http", "response", "xml", "http", "request2"],
        ),
        ("users.list-all/v1", ["user", "list", "all", "v1"]),
        ("C++ and 3.14", ["c", "and", "3", "14"]),
        ("Straße ÉTÉ naïve", ["strasse", "été", "naïve"]),
        ("Погода в Москве", ["погода", "в", "москве"]),
        ("καιρός στην Αθήνα", ["καιρόσ", "στην", "αθήνα"]),
        ("ﬁle ①２", ["file", "12"]),
        ("الطقس اليوم", ["الطقس", "اليوم"]),
        ("मौसम की जानकारी", ["मौसम", "की", "जानकारी"]),
        ("天気予報", ["天気", "気予", "予報"]),
        ("東京Tower", ["東京", "tower"]),
        ("ひらがなカタカナ", ["ひら", "らが", "がな", "なカ", "カタ", "タカ", "カナ"]),
        ("날씨", ["날씨"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("雨", ["雨"]),
        ("queries files boxes", ["query", "file", "boxe"]),
        ("status class gas", ["status", "class", "gas"]),
        (unicodedata.normalize("NFD", "Menü für Zoë"), ["menü", "für", "zoë"]),
        ("x" * 1000, ["x" * MAX_TOKEN]),
        *((blank, []) for blank in ("", "   ", "\t\n\u3000", "_", "—!?", "🙂👍", "\u200b", "\x00")),
    ],
)
def test_a_text_gives_its_words_in_order(text, words):
    assert tokenize(text) == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getRecord_v2", "get Record v2"),
        ("users.list-all", "users list all"),
        ("HTTPServer", "HTTP Server"),
        ("__init__", "init"),
        ("天気予報", "天気予報"),
        ("___", ""),
        ("", ""),
    ],
)
def test_a_true_name_becomes_words(name, words):
    assert identifier_words(name) == words


@given(st.text())
def test_words_survive_being_joined_with_blanks_and_split_by_them(text):
    words = tokenize(text)

    assert " ".join(words).split(" ") == (words or [""])
    assert all(0 < len(word) <= MAX_TOKEN for word in words)


@given(st.text(alphabet="abcXYZ019_ -äß東京मौ"))
def test_blanks_around_a_text_change_nothing(text):
    assert tokenize(f"  {text}\n") == tokenize(text)
