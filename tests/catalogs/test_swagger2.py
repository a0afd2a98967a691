"""Swagger 2.0 documents, converted."""

import copy
from functools import reduce
from operator import getitem

import pytest

from pegboard.errors import SourceError
from tests.catalogs.conftest import places

PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "description": "Its name."},
        "parent": {"$ref": "#/definitions/Pet"},
    },
}
STORE = {
    "swagger": "2.0",
    "info": {"title": "Pet Store", "version": "1"},
    "host": "pets.example",
    "basePath": "/v2/",
    "schemes": ["http", "https"],
    "consumes": ["application/json"],
    "produces": ["application/json", "application/xml"],
    "securityDefinitions": {"login": {"type": "basic"}},
    "security": [{"login": []}],
    "parameters": {
        "Id": {"name": "id", "in": "path", "required": True, "type": "integer", "minimum": 1}
    },
    "responses": {"Pet": {"description": "A pet.", "schema": {"$ref": "#/definitions/Pet"}}},
    "definitions": {"Pet": PET},
    "paths": {
        "/pets": {
            "post": {
                "operationId": "addPet",
                "parameters": [
                    {
                        "name": "pet",
                        "in": "body",
                        "required": True,
                        "schema": {"$ref": "#/definitions/Pet"},
                    }
                ],
                "responses": {"200": {"$ref": "#/responses/Pet"}},
            },
            "put": {
                "operationId": "replacePets",
                "parameters": [
                    {"name": "pets", "in": "body", "schema": {"type": "array", "items": PET}}
                ],
                "responses": {"204": {"description": "Done."}},
            },
        },
        "/pets/{id}/photo": {
            "parameters": [{"$ref": "#/parameters/Id"}],
            "post": {
                "operationId": "addPhoto",
                "consumes": ["multipart/form-data"],
                "security": [],
                "parameters": [
                    {"name": "file", "in": "formData", "required": True, "type": "file"},
                    {
                        "name": "tags",
                        "in": "formData",
                        "description": "Words.",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "csv",
                    },
                ],
                "responses": {"200": {"description": "It.", "schema": {"type": "file"}}},
            },
        },
        "/bad/{id}": {"get": {"responses": {"200": {"description": "Never."}}}},
    },
}


def test_a_swagger_2_operation_is_listed_like_its_openapi_3_equivalent(
    listed_document,
):
    listing = listed_document(STORE)
    tools = {tool.name: tool for tool in listing.tools}

    add = tools["addPet"]
    replace = tools["replacePets"]
    photo = tools["addPhoto"]
    assert list(add.input_schema["properties"]) == ["name", "parent"]
    assert add.input_schema["required"] == ["name"]
    assert add.input_schema["$defs"]["Pet"]["properties"]["parent"] == {"$ref": "#/$defs/Pet"}
    assert "name" in add.output_schema["properties"]
    assert add.annotations == {
        "method": "POST",
        "path": "/pets",
        "baseUrl": "https://pets.example/v2",
        "security": [{"name": "login", "type": "basic"}],
        "locations": {"name": "body", "parent": "body"},
        "contentType": "application/json",
    }
    assert replace.annotations["locations"] == {"pets": "requestBody"}
    assert photo.input_schema == {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "file": {"type": "string", "format": "binary"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Words."},
        },
        "required": ["file", "id"],
    }
    assert photo.annotations["contentType"] == "multipart/form-data"
    assert photo.output_schema is None
    assert "security" not in photo.annotations
    assert [(row.where, "which it does not declare" in row.why) for row in listing.notices] == [
        ("api.json GET /bad/{id}", True)
    ]


def test_without_a_host_the_base_url_is_relative_to_the_document(listed_document):
    without_host = {name: value for name, value in STORE.items() if name != "host"}

    tools = listed_document(without_host).tools

    assert {tool.annotations["baseUrl"] for tool in tools} == {"/v2"}


@pytest.mark.parametrize("junk", [None, [[]], "\ud800", {"$ref": "#/no"}])
def test_a_damaged_document_is_a_source_error_or_loses_only_the_damaged_parts(
    listed_document, junk
):
    for path, _ in places(STORE):
        damaged = copy.deepcopy(STORE)
        damaged["paths"]["/fine"] = {"get": {"responses": {"200": {"description": "ok"}}}}
        reduce(getitem, path[:-1], damaged)[path[-1]] = junk
        try:
            names = {tool.name for tool in listed_document(damaged).tools}
        except SourceError:
            names = set()
        # Only the head of a document is needed by all operations.
        assert "get_fine" in names or path[0] == "swagger" or path == ("paths",), path


def test_flags_as_text_and_x_nullable_are_read(listed_document):
    text = {"type": "string", "x-nullable": True}
    note = {"name": "body", "in": "body", "schema": {"properties": {"text": text}}}
    file = {"name": "one", "in": "formData", "type": "file", "required": "true"}
    paths = {
        "/note": {"put": {"operationId": "note", "parameters": [note]}},
        "/file": {"post": {"operationId": "file", "parameters": [file]}},
    }

    listing = listed_document({"swagger": "2.0", "paths": paths})

    tools = {tool.name: tool.input_schema for tool in listing.tools}
    assert tools["note"]["properties"] == {"text": {"type": ["string", "null"]}}
    assert tools["file"]["required"] == ["one"]
