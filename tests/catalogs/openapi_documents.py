"""OpenAPI documents of several tests, and a walk over their values."""

import json
from pathlib import Path

TREE = json.loads((Path(__file__).parent / "specimens" / "tree.json").read_text())
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


def places(value, path=()):
    """Yield every value inside a value, with its place."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key), item
            yield from places(item, (*path, key))
