"""The check of arguments against schemas of a release, including hostile schemas."""

import pytest

from pegboard.records import Tool
from pegboard.serve.calls.arguments import check_arguments
from pegboard.serve.errors import CallProblem


def doubling(keyword):
    """A schema of 40 definitions, each with two references to the next."""
    both = lambda number: {keyword: [{"$ref": f"#/$defs/d{number}"}] * 2}  # noqa: E731
    defs = {f"d{number}": both(number + 1) for number in range(40)}
    return {**both(0), "$defs": {**defs, "d40": {"type": "object", "required": ["no"]}}}


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"next": value}
    return value


def problem(schema, arguments):
    """The error of the check; "" for none."""
    try:
        check_arguments(Tool("kit/desk/tool", "kit", "kit/desk", "tool", "", schema), arguments)
    except CallProblem as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "arguments",
    [
        *({"text": float("nan")}, {"text": float("inf")}, {"text": {1, 2}}),
        *({"next": nested(100_000)}, {"text": "\ud800"}, {"text": "x", "more\udc00": [1]}),
    ],
    ids=["not a number", "infinity", "a set", "too deep", "half a character", "half in a name"],
)
def test_arguments_that_are_not_json_are_refused(arguments):
    assert "are not JSON, or too deep" in problem({}, arguments)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"$ref": "https://evil.example/schema"},
        {"$ref": "file:///etc/passwd"},
        {"pattern": "(a{1000}){1000}"},
        {"properties": nested(100_000)},
        doubling("anyOf"),
        {"allOf": [{"$ref": "#"}]},
    ],
    ids=["none", "elsewhere", "a file", "a large pattern", "too deep", "anyOf", "itself"],
)
def test_invalid_and_expensive_schemas_check_nothing(schema):
    assert problem(schema, {"text": "x", **nested(60)}) == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ['"text" is a required property']),
        ({"text": 5, "lines": ["one"]}, ['text: 5 is not of type "string"', "lines.0: "]),
        ({"text": "x", "txt": "y", "mode": "b"}, ["'txt' was unexpected", 'mode: "b" is not one']),
        ({"text": "x", "limit": 3}, []),
    ],
)
def test_all_problems_are_listed_and_properties_with_defaults_are_not_required(arguments, expected):
    properties = {
        "text": {"type": "string", "pattern": "(?=no linear time)"},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "mode": {"enum": ["r", "w"]},
        "limit": {"type": "integer", "default": 5},
    }
    schema = {
        "properties": properties,
        "required": ["text", "limit"],
        "additionalProperties": False,
    }

    text = problem(schema, arguments)

    assert [part in text for part in expected] == [True] * len(expected)
    assert ("was not called" in text) == bool(expected)


OPTIONAL = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
PAGE = {"type": "object", "properties": {"size": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "written", "sent"),
    [
        ({"type": "integer"}, "7", 7),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": ["integer", "null"]}, "null", None),
        (OPTIONAL, "7", 7),
        (OPTIONAL, None, None),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        (PAGE, '{"size": "5"}', {"size": 5}),
        ({"type": "string"}, "7", "7"),
        ({"type": ["string", "integer"]}, "7", "7"),
        ({"$ref": "#/$defs/other"}, "7", "7"),
        ({"enum": ["7"]}, "7", "7"),
    ],
)
def test_a_value_with_one_meaning_is_sent_in_the_form_of_the_schema(schema, written, sent):
    tool_schema = {"properties": {"value": schema}, "required": ["value"]}
    tool = Tool("kit/desk/tool", "kit", "kit/desk", "tool", "", tool_schema)

    assert check_arguments(tool, {"value": written}) == {"value": sent}


def test_null_leaves_an_optional_argument_out():
    schema = {
        "properties": {
            "name": {"type": "string"},
            "nickname": {"type": "string"},
            "any": {},
            "page": PAGE,
        },
        "required": ["name"],
    }
    tool = Tool("kit/desk/tool", "kit", "kit/desk", "tool", "", schema)
    arguments = {"name": "Ana", "nickname": None, "any": None, "page": {"size": None}}

    assert check_arguments(tool, arguments) == {"name": "Ana", "any": None, "page": {}}
    assert "name: null is not of type" in problem(schema, {"name": None})


@pytest.mark.parametrize("written", ["seven", "7.5", "[7]", "", "true"])
def test_a_text_that_is_no_value_of_its_schema_is_refused(written):
    assert "is not of type" in problem({"properties": {"n": {"type": "integer"}}}, {"n": written})
