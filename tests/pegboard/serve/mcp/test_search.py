"""The gateway's own tools over MCP, in both protocol eras."""

import asyncio
import json

import pytest
from mcp.shared.exceptions import MCPError

from pegboard.opening import open_board
from pegboard.serve.access.clients import Client
from pegboard.serve.access.views import RESERVED
from pegboard.serve.gateway import Gateway
from pegboard.serve.settings import GatewaySettings, LlmSettings, ServeSettings
from tests.pegboard.retrieval.stubs import ScriptedCompleter

RATES = {"query": "exchange rates of today"}
DEEP = "[" * 100_000


def names_of(result):
    return [tool["name"] for tool in result.structured_content["tools"]]


def test_a_tool_is_found_by_a_description_of_its_task(board_uri, call):
    [result] = call(board_uri, ("search_tools", RATES))

    best_tool = result.structured_content["tools"][0]
    assert names_of(result)[0] == best_tool["name"] == "list_rates"
    assert best_tool["signature"].startswith("list_rates(")
    assert 0 < best_tool["probability"] <= 1
    assert json.loads(result.content[0].text) == result.structured_content


def test_a_whole_definition_is_read_by_name(board_uri, call):
    [definition] = call(board_uri, ("get_tool", {"name": "convert_currency"}))

    assert definition.structured_content["inputSchema"]["properties"]


@pytest.mark.parametrize(
    ("results", "beginning"),
    [("toon", "tools[1]:\n  - name: list_rates\n"), ("typescript", "/** ")],
)
def test_results_have_the_configured_format(board_uri, call, results, beginning):
    [result] = call(board_uri, ("search_tools", {**RATES, "k": 1}), results=results)

    assert result.content[0].text.startswith(beginning)
    assert "list_rates" in result.content[0].text
    assert result.structured_content is None


def test_the_description_of_search_tools_names_the_agents(board_uri, session_of):
    async def run():
        async with session_of(board_uri) as (_, client):
            return (await client.list_tools()).tools[0].description

    assert "They come from: " in asyncio.run(run())


def test_agents_are_found_with_their_tools_and_searches_can_be_limited_to_one(board_uri, call):
    [found] = call(board_uri, ("search_agents", RATES))
    agents = found.structured_content["agents"]
    limited_to_agent = {"query": "anything", "k": 20, "agent": agents[0]["name"]}

    [result] = call(board_uri, ("search_tools", limited_to_agent))

    assert set(agents[0]) == {"name", "description", "tools"}
    assert agents[0]["tools"][0] == "list_rates"
    assert {"list_rates", *names_of(result)} == set(names_of(result)) <= set(agents[0]["tools"])


def test_a_named_tool_comes_first_and_an_invalid_query_says_why(board_uri, call):
    named, empty, long = call(
        board_uri,
        ("search_tools", {"query": "the exchange rate of close_ledger", "k": 2}),
        ("search_tools", {"query": " "}),
        ("search_tools", {"query": "x" * 8_001}),
    )

    assert names_of(named)[0] == "close_ledger"
    assert names_of(empty) == []
    assert "The query is empty" in empty.structured_content["note"]
    assert "8,001 characters; expected at most 8,000" in long.content[0].text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_tools", {}),
        ("search_tools", {"query": 3}),
        ("search_tools", {"query": "x", "k": 0}),
        ("search_tools", {"query": "x", "kk": 2}),
        ("search_agents", {"query": 3}),
        ("get_tool", {"tools": "x"}),
        ("call_tool", {"name": "x", "arguments": "5"}),
        ("call_tool", {"name": "x", "arguments": "{"}),
        pytest.param("call_tool", {"name": "x", "arguments": DEEP}, id="deep list"),
    ],
)
def test_invalid_arguments_are_an_error_for_the_model(board_uri, call, name, arguments):
    [result] = call(board_uri, (name, arguments))

    assert result.is_error
    assert f"{name} was not called: " in result.content[0].text


def test_an_unknown_name_is_an_error_that_suggests_similar_tools(board_uri, call):
    name = "currency_converter"

    results = call(
        board_uri,
        (name, {}),
        *((gateway_tool, {"name": name}) for gateway_tool in ("call_tool", "get_tool")),
    )

    for result in results:
        assert result.is_error
        assert "Unknown tool: 'currency_converter'" in result.content[0].text
        assert "convert_currency" in result.content[0].text
        assert "Ask search_tools" in result.content[0].text


def test_an_unexpected_error_is_logged_and_not_shown(board_uri, session_of, monkeypatch, caplog):
    async def run():
        async with session_of(board_uri) as (gateway, client):
            monkeypatch.setattr(gateway.access, "view", broken)
            with pytest.raises(MCPError) as raised:
                await client.list_tools()
            result = await client.call_tool("search_tools", {"query": "x"})
            return [raised.value.message, result.content[0].text]

    async def broken(client, **options):
        raise OSError("/srv/board is gone")

    message = "The gateway failed. Try again; the gateway's log has the error."
    assert asyncio.run(run()) == [message, f"search_tools failed: {message}"]
    assert caplog.text.count("OSError: /srv/board is gone") == 2


def test_searches_of_one_client_take_at_most_half_of_the_places(board_uri, gateway_of, monkeypatch):
    monkeypatch.setattr("pegboard.serve.finder.MAX_SEARCHES", 2)
    ana = Client(name="ana")
    bob = Client(name="bob")

    async def run():
        async with gateway_of(board_uri) as gateway:
            finder = gateway.finder
            async with finder._limit.place(ana):
                waiting = asyncio.create_task(finder.find(ana, "rates"))
                await finder.find(bob, "rates")
                done_before = waiting.done()
            return done_before, len((await waiting).result.hits)

    done_before, hits = asyncio.run(run())

    assert not done_before
    assert hits > 0


def test_a_search_for_which_an_llm_finds_no_tool_says_so(board_uri, connect):
    async def run():
        llm = ScriptedCompleter(by=lambda request: {"tools": []})
        serve = ServeSettings(llm=LlmSettings(model="stub", strategy="look-at-fifteen"))
        board = open_board(board_uri, refresh=0, llm=llm)
        gateway = Gateway(GatewaySettings(serve=serve), board)
        try:
            async with connect(gateway) as client:
                about = {"pegboard/context": "exchange rates of today"}
                search = await client.call_tool("search_tools", RATES)
                tools = (await client.list_tools(cache_mode="bypass", meta=about)).tools
                return search.structured_content, [tool.name for tool in tools]
        finally:
            await gateway.close()

    content, listed = asyncio.run(run())

    assert content["note"].startswith("None of these tools fits, as an LLM judged. ")
    assert content["tools"][0]["name"] == "list_rates"
    assert listed == list(RESERVED)
