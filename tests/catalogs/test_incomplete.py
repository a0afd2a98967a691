"""Sources that lack required members, but are unambiguous."""

import json

import pytest

PROPERTIES = {
    "at": {"type": "string", "default": None, "enum": ["x", None]},
    "any": {},
    "default": {"type": "integer"},
}


def document(**members):
    return {"openapi": "3.0.3", "info": {"title": "Test", "version": "1"}, **members}


def nulls(*names):
    return dict.fromkeys(names)


def operation(parameter, schema, responses):
    return {
        "operationId": "make",
        "parameters": [{"name": "q", "in": "query"} | parameter],
        "requestBody": {"content": {"application/json": {"schema": schema}}},
        "responses": responses,
    }


def test_null_members_count_as_absent(listed_document):
    """Serializers write nulls, and a YAML key without a value is null."""
    schema = {"type": "object", "properties": PROPERTIES}
    complete = operation({"schema": {"type": "string"}}, schema, {"200": {"description": "ok"}})
    properties = PROPERTIES | {"any": None, "default": {"type": "integer", **nulls("title")}}
    holed = operation(
        {"schema": {"type": "string", **nulls("format", "enum", "items", "x-order")}}
        | nulls("description", "required", "style", "example"),
        {"type": "object", "properties": properties, **nulls("required", "allOf")},
        {"200": {"content": {"application/json": None}}, "default": None},
    ) | nulls("summary", "description", "tags", "security", "servers", "deprecated")
    path = {"post": holed, **nulls("get", "parameters", "summary")}

    (expected,) = listed_document(document(paths={"/a": {"post": complete}})).tools
    listing = listed_document(
        document(paths={"/a": path}, **nulls("tags", "servers", "components"))
    )

    assert (listing.tools, listing.rejected) == ((expected,), ())
    assert expected.input_schema["properties"] == {"q": {"type": "string"}, **PROPERTIES}


@pytest.mark.parametrize("path", [None, {"get": None}, {"get": None, "put": None, "summary": "x"}])
def test_a_path_whose_operations_are_all_null_is_rejected(listed_document, path):
    listing = listed_document(document(paths={"/a": {"get": {}}, "/b": path}))

    assert [tool.name for tool in listing.tools] == ["get_a"]
    assert [(row.where, row.why.partition(";")[0]) for row in listing.rejected] == [
        ("api.json /b", "its operations are all null")
    ]


@pytest.mark.parametrize(
    ("info", "description"),
    [
        ({"info": {"title": "Messages"}}, "Messages"),
        ({"info": {"title": 3, "version": 2, "description": "Sends."}}, "Sends."),
        ({"info": {"title": "caf\ud800"}}, "caf\ufffd\ufffd\ufffd"),
        ({"info": []}, ""),
        ({}, ""),
    ],
)
def test_a_document_needs_neither_title_nor_version(listed_document, info, description):
    listing = listed_document({"openapi": "3.1.0", "paths": {"/a": {"get": {}}}} | info)

    assert [tool.name for tool in listing.tools] == ["get_a"]
    assert [agent.description for agent in listing.agents] == [description]


@pytest.mark.parametrize("version", ["openapi: 3.0", "openapi: 3.1", "swagger: 2.0"])
def test_a_version_that_yaml_reads_as_a_number_is_accepted(listed_document, version):
    (tool,) = listed_document(f"{version}\npaths: {{/a: {{get:  {{}}}}}}").tools

    assert tool.name == "get_a"


LOOSE = [
    ({"required": ["q", "q"]}, {"required": ["q"]}),
    ({"properties": {"q": {"type": "string", "required": True}}}, {"required": ["q"]}),
    (
        {"properties": {"q": {"type": ["string", "string"]}}},
        {"properties": {"q": {"type": ["string"]}}},
    ),
    ({"properties": {"q": {"type": "str"}}}, {}),
    ({"properties": {"q": {"type": "monetary"}}}, {"properties": {"q": {"x-type": "monetary"}}}),
    ({"properties": {"q": {"type": "string", **nulls("enum")}}, **nulls("required")}, {}),
]


@pytest.mark.parametrize(("written", "expected"), LOOSE)
def test_a_loosely_written_schema_is_mended(listed, listed_document, tmp_path, written, expected):
    sound = {"type": "object", "properties": {"q": {"type": "string"}}}
    tool = {"name": "a", "inputSchema": sound | written, "outputSchema": sound | written}
    (tmp_path / "tools.json").write_text(json.dumps([tool]))
    answer = {"description": "ok", "content": {"application/json": {"schema": sound | written}}}

    (of_server,) = listed("mcp-dump", path="tools.json").tools
    (of_api,) = listed_document(
        document(paths={"/a": {"get": {"responses": {"200": answer}}}})
    ).tools

    assert of_server.input_schema == of_server.output_schema == sound | expected
    assert of_api.output_schema == sound | expected


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_members_with_an_obvious_value_may_be_left_out(listed_document, version):
    number = {"name": "number", "in": "path", "required": False}
    paths = {
        "/a/{number}": {"get": {"operationId": "a", "parameters": [number]}},
        "/b": {"get": {"operationId": "b", "responses": {"200": {"content": {}}}}},
        "/c": {"get": {"operationId": "c", "responses": {}}},
    }

    listing = listed_document(document(paths=paths) | {"openapi": version})

    assert [tool.name for tool in listing.tools] == ["a", "b", "c"]
    assert listing.tools[0].input_schema["required"] == ["number"]
