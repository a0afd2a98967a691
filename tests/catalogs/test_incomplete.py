"""Sources that lack what their format demands, and are plain all the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalogs.shared.listing import Listing

Documents = Callable[[Any], Listing]
PROPERTIES = {
    "at": {"type": "string", "default": None, "enum": ["x", None]},
    "any": {},
    "default": {"type": "integer"},
}


def document(**members: Any) -> dict[str, Any]:
    return {"openapi": "3.0.3", "info": {"title": "Test", "version": "1"}, **members}


def nulls(*names: str) -> dict[str, None]:
    return dict.fromkeys(names)


def operation(parameter: Any, schema: Any, responses: Any) -> dict[str, Any]:
    return {
        "operationId": "make",
        "parameters": [{"name": "q", "in": "query"} | parameter],
        "requestBody": {"content": {"application/json": {"schema": schema}}},
        "responses": responses,
    }


def test_a_member_that_is_null_counts_as_absent(listed_document: Documents) -> None:
    """As serialisers write it, and YAML whose key has no value."""
    schema: dict[str, Any] = {"type": "object", "properties": PROPERTIES}
    whole = operation({"schema": {"type": "string"}}, schema, {"200": {"description": "ok"}})
    properties = PROPERTIES | {"any": None, "default": {"type": "integer", **nulls("title")}}
    holed = operation(
        {"schema": {"type": "string", **nulls("format", "enum", "items", "x-order")}}
        | nulls("description", "required", "style", "example"),
        {"type": "object", "properties": properties, **nulls("required", "allOf")},
        {"200": {"content": {"application/json": None}}, "default": None},
    ) | nulls("summary", "description", "tags", "security", "servers", "deprecated")
    path = {"post": holed, **nulls("get", "parameters", "summary")}

    (expected,) = listed_document(document(paths={"/a": {"post": whole}})).tools
    listing = listed_document(
        document(paths={"/a": path, "/b": None}, **nulls("tags", "servers", "components"))
    )

    assert (listing.tools, listing.rejected) == ((expected,), ())
    assert expected.input_schema["properties"] == {"q": {"type": "string"}, **PROPERTIES}


@pytest.mark.parametrize("kind", ["mcp-dump", "functions"])
def test_a_null_in_a_schema_counts_as_absent(
    listed: Callable[..., Listing], tmp_path: Path, kind: str
) -> None:
    sound = {"type": "object", "properties": {"q": {"type": "string"}, "any": {}}}
    properties = {"q": {"type": "string", **nulls("description", "enum")}, "any": None}
    holed = sound | {"properties": properties, **nulls("required", "$defs")}
    key = {"mcp-dump": "inputSchema", "functions": "input_schema"}[kind]
    tools = [{"name": "a", key: holed}, {"name": "b", key: {"type": "object", "required": [None]}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools))

    listing = listed(kind, path="tools.json")

    assert [(tool.name, tool.input_schema) for tool in listing.tools] == [("a", sound)]
    assert "not of type" in listing.rejected[0].why


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_what_goes_without_saying_may_be_left_out(listed_document: Documents, version: str) -> None:
    number = {"name": "number", "in": "path", "required": False}
    paths: dict[str, Any] = {
        "/a/{number}": {"get": {"operationId": "a", "parameters": [number]}},
        "/b": {"get": {"operationId": "b", "responses": {"200": {"content": {}}}}},
        "/c": {"get": {"operationId": "c", "responses": {}}},
    }

    listing = listed_document(document(paths=paths) | {"openapi": version})

    assert [tool.name for tool in listing.tools] == ["a", "b", "c"]
    assert listing.tools[0].input_schema["required"] == ["number"]
