"""Subtypes of a schema with a discriminator: an agent sees all their fields, and which value of the
discriminator stands for which of them.
"""

import json
from pathlib import Path

import jsonschema_rs
import pytest

CASES = Path(__file__).parents[3] / "shared" / "cases" / "ingest"


@pytest.fixture
def reported(listed):
    """A function that lists a document from a public report."""
    if not CASES.is_dir():
        pytest.skip("the inputs from public reports are not here")
    return lambda path: schemas(listed("openapi", CASES, path=path))


def schemas(listing):
    """Return the input schemas of a listing without losses, by tool."""
    assert not listing.rejected
    return {tool.name: tool.input_schema for tool in listing.tools}


def link(name):
    return {"$ref": f"#/components/schemas/{name}"}


def subtype(base, **properties):
    return {"allOf": [link(base), {"properties": properties}]}


def document(body, **components):
    content = {"application/json": {"schema": body}}
    answer = {"200": {"content": content}}
    operation = {"operationId": "put", "requestBody": {"content": content, "required": True}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "T"},
        "paths": {"/a": {"put": operation | {"responses": answer}}},
        "components": {"schemas": components},
    }


TEXT = {"type": "string"}
PET = {
    "type": "object",
    "required": ["kind"],
    "properties": {"kind": TEXT | {"description": "What it is."}, "name": TEXT},
    "discriminator": {"propertyName": "kind"},
}
CAT = subtype("Pet", purr=TEXT)
DOG = subtype("Pet", bark=TEXT)


@pytest.fixture
def input_of(listed_document):
    """A function that lists a document with one operation, and returns its input schema."""
    return lambda *args, **components: schemas(listed_document(document(*args, **components)))[
        "put"
    ]


def accepts(schema, value):
    return jsonschema_rs.is_valid(schema, value)


def test_a_body_has_the_fields_of_all_subtypes_by_their_values(reported):
    schema = reported("oa/o5.yaml")["registerAnimal"]

    assert set(schema["properties"]) == {"species", "purrLevel", "barkCount"}
    species = schema["properties"]["species"]
    assert species["enum"] == ["feline", "canine"]
    assert species["description"] == "Arguments by value: feline: purrLevel; canine: barkCount."
    assert schema["required"] == ["species"]


def test_a_property_is_any_of_the_subtypes_with_its_value(reported):
    schema = reported("oa/o5.yaml")["bookVisit"]

    assert accepts(schema, {"animal": {"species": "feline", "purrLevel": 3}})
    assert not accepts(schema, {"animal": {"species": "feline", "purrLevel": "loud"}})
    assert not accepts(schema, {"animal": {"species": "fish"}})
    values = [
        part["properties"]["species"]["enum"] for part in schema["properties"]["animal"]["oneOf"]
    ]
    assert values == [["feline"], ["canine"]]


def test_alternatives_with_a_mapping_have_its_values(reported):
    schema = reported("oa/o5.yaml")["transfer"]

    assert accepts(schema, {"target": {"kind": "e-wallet", "handle": "me"}})
    assert not accepts(schema, {"target": {"kind": "Wallet", "handle": "me"}})


def test_a_subtype_of_swagger_2_has_the_value_that_it_states(reported):
    properties = reported("oa2/disc2.json")["putJob"]["properties"]

    assert set(properties) == {"jobType", "source", "sink"}
    assert properties["jobType"]["enum"] == ["Copy"]


def test_subtypes_without_a_mapping_have_their_names_as_values(input_of):
    schema = input_of(link("Pet"), Pet=PET, Cat=CAT, Dog=DOG)

    assert set(schema["properties"]) == {"kind", "name", "purr", "bark"}
    assert schema["properties"]["kind"] == TEXT | {
        "enum": ["Cat", "Dog"],
        "description": "What it is. Arguments by value: Cat: purr; Dog: bark.",
    }


def test_a_mapping_may_have_names_several_values_and_targets_that_are_missing(input_of):
    mapping = {"cat": "Cat", "tom": "#/components/schemas/Cat", "fish": "#/nowhere", "x": 7}
    pet = PET | {"discriminator": {"propertyName": "kind", "mapping": mapping}}

    schema = input_of({"properties": {"pet": link("Pet")}}, Pet=pet, Cat=CAT)

    (part,) = schema["properties"]["pet"]["oneOf"]
    assert part["properties"]["kind"]["enum"] == ["cat", "tom"]


