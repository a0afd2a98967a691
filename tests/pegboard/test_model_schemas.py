"""Schemas as models are given them: valid for every API, with a way back to the tool's names."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.schemas.for_models import (
    model_schema,
    original_arguments,
    output_schema_for_clients,
)
from tests.api_rules import json_schema_problems, refusals

CASES = Path(__file__).parents[3] / "shared" / "cases" / "ingest"
TEXT = {"type": "string"}


def properties(**members):
    return {"type": "object", "properties": members}


def test_a_schema_that_every_api_accepts_stays_as_it_is_to_the_byte():
    schema = {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"$ref": "#/$defs/Id"}},
            "range": {"type": "array", "prefixItems": [{"type": "number"}], "minItems": 1},
            "by": {"anyOf": [TEXT, {"type": "null"}], "default": None},
            "x-y.z": {"type": ["integer", "null"], "minimum": 0, "description": "Größe"},
        },
        "required": ["ids"],
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$defs": {"Id": {"type": "string", "minLength": 1}},
    }

    result = model_schema(schema)

    assert json.dumps(result.schema) == json.dumps(schema)
    assert (result.names, result.changes) == ({}, ())


MENDED = {
    "a list of items": (
        {"type": "array", "items": [TEXT, {"type": "number"}], "additionalItems": False},
        {"type": "array", "prefixItems": [TEXT, {"type": "number"}], "items": False},
    ),
    "an empty list of items": ({"type": "array", "items": []}, {"type": "array", "items": {}}),
    "a list without items": ({"type": "array"}, {"type": "array", "items": {}}),
    "a boolean bound": (
        {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        {"type": "number", "exclusiveMinimum": 0},
    ),
    "a false boolean bound": (
        {"type": "number", "maximum": 9, "exclusiveMaximum": False},
        {"type": "number", "maximum": 9},
    ),
    "dependencies": (
        properties(a=TEXT) | {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        properties(a=TEXT)
        | {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
    ),
    "an id of draft 4": (properties(a=TEXT) | {"id": "urn:x"}, properties(a=TEXT)),
    "true as a schema": (properties(a=True), properties(a={})),
    "PHP's empty object": ({"type": "object", "properties": []}, properties()),
    "null for nothing": (
        {"type": "string", "required": None, "description": None, "minLength": None},
        TEXT,
    ),
    "an empty enum": ({"type": "string", "enum": []}, TEXT),
    "a description that is a number": (
        {"type": "string", "description": 2024},
        {"type": "string", "description": "2024"},
    ),
    "an unknown type": ({"type": "file", "description": "A file"}, {"description": "A file"}),
    "some unknown types": ({"type": ["string", "uuid"]}, {"type": ["string"]}),
    "a repeated required name": (
        properties(a=TEXT) | {"required": ["a", "a", 3]},
        properties(a=TEXT) | {"required": ["a"]},
    ),
    "a required name without a property": (
        properties(a=TEXT) | {"required": ["b"]},
        properties(a=TEXT, b={}) | {"required": ["b"]},
    ),
    "a reference to nothing": ({"$ref": "#/$defs/Gone", "description": "A"}, {"description": "A"}),
    "a reference to another document": ({"$ref": "https://x.example/a.json"}, {}),
    "an example that is no list": (
        {"type": "string", "examples": "a"},
        {"type": "string", "examples": ["a"]},
    ),
    "infinite numbers": ({"type": "number", "maximum": float("inf")}, {"type": "number"}),
}


@pytest.mark.parametrize(("before", "after"), MENDED.values(), ids=list(MENDED))
def test_what_an_api_refuses_is_mended_and_said(before, after):
    result = model_schema(properties(value=before))

    assert result.schema == properties(value=after)
    assert result.changes
    assert refusals(result.schema) == []


def test_old_definitions_become_defs_and_references_follow():
    schema = properties(a={"$ref": "#/definitions/A"}, b={"$ref": "#/definitions/B%20c"}) | {
        "definitions": {"A": {"items": {"$ref": "#/definitions/A"}}, "B c": TEXT}
    }

    result = model_schema(schema).schema

    assert result["properties"]["a"] == {"$ref": "#/$defs/A"}
    assert result["$defs"]["A"] == {"items": {"$ref": "#/$defs/A"}}
    assert result["$defs"][result["properties"]["b"]["$ref"].removeprefix("#/$defs/")] == TEXT
    assert refusals(result) == []


@pytest.mark.parametrize(
    "reference",
    [
        "#/properties/from",
        "#/allOf/0/properties/x",
        "#place",
        "https://x.example/place",
        "#/x/Place",
    ],
)
def test_a_reference_that_leads_elsewhere_than_to_defs_keeps_its_target(reference):
    place = {
        "type": "object",
        "$anchor": "place",
        "$id": "https://x.example/place",
        **properties(c=TEXT),
    }
    schema = properties(**{"from": place, "to": {"$ref": reference}}) | {
        "allOf": [properties(x=place)],
        "$defs": {"Place": place},
    }

    result = model_schema(schema).schema

    name = result["properties"]["to"]["$ref"].removeprefix("#/$defs/")
    assert result["$defs"][name]["properties"] == {"c": TEXT}
    assert refusals(result) == []


def test_a_union_at_the_top_becomes_an_object_that_says_what_belongs_together():
    schema = {
        "description": "How to pay.",
        "oneOf": [
            properties(by={"const": "card"}, number=TEXT) | {"required": ["by", "number"]},
            properties(by={"const": "iban"}, number={"type": "integer"}) | {"required": ["by"]},
        ],
    }

    result = model_schema(schema).schema

    assert result == {
        "type": "object",
        "description": "How to pay. One of these sets of arguments (? is optional): "
        'by="card", number | by="iban", number?',
        "properties": {
            "by": {"enum": ["card", "iban"]},
            "number": {"anyOf": [TEXT, {"type": "integer"}]},
        },
    }
    assert refusals(result) == []


NAMES = {
    "filter[name]": "filter_name",
    "$select": "select",
    "größe": "grosse",
    "été": "ete",
    "xml:lang": "xml_lang",
    "城市": "argument",
    "日期": "argument_2",
    "a" * 70: f"{'a' * 55}_",
}


def test_names_that_an_api_refuses_are_replaced_everywhere_and_lead_back():
    inner = properties(**dict.fromkeys(NAMES, TEXT)) | {"required": list(NAMES)}
    schema = properties(q=inner, rows={"type": "array", "items": {"$ref": "#/$defs/R"}}) | {
        "$defs": {"R": {"anyOf": [inner, {"type": "null"}]}},
        "dependentRequired": {"q": ["rows"]},
    }

    result = model_schema(schema)

    shown = result.schema["properties"]["q"]
    assert refusals(result.schema) == []
    assert list(result.names.values()) == list(NAMES)
    for new, expected in zip(shown["properties"], NAMES.values(), strict=True):
        assert new.startswith(expected)
    assert shown["required"] == list(shown["properties"])
    assert shown["properties"]["filter_name"]["description"] == "filter[name]"
    sent = dict.fromkeys(shown["properties"], "v")
    given = {"q": sent, "rows": [sent, None, 3], "free": sent}
    own = dict.fromkeys(NAMES, "v")
    assert original_arguments(schema, given) == {"q": own, "rows": [own, None, 3], "free": sent}
    assert original_arguments(schema, {"q": own}) == {"q": own}


def test_a_replaced_name_never_takes_the_name_of_another_property():
    schema = properties(**{"filter[a]": TEXT, "filter_a": TEXT, "filter{a}": TEXT})

    result = model_schema(schema)

    assert list(result.schema["properties"]) == ["filter_a_2", "filter_a", "filter_a_3"]
    arguments = {"filter_a": 1, "filter_a_2": 2, "filter_a_3": 3}
    assert original_arguments(schema, arguments) == {"filter_a": 1, "filter[a]": 2, "filter{a}": 3}


def test_an_output_schema_keeps_the_names_that_the_tool_answers_with():
    schema = properties(**{"a[]": {"$ref": "#/definitions/Gone"}, "b": {"type": "array"}})

    result = output_schema_for_clients(schema)

    assert result["properties"] == {"a[]": {}, "b": {"type": "array", "items": {}}}
    assert json_schema_problems(result) == []


def test_nested_schemas_without_an_end_are_cut():
    schema = TEXT
    for _ in range(3_000):
        schema = {"type": "array", "items": schema}

    result = model_schema(properties(a=schema))

    assert "nested" in result.changes[0]
    json.dumps(result.schema)


KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "items", "required", "enum", "const", "anyOf", "oneOf", "allOf"),
        *("not", "if", "then", "$ref", "$recursiveRef", "$defs", "definitions", "id", "$id"),
        *("$anchor", "$schema", "additionalProperties", "additionalItems", "dependencies"),
        *("exclusiveMinimum", "minimum", "maxLength", "minItems", "uniqueItems", "prefixItems"),
        *("title", "description", "examples", "default", "patternProperties", "format"),
    ]
)
ODD = st.sampled_from(
    [
        *(None, True, False, [], {}, "", "object", "array", "str", -1, 1.5, 0),
        *("#", "#/$defs/a", "#/definitions/b", "#/properties/a[0]", "#/oneOf/0", "other.json#/a"),
        *(["a", "b"], ["a", "a"], {"a": {"type": "string"}}, {"a[0]": {"type": "array"}}),
        *([{"type": "string"}], [{"properties": {"ü": True}}], {"a": ["b"]}),
    ]
)
ODD_SCHEMAS = st.recursive(
    ODD,
    lambda parts: (
        st.dictionaries(KEYWORDS, parts, max_size=5)
        | st.dictionaries(st.sampled_from(["a", "b", "a[0]", "ü", "$x"]), parts, max_size=3)
        | st.lists(parts, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.dictionaries(KEYWORDS, ODD_SCHEMAS, min_size=1, max_size=5))
def test_no_schema_of_any_shape_is_refused_or_changed_itself(schema):
    before = copy.deepcopy(schema)

    result = model_schema(schema).schema

    assert refusals(result) == []
    assert repr(schema) == repr(before)
    assert refusals(model_schema(result).schema) == []


def tools_of_cases():
    for file in sorted(CASES.glob("mcp*/*.json")):
        try:
            document = json.loads(file.read_text("utf-8"))
        except UnicodeDecodeError:
            continue
        for tool in document["tools"] if isinstance(document, dict) else ():
            if isinstance(tool.get("inputSchema"), dict):
                yield tool["inputSchema"]


def test_no_tool_of_the_reported_cases_is_refused():
    if not CASES.is_dir():
        pytest.skip(f"the reported cases are not at {CASES}")
    schemas = list(tools_of_cases())

    assert [schema for schema in schemas if model_schema(schema).changes]
    assert [refusals(model_schema(schema).schema) for schema in schemas] == [[]] * len(schemas)
