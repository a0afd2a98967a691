"""Hits as an API call takes them."""

import json
from dataclasses import replace

import pytest

import pegboard
from pegboard import Agent, Hit, Tool
from pegboard.records import Enrichment

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


def hit(name, agent="git", schema=None, **given):
    owner = Agent(f"kit/{agent}", "kit", agent)
    tool = Tool(
        f"kit/{agent}/{name}", "kit", owner.id, name, "What it does.", schema or {}, **given
    )
    return Hit(tool, owner, 0.5, {"text": {"rank": 1, "score": 0.5, "part": "document"}})


def test_each_api_takes_its_own_shape():
    named = {"name": "create_issue", "description": "What it does."}
    output = {"type": "object"}
    annotations = {"readOnlyHint": True}
    tool = hit("create_issue", schema=SCHEMA, output_schema=output, annotations=annotations)
    plain = hit("create_issue", schema=SCHEMA)

    assert pegboard.as_openai_tools([tool]) == [
        {"type": "function", "function": {**named, "parameters": SCHEMA}}
    ]
    assert pegboard.as_responses_tools([tool]) == [
        {"type": "function", **named, "parameters": SCHEMA, "strict": False}
    ]
    assert pegboard.as_anthropic_tools([tool]) == [{**named, "input_schema": SCHEMA}]
    assert pegboard.as_mcp_tools([tool]) == [
        {**named, "inputSchema": SCHEMA, "outputSchema": output, "annotations": annotations}
    ]
    assert pegboard.as_mcp_tools([plain]) == [{**named, "inputSchema": SCHEMA}]


SHAPES = pytest.mark.parametrize(
    ("shape", "schema"),
    [
        (pegboard.as_openai_tools, "parameters"),
        (pegboard.as_responses_tools, "parameters"),
        (pegboard.as_anthropic_tools, "input_schema"),
        (pegboard.as_mcp_tools, "inputSchema"),
    ],
)


@SHAPES
def test_every_schema_is_an_object_with_properties(shape, schema):
    given = [
        {},
        {"type": "object"},
        {"properties": {"a": {}}},
        {"description": "no type", "$defs": {}},
        SCHEMA,
    ]
    tools = shape([hit(f"tool{number}", schema=value) for number, value in enumerate(given)])

    for tool, value in zip(tools, given, strict=True):
        shown = tool.get("function", tool)[schema]
        assert shown["type"] == "object"
        assert isinstance(shown["properties"], dict)
        assert shown.items() >= value.items()
    assert json.loads(json.dumps(tools)) == tools
    assert shape([]) == []


WRITTEN = Enrichment(description="Reports a bug.", avoid="To ask something use start_discussion.")


@SHAPES
def test_a_model_is_shown_the_catalogs_description_or_the_written_one(shape, schema):
    hits = [
        hit("create_issue", enrichment=WRITTEN),
        hit("list", enrichment=replace(WRITTEN, avoid="")),
        hit("close", enrichment=replace(WRITTEN, description="")),
        hit("topics", enrichment=Enrichment(topics=("bugs",))),
        hit("plain"),
    ]

    def descriptions(**options):
        return [tool.get("function", tool)["description"] for tool in shape(hits, **options)]

    assert descriptions(descriptions="written") == [
        "Reports a bug. To ask something use start_discussion.",
        "Reports a bug.",
        "What it does. To ask something use start_discussion.",
        "What it does.",
        "What it does.",
    ]
    assert descriptions() == descriptions(descriptions="catalog") == ["What it does."] * 5


def test_a_hit_becomes_json_values():
    record = hit("create_issue", schema=SCHEMA, tags=("a", "b")).to_dict()

    assert json.loads(json.dumps(record)) == record
    assert record == {
        "id": "kit/git/create_issue",
        "name": "create_issue",
        "agent": "kit/git",
        "score": 0.5,
        "description": "What it does.",
        "kind": "library",
        "tags": ["a", "b"],
        "input_schema": SCHEMA,
        "why": {"text": {"rank": 1, "score": 0.5, "part": "document"}},
    }
    enrichment = replace(WRITTEN, topics=("bugs",))
    more = hit("create_issue", schema=SCHEMA, flags=("secret",), enrichment=enrichment).to_dict()
    assert {name: more[name] for name in more.keys() - record.keys()} == {
        "flags": ["secret"],
        "enrichment": {
            "description": "Reports a bug.",
            "avoid": "To ask something use start_discussion.",
            "topics": ["bugs"],
        },
    }