def test_subtypes_of_subtypes_are_shown_and_abstract_ones_are_not(input_of):
    mapping = {"tiger": "#/components/schemas/Tiger", "dog": "#/components/schemas/Dog"}
    pet = PET | {"discriminator": {"propertyName": "kind", "mapping": mapping}}

    schema = input_of(link("Pet"), Pet=pet, Cat=CAT, Dog=DOG, Tiger=subtype("Cat", stripes=TEXT))

    assert schema["properties"]["kind"]["enum"] == ["tiger", "dog"]
    assert set(schema["properties"]) == {"kind", "name", "purr", "bark", "stripes"}


def test_a_base_wrapped_for_its_description_means_its_subtypes(input_of):
    wrapped = {"allOf": [link("Pet")], "description": "Who comes along"}

    schema = input_of({"properties": {"pet": wrapped}}, Pet=PET, Cat=CAT, Dog=DOG)

    assert accepts(schema, {"pet": {"kind": "Cat", "purr": "yes"}})
    assert not accepts(schema, {"pet": {"kind": "Cat", "purr": 1}})


def test_a_reference_to_one_subtype_means_that_one_alone(input_of):
    schema = input_of({"properties": {"cat": link("Cat")}}, Pet=PET, Cat=CAT, Dog=DOG)

    assert "oneOf" not in json.dumps(schema)
    assert "bark" not in json.dumps(schema)


def test_subtypes_that_refer_to_their_base_end(input_of):
    cat = subtype("Pet", friends={"type": "array", "items": link("Pet")})

    schema = input_of({"properties": {"pet": link("Pet")}}, Pet=PET, Cat=cat, Dog=DOG)

    friend = {"kind": "Cat", "friends": [{"kind": "Dog", "bark": "loud"}]}
    assert accepts(schema, {"pet": friend})
    assert not accepts(schema, {"pet": {"kind": "Cat", "friends": [{"kind": "Fish"}]}})


def test_many_subtypes_stay_references(input_of):
    many = {f"Kind{n}": subtype("Pet", **{f"p{n}_{i}": TEXT for i in range(30)}) for n in range(30)}

    schema = input_of({"properties": {"pet": link("Pet")}}, Pet=PET, **many)

    union = schema["$defs"][schema["properties"]["pet"]["$ref"].rpartition("/")[2]]
    assert len(union["oneOf"]) == 30
    assert accepts(schema, {"pet": {"kind": "Kind7", "p7_1": "a"}})
    assert not accepts(schema, {"pet": {"kind": "Kind7", "p7_1": 1}})


def test_alternatives_that_state_their_values_stay_as_they_are(listed_document):
    cat = {"properties": {"kind": {"const": "cat"}}}
    dog = {"properties": {"kind": {"enum": ["dog"]}}}
    mapping = {"CAT": "#/components/schemas/Cat", "DOG": "#/components/schemas/Dog"}
    pet = {"oneOf": [link("Cat"), link("Dog")]}
    stated = pet | {"discriminator": {"propertyName": "kind", "mapping": mapping}}

    def of(pet):
        return schemas(listed_document(document({"properties": {"pet": pet}}, Cat=cat, Dog=dog)))

    assert of(stated) == of(pet)


def test_a_base_without_subtypes_and_an_answer_stay_as_they_are(listed_document):
    (plain,) = listed_document(document(link("Pet"), Pet=PET)).tools
    (tool,) = listed_document(document(link("Pet"), Pet=PET, Cat=CAT)).tools

    assert set(plain.input_schema["properties"]) == {"kind", "name"}
    assert "enum" not in plain.input_schema["properties"]["kind"]
    assert tool.output_schema == plain.output_schema


def test_a_required_field_of_one_subtype_is_not_required_of_all(input_of):
    cat = {"allOf": [link("Pet"), {"properties": {"purr": TEXT}, "required": ["purr"]}]}
    pet = PET | {"required": ["kind", "name"]}

    schema = input_of(link("Pet"), Pet=pet, Cat=cat, Dog=DOG)

    assert set(schema["required"]) == {"kind", "name"}
