"""Hits as an API call takes them."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegboard
from pegboard import Agent, Hit, Tool
from pegboard.errors import QueryError
from pegboard.records import Enrichment

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


def hit(name, agent="git", schema=None, **given):
    owner = Agent(f"kit/{agent}", "kit", agent)
    tool = Tool(
        f"kit/{agent}/{name}", "kit", owner.id, name, "What it does.", schema or {}, **given
    )
    return Hit(tool, owner, 0.5, {"text": {"rank": 1, "score": 0.5, "part": "document"}})


def names(*hits):
    return list(pegboard.call_names(hits))


def test_a_name_that_an_api_takes_stays_as_it_is():
    assert names(hit("create_issue"), hit("getRecord-v2")) == ["create_issue", "getRecord-v2"]


def test_a_character_that_no_api_takes_becomes_an_underline():
    assert names(hit("users.list/all"), hit("天気予報 v2")) == ["users_list_all", "_____v2"]


def test_of_two_tools_with_one_name_the_later_is_named_after_its_agent():
    assert names(hit("search"), hit("search", "o'brien"), hit("search", "天気")) == [
        "search",
        "o_brien__search",
        "____search",
    ]


def test_tools_that_would_still_collide_are_numbered():
    found = [hit("a.b"), hit("a/b"), hit("a b"), hit("a:b")]

    assert names(*found) == ["a_b", "git__a_b", "git__a_b_2", "git__a_b_3"]
    assert list(pegboard.call_names(found).values()) == found


def test_a_long_name_is_cut_and_stays_unique():
    found = [hit("x" * 100 + str(number)) for number in range(120)]
    given_names = names(*found)

    assert given_names[0] == "x" * 64
    assert len(set(given_names)) == 120
    assert all(VALID.fullmatch(name) for name in given_names)


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=70), st.sampled_from(["git", "天", "x" * 70])),
        max_size=30,
    )
)
def test_any_names_become_valid_ones_each_of_its_own_in_order(pairs):
    found = [hit(name, agent) for name, agent in pairs]
    named = pegboard.call_names(found)

    assert list(named.values()) == found
    assert all(VALID.fullmatch(name) for name in named)


def test_openai_takes_functions():
    assert pegboard.as_openai_tools([hit("create_issue", schema=SCHEMA)]) == [
        {
            "type": "function",
            "function": {
                "name": "create_issue",
                "description": "What it does.",
                "parameters": SCHEMA,
            },
        }
    ]


def test_anthropic_takes_an_input_schema():
    assert pegboard.as_anthropic_tools([hit("create_issue", schema=SCHEMA)]) == [
        {"name": "create_issue", "description": "What it does.", "input_schema": SCHEMA}
    ]


def test_mcp_takes_what_the_server_said():
    output, annotations = {"type": "object"}, {"readOnlyHint": True}
    found = [
        hit("create_issue", schema=SCHEMA, output_schema=output, annotations=annotations),
        hit("plain"),
    ]

    assert pegboard.as_mcp_tools(found) == [
        {
            "name": "create_issue",
            "description": "What it does.",
            "inputSchema": SCHEMA,
            "outputSchema": output,
            "annotations": annotations,
        },
        {
            "name": "plain",
            "description": "What it does.",
            "inputSchema": {"type": "object", "properties": {}},
        },
    ]


@pytest.mark.parametrize(
    ("shape", "schema_of"),
    [
        (pegboard.as_openai_tools, lambda tool: tool["function"]["parameters"]),
        (pegboard.as_anthropic_tools, lambda tool: tool["input_schema"]),
        (pegboard.as_mcp_tools, lambda tool: tool["inputSchema"]),
    ],
)
def test_every_schema_is_an_object_with_properties(shape, schema_of):
    schemas = [
        {},
        {"type": "object"},
        {"properties": {"a": {}}},
        {"description": "no type", "$defs": {}},
        SCHEMA,
    ]
    tools = shape([hit(f"tool{number}", schema=schema) for number, schema in enumerate(schemas)])

    for tool, schema in zip(tools, schemas, strict=True):
        assert schema_of(tool)["type"] == "object"
        assert isinstance(schema_of(tool)["properties"], dict)
        assert schema_of(tool).items() >= schema.items()
    assert json.loads(json.dumps(tools)) == tools


WRITTEN = Enrichment(description="Reports a bug.", avoid="To ask something use start_discussion.")


@pytest.mark.parametrize(
    ("shape", "description_of"),
    [
        (pegboard.as_openai_tools, lambda tool: tool["function"]["description"]),
        (pegboard.as_anthropic_tools, lambda tool: tool["description"]),
        (pegboard.as_mcp_tools, lambda tool: tool["description"]),
    ],
)
def test_a_model_is_shown_the_catalogs_description_or_what_was_written(shape, description_of):
    found = [
        hit("create_issue", enrichment=WRITTEN),
        hit("list", enrichment=replace(WRITTEN, avoid="")),
        hit("close", enrichment=replace(WRITTEN, description="")),
        hit("topics", enrichment=Enrichment(topics=("bugs",))),
        hit("plain"),
    ]

    assert [description_of(tool) for tool in shape(found, descriptions="written")] == [
        "Reports a bug. To ask something use start_discussion.",
        "Reports a bug.",
        "What it does. To ask something use start_discussion.",
        "What it does.",
        "What it does.",
    ]
    assert [description_of(tool) for tool in shape(found)] == ["What it does."] * 5
    assert shape(found) == shape(found, descriptions="catalog")


def test_unknown_descriptions_are_refused_with_those_there_are():
    with pytest.raises(
        QueryError, match=r"Unknown descriptions 'best'\. Expected one of: catalog, written"
    ):
        pegboard.as_openai_tools([], descriptions="best")


def test_no_hits_are_no_tools():
    assert (
        pegboard.as_openai_tools([]),
        pegboard.as_anthropic_tools([]),
        pegboard.as_mcp_tools([]),
    ) == ([], [], [])


def test_a_hit_becomes_json_values():
    record = hit("create_issue", schema=SCHEMA, tags=("a", "b")).to_dict()

    assert json.loads(json.dumps(record)) == record
    assert record == {
        "id": "kit/git/create_issue",
        "name": "create_issue",
        "agent": "kit/git",
        "score": 0.5,
        "description": "What it does.",
        "kind": "library",
        "tags": ["a", "b"],
        "input_schema": SCHEMA,
        "why": {"text": {"rank": 1, "score": 0.5, "part": "document"}},
    }


def test_flags_and_what_was_written_are_in_the_json_of_a_hit_that_has_them():
    plain = hit("create_issue").to_dict()
    record = hit(
        "create_issue", flags=("credential",), enrichment=replace(WRITTEN, topics=("bugs",))
    ).to_dict()

    assert json.loads(json.dumps(record)) == record
    assert record == {
        **plain,
        "flags": ["credential"],
        "enrichment": {
            "description": "Reports a bug.",
            "avoid": "To ask something use start_discussion.",
            "topics": ["bugs"],
        },
    }
    assert not {"flags", "enrichment"} & plain.keys()
