"""Operations whose schemas are long only because references are written out are listed, with these
references kept.
"""

import json

from pegboard.foreign.limits import MAX_SCHEMA

NOTE = {
    "type": "object",
    "properties": {"editable": {"type": "string"}, "text": {"type": "string"}},
}
WORDS = "what a person would write about a field of a form, at some length. " * 3
TABS = 40
FIELDS = 60


def link(name, **members):
    return {"$ref": f"#/definitions/{name}", **members}


def tab():
    """A kind of tab: each of its fields has a second one, a schema that all fields share."""
    fields = {f"field{n}": {"type": "string", "description": WORDS} for n in range(FIELDS)}
    notes = {f"field{n}Note": link("Note", description="May it be edited?") for n in range(FIELDS)}
    return {"type": "object", "properties": {**fields, **notes}}


def document(body, definitions, response=None):
    """A document whose operation `send` has a body, and if given a response."""
    parameter = {"name": "body", "in": "body", "schema": body}
    responses = {"200": {"schema": response}} if response else {}
    operation = {"operationId": "send", "parameters": [parameter], "responses": responses}
    return {
        "swagger": "2.0",
        "info": {"title": "Signatures", "version": "1"},
        "paths": {"/envelopes": {"post": operation}},
        "definitions": definitions,
    }


def envelope(note=NOTE):
    """The definitions of an envelope with many kinds of tabs."""
    tabs = {f"tab{n}": {"type": "array", "items": link(f"Tab{n}")} for n in range(TABS)}
    definitions = {f"Tab{n}": tab() for n in range(TABS)}
    envelope = {"properties": {"subject": {"type": "string"}, "tabs": link("Tabs")}}
    return {**definitions, "Note": note, "Tabs": {"properties": tabs}, "Envelope": envelope}


def test_a_schema_that_is_long_by_its_references_alone_keeps_them(listed_document):
    note = {"properties": {"editable": {"type": "string", "description": WORDS}}}

    listing = listed_document(document(link("Envelope"), envelope(note)))

    (tool,) = listing.tools
    definitions = tool.input_schema["$defs"]
    assert set(definitions) == {"Note", "Tabs", *(f"Tab{n}" for n in range(TABS))}
    assert definitions["Tabs"]["properties"]["tab7"]["items"] == {"$ref": "#/$defs/Tab7"}
    assert definitions["Tab7"]["properties"]["field3Note"] == {
        "$ref": "#/$defs/Note",
        "description": "May it be edited?",
    }
    assert len(json.dumps(tool.input_schema)) < MAX_SCHEMA
    assert (listing.rejected, listing.notices) == ((), ())


def test_a_shorter_schema_has_its_references_written_out(listed_document):
    definitions = envelope() | {"Envelope": {"properties": {"tab": link("Tab0")}}}

    (tool,) = listed_document(document(link("Envelope"), definitions)).tools

    assert "$defs" not in tool.input_schema
    shown = tool.input_schema["properties"]["tab"]["properties"]["field3Note"]
    assert shown["properties"] == NOTE["properties"]
    assert shown["description"] == "May it be edited?"


def test_what_is_too_long_in_each_form_is_listed_without_its_farthest_parts(listed_document):
    large = {f"part{n}": {"description": "word " * 20_000} for n in range(9)}
    definitions = {f"Tab{n}": {"properties": large} for n in range(TABS)}
    tabs = {f"tab{n}": link(f"Tab{n}") for n in range(TABS)}

    listing = listed_document(document({"properties": tabs}, definitions))

    (tool,) = listing.tools
    assert set(tool.input_schema["properties"]) == set(tabs)
    assert len(json.dumps(tool.input_schema)) < MAX_SCHEMA
    (notice,) = listing.notices
    assert notice.kind == "cut"
    assert "without what they have, since the whole would be too long" in notice.why


def test_a_response_that_is_too_long_costs_no_operation(listed_document):
    response = {"properties": {"text": {"description": "x" * (MAX_SCHEMA + 1)}}}

    listing = listed_document(document({"type": "object"}, {}, response))

    assert [tool.output_schema for tool in listing.tools] == [None]


def test_a_schema_that_is_too_long_itself_is_rejected(listed_document):
    body = {"properties": {"text": {"description": "x" * (MAX_SCHEMA + 1)}}}

    listing = listed_document(document(body, {}))

    assert listing.tools == ()
    assert "more than 1,000,000" in listing.rejected[0].why
