"""Files of function declarations in the formats of LLM APIs."""

import json
from pathlib import Path

import pytest

SPECIMENS = Path(__file__).parent / "specimens"


@pytest.fixture
def functions(listed, tmp_path):
    """A function that lists the declarations of one JSON file."""

    def listing_of(value):
        (tmp_path / "f.json").write_text(json.dumps(value))
        return listed("functions", path="f.json")

    return listing_of


def function(name, /, **given):
    parameters = {"type": "object", "properties": {}}
    return {"type": "function", "name": name, "parameters": parameters, **given}


def test_one_file_may_mix_all_known_formats_and_others_are_rejected_with_their_keys(listed):
    listing = listed("functions", SPECIMENS, path="functions.json")

    tools = {tool.name: tool for tool in listing.tools}
    assert list(tools) == [
        "book_room", "crooked", "draw", "get_weather", "legacy", "ping", "search_docs", "send_mail",
    ]  # fmt: skip
    assert tools["book_room"].description == "Book a room."
    assert tools["send_mail"].input_schema["properties"] == {
        "to": {"type": "string", "format": "email"}
    }
    assert tools["get_weather"].input_schema["required"] == ["place"]
    assert tools["get_weather"].annotations == {"strict": True}
    assert tools["search_docs"].annotations == {"cache_control": {"type": "ephemeral"}}
    assert tools["draw"].input_schema["properties"] == {"OBJECT": {"const": "OBJECT"}}
    assert tools["ping"].input_schema == {"type": "object", "properties": {}}
    assert [row.where for row in listing.rejected] == [
        f"functions.json[{index}]" for index in (6, 7, 8, 10, 11)
    ]
    for row, why in zip(
        listing.rejected,
        [
            "the keys ['name', 'type']",
            "the keys ['title']. Known formats:",
            "no name",
            "another tool",
            "it has str",
        ],
        strict=True,
    ):
        assert why in row.why
    (repair,) = listing.notices
    assert (repair.where, repair.kind) == ("functions.json[9]", "repaired")


def test_gemini_schemas_are_converted_to_json_schema(listed):
    listing = listed("functions", SPECIMENS, path="functions.json")
    tool = next(tool for tool in listing.tools if tool.name == "book_room")

    assert tool.input_schema == {
        "type": "object",
        "required": ["guests"],
        "properties": {
            "guests": {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}},
            "when": {"type": "string", "format": "date-time", "examples": ["2024-01-01T10:00:00Z"]},
            "type": {"anyOf": [{"type": "integer"}, {}]},
        },
    }
    assert tool.output_schema["properties"] == {
        "result": {"type": "array", "items": {"type": "string"}}
    }


@pytest.mark.parametrize(
    "value",
    [
        function("one"),
        [function("one")],
        {"tools": [function("one")]},
        {"functions": [{"name": "one", "parameters": {"type": "OBJECT"}}]},
        {"tools": [{"functionDeclarations": [{"name": "one"}]}]},
        {"type": "function", "function": {"name": "one"}},
        {"name": "one", "parameters": {"type": "object", "properties": {}}, "tools": None},
    ],
)
def test_a_file_may_be_a_list_one_object_or_an_object_of_tools(functions, value):
    listing = functions(value)

    assert [tool.name for tool in listing.tools] == ["one"]
    assert listing.rejected == ()


def test_only_the_invalid_line_of_a_jsonl_file_is_rejected(listed, tmp_path):
    lines = [json.dumps(function(f"f{n}")).encode() for n in range(5)]
    lines[1] = b'{"name": '
    lines[3] = b'{"name": "caf\xe9", "input_schema": {}}'
    lines.append(b'{"name":%s}' % (b"[" * 100_000 + b"]" * 100_000))
    (tmp_path / "f.jsonl").write_bytes(b"\n\n".join(lines))

    listing = listed("functions", path="f.jsonl")

    assert [tool.name for tool in listing.tools] == ["f0", "f2", "f4"]
    assert [row.where for row in listing.rejected] == [f"f.jsonl line {n}" for n in (3, 7, 11)]
    for row, why in zip(listing.rejected, ["not JSON", "UTF-8", "nested deeper"], strict=True):
        assert why in row.why


def test_all_files_of_a_catalog_belong_to_one_agent(listed, tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps([function(name)]))

    listing = listed("functions", path="*.json", agent="helper")

    assert [tool.id for tool in listing.tools] == ["kit/helper/a", "kit/helper/b"]
    assert [(agent.name, agent.kind, agent.source) for agent in listing.agents] == [
        ("helper", "library", "*.json")
    ]
