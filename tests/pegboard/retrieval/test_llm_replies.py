"""Reading replies that should follow a schema, from models that follow it and from others."""

import json

import pytest

from pegboard.retrieval.llm.replies import (
    UnusableReply,
    names_schema,
    read_field_text,
    read_names,
    read_texts,
    text_schema,
    texts_schema,
)

NAMES = ["list_tides", "find_berth", "Convert"]


@pytest.mark.parametrize("schema", [text_schema("x"), texts_schema("x"), names_schema("x", NAMES)])
def test_a_schema_suits_strict_modes(schema):
    assert schema["required"] == list(schema["properties"]) == ["x"]
    assert schema["additionalProperties"] is False
    assert not {"maxItems", "minItems", "maxLength"} & set(json.dumps(schema).split('"'))


@pytest.mark.parametrize(
    "reply",
    [
        '{"steps": ["a b", "c"]}',
        '```json\n{"steps": ["a b", "c"]}\n```',
        'Sure! Here they are:\n{"steps": ["a b", "c"]}\nI hope that helps {you}.',
        '{"steps": ["a b", "c"], "thoughts": "two"}',
        '{"steps": [" a\\n\\tb", "A B", "", "...", "c"]}',
        '{"steps": ["a b", "c\\u200b"]}',
    ],
)
def test_texts_are_read_from_what_models_write_around_them(reply):
    assert read_texts(reply, "steps", 5) == ["a b", "c"]


def test_an_endless_reply_is_bounded():
    endless = "go on and on " * 5_000

    assert len(read_field_text(json.dumps({"query": endless}), "query")) <= 300
    texts = read_texts(json.dumps({"steps": [f"{n} {endless}" for n in range(100)]}), "steps", 5)
    assert [len(text) <= 300 for text in texts] == [True] * 5


def test_only_offered_names_count():
    reply = '{"tools": ["drop_tables", "FIND_berth", "`list_tides`", "list_tides", "list"]}'

    assert names_schema("x", NAMES)["properties"]["x"]["items"]["enum"] == NAMES
    assert read_names(reply, "tools", NAMES) == ["find_berth", "list_tides"]
    assert read_names('{"tools": []}', "tools", NAMES) == []
    with pytest.raises(UnusableReply, match="names only tools that it was not shown"):
        read_names('{"tools": ["drop_tables"]}', "tools", NAMES)
