"""The check of arguments against the schemas of a release: what it finds, and what it survives."""

import asyncio

import pytest

from pegboard.board import Board
from pegboard.records import Tool
from pegboard.serve.gateway import Gateway
from pegboard.serve.settings import GatewaySettings


def doubling(keyword):
    """A schema of 40 definitions, each of which asks twice for the next."""
    both = lambda number: {keyword: [{"$ref": f"#/$defs/d{number}"}] * 2}  # noqa: E731
    defs = {f"d{number}": both(number + 1) for number in range(40)}
    return {**both(0), "$defs": {**defs, "d40": {"type": "object", "required": ["no"]}}}


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"next": value}
    return value


AGAIN = {"properties": {"next": {"$ref": "#"}}, "required": ["next"]}
BOMBS = {
    "allOf": (doubling("allOf"), {}),
    "anyOf": (doubling("anyOf"), {}),
    "oneOf": (doubling("oneOf"), {}),
    "recursion over the arguments": ({"anyOf": [AGAIN, AGAIN]}, nested(60)),
    "a reference to itself": ({"allOf": [{"$ref": "#"}]}, {}),
    "dynamic reference to itself": (
        {"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}, {"$dynamicRef": "#a"}]},
        {},
    ),
}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.fixture
def checking():
    """A function: the result of a block with a way to call a tool that has a schema."""

    def run_block(block):
        async def run():
            gateway = Gateway.open(GatewaySettings(), Board.from_tools([]))

            async def call(schema, arguments):
                tool = Tool("kit/desk/tool", "kit", "kit/desk", "tool", input_schema=schema)
                result = await gateway.caller.call(gateway.client({}), tool, arguments)
                return result.content[0].text

            try:
                return await block(call, gateway)
            finally:
                await gateway.close()

        return asyncio.run(run())

    return run_block


REFUSED = "has nothing that runs it"  # what a tool without a server answers after its check


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_schema_that_would_take_for_ever_is_checked_at_once(checking, bomb):
    async def block(call, gateway):
        return await call(*BOMBS[bomb]), await call(TEXT, {"text": "x"}), await call(TEXT, {})

    bombed, fitting, unfitting = checking(block)

    assert REFUSED in bombed
    assert REFUSED in fitting
    assert '"text" is a required property' in unfitting


@pytest.mark.parametrize(
    "arguments",
    [{"text": float("nan")}, {"text": float("inf")}, {"text": {1, 2}}, {"next": nested(100_000)}],
    ids=["not a number", "infinity", "a set", "too deep"],
)
def test_arguments_that_are_no_json_reach_no_tool(checking, arguments):
    async def block(call, gateway):
        return await call({}, arguments)

    assert "are not JSON, or too deep" in checking(block)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"$ref": "https://evil.example/schema"},
        {"$ref": "file:///etc/passwd"},
        {"pattern": "(a{1000}){1000}"},
        {"properties": nested(100_000)},
    ],
    ids=["no schema", "a document elsewhere", "a file", "a pattern too large", "too deep"],
)
def test_a_schema_that_cannot_be_used_checks_nothing(checking, schema):
    async def block(call, gateway):
        return await call(schema, {"text": "x"})

    assert REFUSED in checking(block)


def test_what_a_tool_fills_in_is_not_required_and_a_pattern_costs_only_itself(checking):
    schema = {
        "properties": {
            "text": {"type": "string", "pattern": "(?=no linear time)"},
            "limit": {"type": "integer", "default": 5},
        },
        "required": ["text", "limit"],
    }

    async def block(call, gateway):
        return await call(schema, {"text": "x"}), await call(schema, {})

    fitting, unfitting = checking(block)

    assert REFUSED in fitting
    assert '"text" is a required property' in unfitting
    assert "limit" not in unfitting


@pytest.mark.parametrize("arguments", [{"text": "\ud800"}, {"text": "x", "more\udc00": [1]}])
def test_half_of_a_character_in_an_argument_is_refused(checking, arguments):
    async def block(call, gateway):
        return await call(TEXT, arguments)

    assert "surrogates not allowed. kit/desk/tool was not called." in checking(block)
