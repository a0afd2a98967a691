"""Tokenization, as the table contract requires it of every reader."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.text.words import (
    LANGUAGES,
    MAX_TOKEN,
    NO_LANGUAGE,
    identifier_words,
    query_words,
    singular_words,
    stop_word_languages,
    stop_words,
    tokenize,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("List all files, getRecord_v2", ["list", "all", "file", "get", "record", "v2"]),
        ("the same word, the same", ["the", "same", "word", "the", "same"]),
        (
            "parseHTTPResponse XMLHttpRequest2",
            ["pars", "http", "respons", "xml", "http", "request2"],
        ),
        ("Straße ÉTÉ naïve", ["strass", "été", "naïv"]),
        ("Погода в Москве", ["погода", "в", "москве"]),
        ("ﬁle ①２", ["file", "12"]),
        ("मौसम की जानकारी", ["मौसम", "की", "जानकारी"]),
        ("天気予報", ["天気", "気予", "予報", *"天気予報"]),
        ("東京Tower", ["東京", "東", "京", "tower"]),
        ("ひらがなカタカナ", ["ひら", "らが", "がな", "なカ", "カタ", "タカ", "カナ"]),
        ("날씨", ["날씨"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("status class gas", ["status", "class", "gas"]),
        (unicodedata.normalize("NFD", "Menü für Zoë"), ["menü", "für", "zoë"]),
        ("x" * 1000, ["x" * MAX_TOKEN]),
        *((blank, []) for blank in ("", "   ", "\t\n\u3000", "_", "—!?", "🙂👍", "\u200b", "\x00")),
    ],
)
def test_a_text_becomes_its_tokens_in_order(text, words):
    assert tokenize(text) == words


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("german", "Straßen und Häuser, get_users", ["strass", "und", "haus", "get", "user"]),
        ("russian", "погода в городах", ["погод", "в", "город"]),
        (NO_LANGUAGE, "queries files", ["queries", "files"]),
    ],
)
def test_words_are_stemmed_in_the_language_of_the_index(language, text, words):
    assert tokenize(text, language) == words


@pytest.mark.parametrize(
    ("language", "request_", "words"),
    [
        ("english", "How do I list the files, the FILES?", ["list", "file"]),
        ("english", "what is it?", ["what", "is", "it"]),
        ("english", "东京的天气", ["东京", "京的", "的天", "天气", *"东京的天气"]),
        ("german", "Wie ist das Wetter in den Städten?", ["wett", "stadt"]),
        (NO_LANGUAGE, "what is the weather", ["what", "is", "the", "weather"]),
        ("english", " ", []),
    ],
)
def test_a_request_is_searched_without_stop_words_unless_it_has_no_others(
    language, request_, words
):
    assert query_words(request_, language) == words


def test_the_languages_are_those_of_snowball():
    from Stemmer import algorithms

    variants = {"porter", "dutch_porter"}
    assert set(LANGUAGES) == {*algorithms(), NO_LANGUAGE} - variants


@pytest.mark.parametrize("language", stop_word_languages())
def test_every_stop_word_is_one_token_of_a_valid_language(language):
    assert language in LANGUAGES
    for word in stop_words(language):
        assert tokenize(word, NO_LANGUAGE) == [word]


def test_words_that_distinguish_tools_are_not_stop_words():
    distinctive = (
        "get show list find make give add set open up down off out all any each not no like"
    )

    assert not stop_words("english") & {*distinctive.split()}


def test_english_plurals_become_singulars_without_an_index():
    assert singular_words("queries getFiles status class gas 天気予報") == [
        *("query", "get", "file", "status", "class", "gas", "天気", "気予", "予報")
    ]


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
def test_an_identifier_becomes_words(name, words):
    assert identifier_words(name) == words


@given(st.text(), st.sampled_from(LANGUAGES))
def test_words_survive_being_joined_with_blanks_and_split_by_them(text, language):
    words = tokenize(text, language)

    assert " ".join(words).split(" ") == (words or [""])
    assert all(0 < len(word) <= MAX_TOKEN for word in words)
