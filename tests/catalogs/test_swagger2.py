"""Swagger 2.0 documents, converted."""

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


def test_without_a_host_the_address_counts_from_the_document(listed_document):
    without_host = {name: value for name, value in STORE.items() if name != "host"}

    tools = listed_document(without_host).tools

    assert {tool.annotations["baseUrl"] for tool in tools} == {"/v2"}
