"""`search_tools` over MCP, in both protocol eras."""

import asyncio
import json

import pytest
from mcp.shared.exceptions import MCPError

from pegboard.errors import QueryError, StoreError
from pegboard.serve.access import Client
from pegboard.serve.finder import MAX_QUERY


def names_of(result):
    return [tool["name"] for tool in result.structured_content["tools"]]


def test_search_finds_a_tool_by_what_it_does(board_uri, gateway_of, connect):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            return await client.call_tool("search_tools", {"query": "exchange rates of today"})

    result = asyncio.run(run())

    first = result.structured_content["tools"][0]
    assert names_of(result)[0] == first["name"] == "list_rates"
    assert first["signature"].startswith("list_rates(")
    assert 0 < first["probability"] <= 1
    assert json.loads(result.content[0].text) == result.structured_content


@pytest.mark.parametrize(
    ("results", "beginning"),
    [("full", '{"tools":[{"name":"list_rates"'), ("toon", "tools[1]:"), ("typescript", "/** ")],
)
def test_results_come_in_the_form_that_the_configuration_names(
    board_uri, gateway_of, connect, results, beginning
):
    async def run():
        async with gateway_of(board_uri, results=results) as gateway, connect(gateway) as client:
            query = {"query": "exchange rates of today", "k": 1}
            return await client.call_tool("search_tools", query)

    result = asyncio.run(run())

    assert result.content[0].text.startswith(beginning)
    assert "list_rates" in result.content[0].text
    assert ("inputSchema" in result.structured_content["tools"][0]) == (results == "full")


def test_a_whole_definition_is_read_by_name(board_uri, gateway_of, connect):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            definition = await client.call_tool("get_tool", {"name": "convert_currency"})
            return definition, await client.call_tool("get_tool", {"name": "convert"})

    definition, unknown = asyncio.run(run())

    assert definition.structured_content["inputSchema"]["properties"]
    assert unknown.is_error
    assert "convert_currency" in unknown.content[0].text


def test_search_tools_and_the_instructions_say_which_agents_are_behind_them(
    board_uri, gateway_of, connect
):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            return (await client.list_tools()).tools[0].description, client.instructions

    description, instructions = asyncio.run(run())

    assert "They come from: " in description
    assert instructions is None or "Ask search_tools" in instructions  # not without a handshake


def test_agents_are_found_with_their_tools_which_can_be_searched_alone(
    board_uri, gateway_of, connect
):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            found = await client.call_tool("search_agents", {"query": "exchange rates of today"})
            agents = found.structured_content["agents"]
            own = {"query": "anything", "k": 20, "agent": agents[0]["name"]}
            tools = await client.call_tool("search_tools", own)
            wrong = await client.call_tool("search_agents", {"query": 3})
            return agents, names_of(tools), wrong

    agents, tools, wrong = asyncio.run(run())

    assert set(agents[0]) == {"name", "description", "tools"}
    assert agents[0]["tools"][0] == "list_rates"
    assert {"list_rates", *tools} == set(tools) <= set(agents[0]["tools"])
    assert wrong.is_error
    assert "search_agents takes query" in wrong.content[0].text


def test_a_tool_that_the_query_names_exactly_comes_first(board_uri, gateway_of, connect):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            return await client.call_tool(
                "search_tools", {"query": "the exchange rate of close_ledger", "k": 2}
            )

    assert names_of(asyncio.run(run()))[0] == "close_ledger"


def test_an_empty_query_says_why_nothing_was_found(board_uri, gateway_of, connect):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            return await client.call_tool("search_tools", {"query": " "})

    result = asyncio.run(run())

    assert names_of(result) == []
    assert "The query is empty" in result.structured_content["note"]


def test_a_board_that_cannot_be_read_is_an_error_without_its_address(
    board_uri, gateway_of, connect, monkeypatch, caplog
):
    async def unreadable(*_, **__):
        raise StoreError(f"The board at {board_uri} cannot be read. Restore its folder.")

    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            monkeypatch.setattr(gateway.finder, "find", unreadable)
            return await client.call_tool("search_tools", {"query": "exchange rates"})

    result = asyncio.run(run())

    assert result.is_error
    assert result.content[0].text == (
        "search_tools failed: The board cannot be read at the moment. Try again; the gateway's log "
        "has the error."
    )
    assert board_uri in caplog.text


