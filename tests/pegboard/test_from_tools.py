"""`Board.from_tools`: a board of functions, function schemas and MCP tools, in memory."""

import sys
from types import SimpleNamespace

import pytest

import pegboard
from pegboard.errors import ConfigurationError

SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "number", "description": "how much"}},
}


def convert_currency(amount: float, to: str = "EUR") -> float:
    """Converts an amount of money.

    Args:
        amount: how much, in dollars.
    """
    return amount


SHAPES = [
    convert_currency,
    {"name": "convert_currency", "description": "Converts an amount.", "inputSchema": SCHEMA},
    SimpleNamespace(name="convert_currency", description="Converts.", inputSchema=SCHEMA),
    {"type": "function", "function": {"name": "convert_currency", "parameters": SCHEMA}},
    {"type": "function", "name": "convert_currency", "parameters": SCHEMA},
    {"name": "convert_currency", "input_schema": SCHEMA},
    {"functionDeclarations": [{"name": "convert_currency", "parameters": {"type": "OBJECT"}}]},
]


@pytest.mark.parametrize("tool", SHAPES)
def test_tools_of_every_shape_are_found(tool, encoder):
    board = pegboard.Board.from_tools([tool], encoder=encoder)

    [hit] = board.search("convert an amount of currency")

    assert hit.tool.name == "convert_currency"
    assert hit.tool.input_schema["type"] == "object"
    assert pegboard.as_openai_tools([hit])[0]["function"]["name"] == "convert_currency"
    assert [hit.tool for hit in board.find("convert currency")] == board.list_tools()
    assert board.search_agents("convert currency")[0].agent.name == "tools"


def test_a_function_gives_its_signature_and_docstring(encoder):
    board = pegboard.Board.from_tools([convert_currency], encoder=encoder)
    [tool] = board.list_tools()

    assert tool.description == "Converts an amount of money."
    assert tool.input_schema["required"] == ["amount"]
    assert tool.input_schema["properties"]["amount"]["description"] == "how much, in dollars."
    assert len(board.graph) == 0


def test_a_hit_has_the_function_that_was_given_and_none_for_a_schema(encoder):
    tools = [convert_currency, {"name": "order_lunch", "description": "Lunch.", "parameters": {}}]
    board = pegboard.Board.from_tools(tools, encoder=encoder)

    [money], [lunch] = (board.search(words, k=1) for words in ("convert currency", "lunch"))

    assert money.function(30.0) == 30.0
    assert lunch.function is None


def test_the_first_search_encodes_nothing_but_the_request(encoder, monkeypatch):
    board = pegboard.Board.from_tools([convert_currency], encoder=encoder)
    texts = []
    encode = type(encoder).encode
    monkeypatch.setattr(
        type(encoder), "encode", lambda self, batch: texts.extend(batch) or encode(self, batch)
    )

    board.find("convert currency", strategy="search")

    assert texts == ["convert currency"]


def test_it_ranks_as_a_published_board_does(workshop, encoder):
    listed = [
        workshop.tool("getTides_v2", "High and low tide at a harbour.", harbour="its name"),
        workshop.tool("create_issue", "Opens an issue in a repository.", title="its headline"),
        workshop.tool("list_commits", "Lists the commits of a branch.", branch="the name"),
        workshop.tool("order_lunch", ""),
    ]
    workshop.publish({"tools": listed})
    published = pegboard.open(workshop.uri, encoder=encoder)
    board = pegboard.Board.from_tools(listed, encoder=encoder)

    def ranking(hits):
        return [(hit.tool.name, hit.score, hit.why) for hit in hits]

    for request in ("high tide", "open an issue and list the commits", "lunch", ""):
        assert ranking(board.find(request)) == ranking(published.find(request))
        for mode in ("hybrid", "vector", "text"):
            expected = published.search(request, 4, mode=mode)
            assert ranking(board.search(request, 4, mode=mode)) == ranking(expected)


def test_all_invalid_tools_are_reported_together(encoder):
    tools = [*SHAPES[:2], {"name": 5, "inputSchema": {}}, {"colour": "red"}, SimpleNamespace]
    tools += [lambda city: city]

    with pytest.raises(ConfigurationError) as caught:
        pegboard.Board.from_tools(tools, encoder=encoder)

    with pytest.raises(ConfigurationError, match="Expected a list of tools"):
        pegboard.Board.from_tools(convert_currency, encoder=encoder)
    for problem in (
        "tools[1]: the name 'convert_currency' is repeated",
        "tools[2]: the name is 5, expected a text",
        "tools[3]: unknown shape",
        "tools[4]: SimpleNamespace is a class; give functions",
        "tools[5]: a lambda has no name",
    ):
        assert problem in str(caught.value)


def test_a_missing_encoder_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(pegboard.PegboardError, match=r"index\[local\]"):
        pegboard.Board.from_tools([convert_currency])


def test_a_board_of_tools_can_be_restricted_to_some_of_them(encoder):
    other = {"name": "send_email", "description": "Sends an email.", "inputSchema": SCHEMA}
    board = pegboard.Board.from_tools([convert_currency, other], encoder=encoder)
    chosen = next(tool.id for tool in board.list_tools() if tool.name == "send_email")

    part = board.restricted([chosen, "memory/tools/gone"])
    nothing = board.restricted([])

    assert [tool.name for tool in part.list_tools()] == ["send_email"]
    assert [hit.tool.name for hit in part.find("amount of money in yen")] == ["send_email"]
    assert [hit.tool.name for hit in part.at_current_release().search("email", 5)] == ["send_email"]
    assert nothing.list_tools() == []
    assert list(nothing.search("email", 5)) == []
    assert len(board.list_tools()) == 2
