"""Swagger 2.0 documents, converted."""

import pytest

from catalogs.openapi import swagger2
from tests.catalogs.openapi_documents import STORE


def test_an_operation_has_the_arguments_body_output_and_address_of_its_openapi_3_form(
    listed_document,
):
    listing = listed_document(STORE)
    tools = {tool.name: tool for tool in listing.tools}

    add, replace, photo = tools["addPet"], tools["replacePets"], tools["addPhoto"]
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
    assert [(row.where, "which is no path parameter" in row.why) for row in listing.rejected] == [
        ("api.json GET /bad/{id}", True)
    ]


@pytest.mark.parametrize(
    ("members", "url"),
    [
        ({"host": "a.example", "basePath": "/v1", "schemes": ["https", "http"]}, "https"),
        ({"host": "a.example", "basePath": "/v1", "schemes": ["ws", "http"]}, "http"),
        ({"host": "a.example", "basePath": "/v1"}, ""),
        ({"basePath": "/v1"}, None),
        ({"host": 7, "basePath": None, "schemes": "https"}, []),
    ],
)
def test_the_base_url_is_put_together(members, url):
    servers = swagger2.base_urls(members, {})

    if isinstance(url, str):
        scheme = f"{url}:" if url else ""
        assert servers == [{"url": f"{scheme}//a.example/v1"}]
    else:
        assert servers == ([{"url": "/v1"}] if url is None else [])
