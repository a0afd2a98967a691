"""`tools/list`: pinned tools, tools that a session found, and tools for a request's context."""

import asyncio
from unittest.mock import AsyncMock

import mcp
import pytest

from pegboard.serve.access.views import RESERVED
from pegboard.serve.mcp.server import mcp_server

OWN = list(RESERVED)


async def listed(client, meta=None):
    params = {"meta": meta} if meta else {}
    result = await client.list_tools(cache_mode="bypass", **params)
    return [tool.name for tool in result.tools]


@pytest.mark.parametrize("era", ["legacy"])
def test_found_tools_are_listed_in_order_of_discovery(board_uri, session_of):
    async def run():
        async with session_of(board_uri, mode="gateway") as (_, client):
            lists = []
            for name in ("close_ledger", "call_taxi", "close_ledger"):
                await client.call_tool("search_tools", {"query": name, "k": 1})
                lists.append(await listed(client))
            return lists

    assert asyncio.run(run()) == [
        [*OWN, "close_ledger"],
        [*OWN, "close_ledger", "call_taxi"],
        [*OWN, "close_ledger", "call_taxi"],
    ]


def test_a_list_has_pinned_tools_and_those_that_fit_a_context(board_uri, session_of, monkeypatch):
    monkeypatch.setattr("pegboard.serve.mcp.gateway_tools.MAX_FITTING", 3)

    async def run():
        async with session_of(board_uri, pinned=["desk/*/book_*"]) as (_, client):
            about = {"pegboard/context": "convert currency amounts of money"}
            lists = [await listed(client), await listed(client, about)]
            for least in (0.0, 1.0):
                thresholds = AsyncMock(return_value={"nothing_fits": least})
                monkeypatch.setattr("pegboard.async_board.AsyncBoard.thresholds", thresholds)
                lists.append(await listed(client, about))
            return lists

    without, fitting, everything, none = asyncio.run(run())

    assert without == none == [*OWN, "book_room"]
    assert "convert_currency" in fitting
    assert "convert_currency" in everything
    assert len(everything) == len(OWN) + 1 + 3


@pytest.mark.parametrize("mode", ["search", "gateway"])
def test_a_promotion_changes_lists_without_a_restart(two_releases, gateway_of, mode):
    workshop, _, second = two_releases
    changes = []

    async def on_message(message):
        changes.append(message)

    async def run():
        async with gateway_of(workshop.uri, mode=mode, pinned=["kit/*/*_1"]) as gateway:
            server = mcp_server(gateway)
            client = mcp.Client(server._mcp_server, mode="legacy", message_handler=on_message)
            async with client:
                list_before = await listed(client)
                workshop.store.promote(second.id)
                await server.sessions.tell_of_changes()
                return list_before, await listed(client)

    assert asyncio.run(run()) == ([*OWN, "old_1"], [*OWN, "new_1"])
    assert len(changes) == 1
