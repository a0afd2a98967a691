"""`tools/list`: pinned tools, and those that a session found."""

import asyncio

import mcp
import pytest

from pegboard.serve.changes import tell_all
from pegboard.serve.mcp_server import mcp_server
from pegboard.serve.views import RESERVED

OWN = list(RESERVED)


async def listed(client):
    result = await client.list_tools(cache_mode="bypass")
    return [tool.name for tool in result.tools]


def test_what_a_session_found_is_listed_in_order_of_discovery(board_uri, gateway_of):
    async def run():
        async with (
            gateway_of(board_uri, mode="gateway") as gateway,
            mcp.Client(mcp_server(gateway)._mcp_server, mode="legacy") as client,
        ):
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


@pytest.mark.parametrize("mode", ["search", "gateway"])
def test_a_promotion_changes_lists_without_a_restart(two_releases, gateway_of, mode):
    workshop, _, second = two_releases
    changes = []

    async def on_message(message):
        changes.append(message)

    async def run():
        async with gateway_of(workshop.uri, mode=mode, pinned=["kit/*/*_1"]) as gateway:
            client = mcp.Client(
                mcp_server(gateway)._mcp_server, mode="legacy", message_handler=on_message
            )
            async with client:
                before = await listed(client)
                assert await tell_all(gateway) == 0
                workshop.store.promote(second.id)
                told = await tell_all(gateway)
                return before, told, await listed(client)

    before, told, after = asyncio.run(run())

    assert (before, told, after) == ([*OWN, "old_1"], 1, [*OWN, "new_1"])
    assert len(changes) == 1