@pytest.mark.parametrize(
    "arguments", [{}, {"query": 3}, {"query": "x", "k": 0}, {"k": "5"}, {"query": "x", "kk": 2}]
)
def test_invalid_arguments_of_search_tools_are_an_error_for_the_model(
    board_uri, gateway_of, connect, arguments
):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            return await client.call_tool("search_tools", arguments)

    result = asyncio.run(run())

    assert result.is_error
    assert "search_tools takes query" in result.content[0].text


def test_requests_and_contexts_are_limited_in_length(board_uri, gateway_of, connect):
    long = "word " * (MAX_QUERY // 5)

    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            fits = await client.call_tool("search_tools", {"query": long})
            too_long = await client.call_tool("search_tools", {"query": long + "s"})
            with pytest.raises(MCPError, match="expected at most 8,000"):
                await client.list_tools(meta={"pegboard/context": long + "s"})
            return fits, too_long

    fits, too_long = asyncio.run(run())

    assert len(long) == MAX_QUERY
    assert names_of(fits)
    assert too_long.is_error
    assert "8,001 characters; expected at most 8,000" in too_long.content[0].text


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, '{"a": ' + "1" * 5_000 + "}", "{", "[]", "5"],
    ids=["deep list", "deep object", "long number", "cut off", "list", "number"],
)
def test_arguments_as_text_that_are_no_object_are_an_error_for_the_model(
    board_uri, gateway_of, connect, text
):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            return await client.call_tool("call_tool", {"name": "x", "arguments": text})

    result = asyncio.run(run())

    assert result.is_error
    assert "call_tool takes name, a text, and arguments" in result.content[0].text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_reach_no_tool(board_uri, gateway_of, connect, number):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            arguments = {"name": "close_ledger", "arguments": f'{{"a": {number}}}'}
            return await client.call_tool("call_tool", arguments)

    assert "are not JSON" in asyncio.run(run()).content[0].text


@pytest.mark.parametrize("direct", [True, False])
def test_an_unknown_tool_is_an_error_that_names_those_closest(
    board_uri, gateway_of, connect, direct
):
    async def run():
        name = "currency_converter"
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            if direct:
                return await client.call_tool(name, {})
            return await client.call_tool("call_tool", {"name": name})

    result = asyncio.run(run())

    assert result.is_error
    assert "Unknown tool: 'currency_converter'" in result.content[0].text
    assert "convert_currency" in result.content[0].text
    assert "Ask search_tools" in result.content[0].text


def test_half_of_a_character_in_a_query_is_the_fault_of_the_request(board_uri, gateway_of):
    async def run():
        async with gateway_of(board_uri) as gateway:
            await gateway.finder.find(gateway.client({}), "tea \ud800")

    with pytest.raises(QueryError, match="has half of a character"):
        asyncio.run(run())


def test_an_unforeseen_error_is_logged_and_tells_the_client_nothing(
    board_uri, gateway_of, connect, monkeypatch, caplog
):
    async def run():
        async with gateway_of(board_uri) as gateway, connect(gateway) as client:
            monkeypatch.setattr(gateway.catalogue, "view", broken)
            with pytest.raises(MCPError) as raised:
                await client.list_tools()
            result = await client.call_tool("search_tools", {"query": "x"})
            return [raised.value.message, result.content[0].text]

    async def broken(client, **options):
        raise OSError("/srv/board is gone")

    message = "The gateway failed. Try again; the gateway's log has the error."
    assert asyncio.run(run()) == [message] * 2
    assert caplog.text.count("OSError: /srv/board is gone") == 2


def test_a_client_with_many_searches_leaves_half_of_the_turns_to_others(
    board_uri, gateway_of, monkeypatch
):
    monkeypatch.setattr("pegboard.serve.finder.MAX_SEARCHES", 4)
    ana, bob = Client("ana"), Client("bob")

    async def run():
        order, go_on = [], asyncio.Event()
        async with gateway_of(board_uri) as gateway:
            whole = gateway.catalogue.view

            async def view(client, **options):
                order.append(client.name)
                if client is ana:
                    await go_on.wait()
                return await whole(client, **options)

            monkeypatch.setattr(gateway.catalogue, "view", view)
            searches = [
                asyncio.create_task(gateway.finder.find(ana, f"rates {number}"))
                for number in range(20)
            ]
            await asyncio.sleep(0)
            await gateway.finder.find(bob, "rates")
            before = list(order)
            go_on.set()
            await asyncio.gather(*searches)
            return before, len(order)

    assert asyncio.run(run()) == (["ana", "ana", "bob"], 21)
