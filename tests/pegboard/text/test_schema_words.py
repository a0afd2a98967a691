"""What schemas, titles, paths and tags say is searched, too."""

import json
from pathlib import Path

import pytest

from pegboard.board import Board
from pegboard.documents import documents_of, operation_sentence, search_words
from pegboard.records import Agent, Tool
from pegboard.text.schema_words import MAX_ARGUMENTS, MAX_VALUES, arguments_of

CASES = Path(__file__).parents[4] / "shared" / "cases" / "ingest" / "mcp2" / "texts.json"
AGENT = Agent("c/a", "c", "a")
TEXT = {"type": "string"}
REQUESTS = {
    "book a hotel room": "op_a",
    "rent a bicycle": "op_b",
    "order a pizza": "op_c",
    "reboot the router": "run_x",
    "print a label": "run_y",
    "water the plants": "run_z",
    "enter the date of the vaccination": "sub_x",
    "the rate of the mortgage": "sub_y",
    "the pressure of the tyres": "sub_z",
    "send the passport number": "ref_x",
    "which orchid to plant": "ref_y",
    "tune the violin": "ref_z",
}


def properties(**members):
    return {"type": "object", "properties": members}


def tool(description="", schema=None, **annotations):
    return Tool("c/a/t", "c", "c/a", "run_job", description, schema or {}, annotations=annotations)


def test_requests_find_tools_by_titles_values_and_nested_arguments():
    if not CASES.is_file():
        pytest.skip(f"the reported cases are not at {CASES}")
    board = Board.from_tools(json.loads(CASES.read_text())["tools"], encoder="hashing/64")

    first = {request: board.search(request, 1, mode="text")[0].tool.name for request in REQUESTS}

    assert first == REQUESTS


PAYLOAD = properties(
    date={**TEXT, "description": "Day of the visit."}, kind={"enum": ["long", "b2"]}
)
SCHEMAS = {
    "an object": properties(payload=PAYLOAD),
    "a list": properties(payload={"type": "array", "items": PAYLOAD}),
    "a reference": properties(payload={"$ref": "#/$defs/P"}) | {"$defs": {"P": PAYLOAD}},
    "an old reference": properties(payload={"$ref": "#/definitions/P~1x"})
    | {"definitions": {"P/x": PAYLOAD}},
    "a union": properties(payload={"anyOf": [PAYLOAD, {"type": "null"}]}),
    "a free object": properties(payload={"additionalProperties": PAYLOAD}),
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_nested_arguments_are_found_wherever_they_stand(schema):
    arguments = {one.name: one for one in arguments_of(schema)}

    assert list(arguments) == ["payload", "date", "kind"]
    assert [one.depth for one in arguments.values()] == [0, 1, 1]
    assert arguments["date"].description == "Day of the visit."
    assert arguments["kind"].values == ("long", "b2")
    assert search_words(tool(schema=schema)).split("\n") == ["date", "kind: long, b2"]


def test_the_arguments_of_all_alternatives_at_the_top_are_found():
    schema = {"oneOf": [properties(a=TEXT), {"$ref": "#/$defs/B"}], "$defs": {"B": PAYLOAD}}

    assert [one.name for one in arguments_of(schema)] == ["a", "date", "kind"]


def test_a_schema_that_refers_to_itself_or_is_huge_is_read_within_bounds():
    node = properties(value=TEXT, children={"type": "array", "items": {"$ref": "#/$defs/N"}})
    many = properties(**{f"a{number}": TEXT for number in range(2 * MAX_ARGUMENTS)})
    codes = properties(code={"enum": [f"c{number}" for number in range(MAX_VALUES + 1)]})

    assert len(arguments_of(properties(root=node) | {"$defs": {"N": node}})) < 10
    assert len(arguments_of({"$ref": "#"})) == 0
    assert len(arguments_of(many)) == MAX_ARGUMENTS
    assert arguments_of(codes)[0].values == ()


@pytest.mark.parametrize(
    "schema",
    [{"properties": []}, {"properties": {"a": 3, "b": None, "c": True}}, {"anyOf": "x"}, {}],
)
def test_an_odd_schema_has_no_words_and_is_no_error(schema):
    assert search_words(tool(schema=schema)) == ""


def encoded(described):
    ((_, _, texts),) = documents_of(described, AGENT)
    return texts[0]


def test_what_a_tool_says_beside_its_description_is_encoded_where_that_is_thin():
    schema = properties(payload=PAYLOAD)
    thin = tool("Submits a form.", schema, title="Register a visit")
    told = tool("Registers the visit of a guest at the front desk.", schema, title="Visits")

    assert encoded(thin) == (
        "run job. Register a visit. Submits a form.\n"
        "Arguments: payload; date: Day of the visit.; kind: long, b2"
    )
    assert encoded(told).endswith("front desk.\nArguments: payload")
    assert search_words(told) == "Visits\ndate\nkind: long, b2"


def test_a_title_that_repeats_the_name_is_left_out():
    assert encoded(tool("Runs it.", title="Run Job")) == "run job. Runs it."


def test_an_operation_without_a_text_is_described_by_its_path():
    operation = tool(method="POST", path="/invoices/{id}/line-items")

    assert operation_sentence(operation) == "Create line items of invoices"
    assert encoded(operation) == "run job. Create line items of invoices"
    assert search_words(operation) == "invoices line items"


def test_words_follow_the_parts_of_an_index():
    described = tool("Text.", properties(payload=PAYLOAD), title="Title here", path="/a/b")

    assert search_words(described, ("name",)) == ""
    assert search_words(described, ("name", "arguments")) == "date\nkind: long, b2"
    assert search_words(described, ("name", "description")) == "Title here\na b"
