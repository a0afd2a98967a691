"""Untrusted files and JSON: an invalid value affects only its record; a text that is not JSON is an
error.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import SourceError
from pegboard.foreign.files import (
    decoded,
    flaw_of,
    parse_json,
    read_bytes,
    read_json,
    read_lines,
)
from pegboard.foreign.limits import MAX_DEPTH, MAX_DIGITS, MAX_RECORD

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


def nested(depth, opening="[", inner="", closing="]"):
    return opening * depth + inner + closing * depth


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ('{"a": 1, "b": {"a": 1}}', None),
        (nested(MAX_DEPTH), None),
        ("9" * MAX_DIGITS, None),
        (json.dumps("x" * (MAX_RECORD - 10)), None),
        ('[{"a": 1, "b": 2, "a": 1}]', "it has the name 'a' twice in one object"),
        (f'{{"a": {"9" * (MAX_DIGITS + 1)}}}', "it has a number of 4,301 digits"),
        (nested(MAX_DEPTH + 2), "it is nested deeper than 200 levels"),
        (nested(100_000), "it has a part nested deeper than 200 levels"),
        (nested(100_000, '{"a":', "1", "}"), "it has a part nested deeper than 200 levels"),
        (json.dumps("x" * MAX_RECORD), "it has more than 4,000,000 characters"),
        (json.dumps([0] * MAX_RECORD), "it has more than 4,000,000 characters"),
    ],
)
def test_an_unreadable_value_leaves_the_others_readable(text, flaw):
    good, value = parse_json(f'[{{"name": "good [\\"{{"}}, {text}]', "it")

    assert good == {"name": 'good ["{'}
    assert (flaw_of(value) or "none").startswith(flaw or "none")


def test_a_value_that_is_referred_to_several_times_counts_each_time():
    shared = ["x" * 100_000]

    assert flaw_of(shared) is None
    assert "4,000,000 characters" in flaw_of([shared] * 50)


@given(JSON)
def test_json_survives_a_round_trip(value):
    assert parse_json(json.dumps(value), "it") == value


def test_a_file_is_read_up_to_its_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)

    assert len(read_bytes(tmp_path / "file", 3_000_000)) == 3_000_000
    with pytest.raises(SourceError, match=r"more than 2,999,999 bytes.*`max_bytes`"):
        read_bytes(tmp_path / "file", 2_999_999)


TEXT = '{"name": "größe 城市 😀"}'
ENCODINGS = {
    "utf-8": TEXT.encode(),
    "utf-8 with a mark": TEXT.encode("utf-8-sig"),
    "utf-16 of Windows": b"\xff\xfe" + TEXT.encode("utf-16-le"),
    "utf-16, the other order": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-16 without a mark": TEXT.encode("utf-16-le"),
    "utf-32": TEXT.encode("utf-32"),
}


@pytest.mark.parametrize("content", ENCODINGS.values(), ids=ENCODINGS)
def test_unicode_is_read_in_any_of_its_encodings(tmp_path, content):
    (tmp_path / "file").write_bytes(content)

    assert decoded(content, "it") == TEXT
    assert read_json(tmp_path / "file") == json.loads(TEXT)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_lines_are_counted_in_any_encoding(tmp_path, encoding):
    (tmp_path / "file").write_bytes(f"{TEXT}\n\n{TEXT}\r\n".encode(encoding))

    assert list(read_lines(tmp_path / "file")) == [(1, TEXT), (3, f"{TEXT}\r")]


def test_half_a_character_of_utf_16_is_an_error_with_its_place():
    with pytest.raises(SourceError, match=r"it begins like UTF-16, but is not at byte 4: trunc"):
        decoded(b"\xff\xfe{\x00}", "it")


def test_an_invalid_character_of_utf_16_marks_its_text_as_invalid():
    assert decoded(b"\xff\xfe\x00\xd8a\x00", "it") == "\ud800a"
