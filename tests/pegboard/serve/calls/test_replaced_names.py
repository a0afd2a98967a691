"""Arguments whose names model APIs refuse: clients are given others, servers get their own."""

import asyncio
import sys

import pytest

from tests.api_rules import refusals
from tests.pegboard.serve.conftest import UPSTREAM, loaded
from tests.pegboard.serve.office import called

STATIONS = {
    "type": "mcp",
    "servers": {"stations": {"command": sys.executable, "args": [str(UPSTREAM / "filters.py")]}},
}


@pytest.fixture
def uri(workshop):
    module = loaded("filters")
    workshop.servers({"stations": [module.LISTED]})
    workshop.write("orders.json", module.DOCUMENT)
    catalogs = """
[catalogs.kit]
type = "mcp-dump"
path = "servers.json"

[catalogs.shop]
type = "openapi"
path = "orders.json"
"""
    workshop.run(workshop.configure(catalogs=catalogs))
    return workshop.uri


@pytest.mark.parametrize(
    "sent",
    [
        {"filter_city": "Ulm", "rows": [{"grosse": 3}]},
        {"filter[city]": "Ulm", "rows": [{"größe": 3}]},
    ],
    ids=["as given", "as the server names them"],
)
def test_a_server_gets_the_names_of_its_own_schema(uri, session_of, sent):
    async def run():
        async with session_of(uri, {"kit": STATIONS}) as (_, client):
            shown = await client.call_tool("get_tool", {"name": "list_stations"})
            call = {"name": "list_stations", "arguments": sent}
            return shown.structured_content, await client.call_tool("call_tool", call)

    shown, result = asyncio.run(run())

    assert list(shown["inputSchema"]["properties"]) == ["filter_city", "rows"]
    assert refusals(shown["inputSchema"]) == []
    assert result.structured_content == {"sent": {"filter[city]": "Ulm", "rows": [{"größe": 3}]}}


def test_a_search_shows_the_names_by_which_a_model_calls(uri, session_of):
    async def run():
        async with session_of(uri, {"kit": STATIONS}) as (_, client):
            return await client.call_tool("search_tools", {"query": "stations of a city"})

    (row, *_) = asyncio.run(run()).structured_content["tools"]

    assert row["signature"].startswith("list_stations(filter_city: string, rows?: ")


def test_an_api_gets_the_names_of_its_own_document(uri, gateway_of, shop):
    async def run():
        apis = {"shop": {"base_url": shop.url}}
        async with gateway_of(uri, apis=apis) as gateway:
            return await called(gateway, "find_orders", {"filter_item": "tea", "select": "id"})

    asyncio.run(run())

    assert shop.requests[-1].endswith("/orders?filter%5Bitem%5D=tea&%24select=id")
