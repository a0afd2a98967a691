import json
from pathlib import Path
from typing import Any

import pytest

from catalogs.functions import source
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.errors import SourceError

SPECIMENS = Path(__file__).parent / "specimens"


def listed(base: Path, path: str, **options: Any) -> Listing:
    builder = ListingBuilder("kit", base)
    source.read(
        builder, source.options.model_validate({"type": "functions", "path": path, **options})
    )
    return builder.build()


def listed_value(base: Path, value: Any) -> Listing:
    (base / "f.json").write_text(json.dumps(value))
    return listed(base, "f.json")


def function(name: str, /, **given: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "parameters": {"type": "object", "properties": {}},
        **given,
    }


def test_all_known_shapes_may_stand_in_one_file() -> None:
    listing = listed(SPECIMENS, "functions.json")

    assert [tool.name for tool in listing.tools] == [
        "book_room", "draw", "get_weather", "legacy", "ping", "search_docs", "send_mail",
    ]  # fmt: skip
    first, middle, last = listing.tools[0], listing.tools[3], listing.tools[-1]
    assert first.description == "Book a room."
    assert middle.description == "From before tools."
    assert last.input_schema["properties"] == {"to": {"type": "string", "format": "email"}}
    assert listing.tools[2].input_schema["required"] == ["place"]
    assert listing.tools[2].annotations == {"strict": True}
    assert listing.tools[5].annotations == {"cache_control": {"type": "ephemeral"}}
    assert listing.tools[5].input_schema["properties"] == {"query": {"type": "string"}}


def test_the_schemas_of_gemini_become_json_schema() -> None:
    tools = {tool.name: tool for tool in listed(SPECIMENS, "functions.json").tools}

    assert tools["book_room"].input_schema == {
        "type": "object",
        "required": ["guests"],
        "properties": {
            "guests": {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}},
            "when": {"type": "string", "format": "date-time", "examples": ["2024-01-01T10:00:00Z"]},
            "type": {"anyOf": [{"type": "integer"}, {}]},
        },
    }
    output = tools["book_room"].output_schema
    assert output is not None
    assert output["properties"] == {"result": {"type": "array", "items": {"type": "string"}}}
    assert tools["draw"].input_schema["properties"] == {
        "OBJECT": {"const": "OBJECT"}
    }  # JSON Schema already
    assert tools["ping"].input_schema == {"type": "object", "properties": {}}


def test_what_is_of_no_known_shape_is_rejected_with_its_keys() -> None:
    rejected = listed(SPECIMENS, "functions.json").rejected

    assert [row.where for row in rejected] == [
        f"functions.json[{index}]" for index in (6, 7, 8, 9, 10, 11)
    ]
    assert "the keys ['name', 'type']" in rejected[0].why
    assert "the keys ['title']" in rejected[1].why
    assert "Anthropic's" in rejected[1].why
    assert "no name" in rejected[2].why
    assert "not valid JSON Schema" in rejected[3].why
    assert "another tool" in rejected[4].why
    assert "it has str" in rejected[5].why


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
def test_a_file_may_be_a_list_one_object_or_an_object_of_tools(tmp_path: Path, value: Any) -> None:
    listing = listed_value(tmp_path, value)

    assert [tool.name for tool in listing.tools] == ["one"]
    assert listing.rejected == ()


def test_a_broken_line_of_jsonl_leaves_the_others_alone(tmp_path: Path) -> None:
    lines = [json.dumps(function(f"f{n}")).encode() for n in range(5)]
    lines[1] = b'{"name": '
    lines[3] = b'{"name": "caf\xe9", "input_schema": {}}'
    lines.append(b'{"name":' + b"[" * 100_000)
    (tmp_path / "f.jsonl").write_bytes(b"\n\n".join(lines))

    listing = listed(tmp_path, "f.jsonl")

    assert [tool.name for tool in listing.tools] == ["f0", "f2", "f4"]
    assert [row.where for row in listing.rejected] == [
        "f.jsonl line 3",
        "f.jsonl line 7",
        "f.jsonl line 11",
    ]
    assert "not JSON" in listing.rejected[0].why
    assert "UTF-8" in listing.rejected[1].why
    assert "nested too deeply" in listing.rejected[2].why


def test_many_files_belong_to_one_agent(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps([function(name)]))

    listing = listed(tmp_path, "*.json", agent="helper")

    assert [tool.id for tool in listing.tools] == ["kit/helper/a", "kit/helper/b"]
    assert [(agent.name, agent.kind, agent.source) for agent in listing.agents] == [
        ("helper", "library", "*.json")
    ]


def test_a_file_that_is_no_json_fails_so_that_the_last_good_listing_stays(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([function("a")]))
    (tmp_path / "b.json").write_text("[{]")
    with pytest.raises(SourceError, match=r"b\.json is not JSON"):
        listed(tmp_path, "*.json")


def test_a_huge_description_is_rejected(tmp_path: Path) -> None:
    listing = listed_value(
        tmp_path, [function("big", description="x" * 10_000_000), function("small")]
    )

    assert [tool.name for tool in listing.tools] == ["small"]
    assert "10,000,000 characters" in listing.rejected[0].why


def test_the_order_of_keys_does_not_change_a_digest(tmp_path: Path) -> None:
    given = function(
        "one",
        description="d",
        parameters={"type": "object", "properties": {"a": {"type": "string"}, "b": {}}},
    )
    turned = dict(reversed(given.items()))
    turned["parameters"] = {"properties": {"b": {}, "a": {"type": "string"}}, "type": "object"}

    digests = {listed_value(tmp_path, value).tools[0].digest for value in (given, turned)}

    assert len(digests) == 1


@pytest.mark.parametrize(
    "key",
    ["name", "description", "parameters", "input_schema", "function", "tools", "cache_control"],
)
@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], [1], {}, {"type": "OBJECT", "properties": [1]}, float("nan")]
)
def test_junk_under_any_key_is_kept_or_rejected_and_never_a_crash(
    tmp_path: Path, key: str, junk: Any
) -> None:
    listing = listed_value(
        tmp_path,
        [
            function("one", **{key: junk}),
            {"functionDeclarations": [function("two", **{key: junk})]},
        ],
    )

    assert len(listing.tools) + len(listing.rejected) <= 4
