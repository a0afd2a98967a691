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