FREE = {"free": {"type": "string"}}
FIXED = {"fixed": {"type": "integer"}}


@pytest.mark.parametrize(
    ("given_schema", "properties", "required"),
    [
        ({"properties": FREE, "anyOf": [{"required": ["free"]}]}, FREE, None),
        ({"oneOf": [{"properties": FREE, "required": ["free"]}, {"properties": FIXED}]},
         {**FREE, **FIXED}, None),
        ({"allOf": [{"properties": FREE, "required": ["free"]}], "properties": FIXED},
         {**FREE, **FIXED}, ["free"]),
        ({"$ref": "#/$defs/In", "$defs": {"In": {"properties": FREE, "required": ["free"]}}},
         FREE, ["free"]),
        ({"$ref": "#/$defs/In", "$defs": {"In": {"$ref": "#/$defs/In"}}}, {}, None),
        ({"$ref": "https://example.com/schema.json"}, {}, None),
        ({"type": "array", "items": {}}, {}, None),
        ({"type": ["object", "null"], "properties": FREE, "required": ["free"]}, FREE, ["free"]),
        ({"type": "string", "enum": ["a"], "not": {}, "properties": [], "anyOf": 5}, {}, None),
        ({"allOf": [None, {"allOf": 3, "required": [1, "free"]}], "properties": FREE},
         FREE, ["free"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("shape", "schema"), [(pegboard.as_responses_tools, "parameters"),
                          (pegboard.as_anthropic_tools, "input_schema")]
)  # fmt: skip
def test_a_schema_that_apis_refuse_becomes_an_object_with_all_properties(
    shape, schema, given_schema, properties, required
):
    (shown,) = shape([hit("tool", schema=given_schema)])

    assert shown[schema]["type"] == "object"
    assert shown[schema]["properties"] == properties
    assert shown[schema].get("required") == required
    assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"} & shown[schema].keys()


def test_a_description_is_as_long_as_openai_takes_it_and_whole_elsewhere():
    long = replace(hit("x"), tool=replace(hit("x").tool, description="many words " * 200))
    cut = pegboard.as_openai_tools([long])[0]["function"]["description"]

    assert len(cut) <= 1_024
    assert cut.endswith("words …") or cut.endswith("many …")
    assert pegboard.as_responses_tools([long])[0]["description"] == cut
    assert pegboard.as_anthropic_tools([long])[0]["description"] == "many words " * 200
    assert len(pegboard.as_openai_tools([replace(long, tool=replace(
        long.tool, description="x" * 5_000))])[0]["function"]["description"]) <= 1_024  # fmt: skip


def test_toon_lists_the_arguments_of_each_tool_in_a_table():
    schema = {
        "type": "object",
        "required": ["amount", "lines"],
        "properties": {
            "amount": {"type": "number", "description": "How much, in\ndollars"},
            "to": {"enum": ["EUR", "USD"]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "$defs": {
            "line": {
                "type": "object",
                "required": ["sku"],
                "properties": {"sku": {"type": "string"}, "tags": {"type": "array"}},
            }
        },
    }

    text = pegboard.as_toon([hit("pay", schema=schema), hit("now")])

    assert text == (
        "tools[2]:\n"
        "  - name: pay\n"
        "    description: What it does.\n"
        "    arguments[6]{name,type,description}:\n"
        '      amount,number,"How much, in dollars"\n'
        '      to?,EUR|USD,""\n'
        '      lines,"object[]",""\n'
        '      "lines[].sku",string,""\n'
        '      "lines[].tags?","any[]",""\n'
        '      note?,string|null,""\n'
        "  - name: now\n"
        "    description: What it does."
    )


def test_toon_quotes_every_text_that_could_be_taken_for_structure():
    hostile = [
        "",
        " a",
        "-",
        "true",
        "007",
        "1e6",
        "a: b",
        "a,b",
        '"',
        "x\n  - name: y",
        "\\",
        "\x85",
    ]
    hits = [hit(f"t{number}") for number in range(len(hostile))]
    hits = [
        replace(hit, tool=replace(hit.tool, description=text))
        for hit, text in zip(hits, hostile, strict=True)
    ]

    lines = pegboard.as_toon(hits).split("\n")

    values = [line.partition("description: ")[2] for line in lines if "description: " in line]
    assert len(lines) == 1 + 2 * len(hostile)
    assert [json.loads(value) for value in values[:-1]] == hostile[:-1]
