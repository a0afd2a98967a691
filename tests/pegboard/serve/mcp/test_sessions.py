"""Concurrent sessions, notifications in the protocol since 2026-07-28, and stdio."""

import asyncio
import sys
from contextlib import asynccontextmanager

import httpx2
import mcp
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from pegboard.board import Board
from pegboard.serve.access.clients import Client, Clients
from pegboard.serve.access.control import AccessControl
from pegboard.serve.access.views import RESERVED
from pegboard.serve.mcp.sessions import Sessions
from pegboard.serve.settings import GatewaySettings, ServeSettings

SESSIONS = 12
ROUNDS = 3
# Fewer sessions with the server than clients have, so that sessions are ended and opened all the
# time, and more than concurrent calls, so that one can always be ended. The timeout is never
# reached, even on a busy machine.
BUSY = {
    "mode": "gateway",
    "calls": {"concurrency": 4, "timeout": 3_600},
    "servers": {"kit/desk": {"max_sessions": 5}},
}


def test_the_session_limit_of_one_client_does_not_affect_another(monkeypatch):
    monkeypatch.setattr("pegboard.serve.mcp.sessions.MAX_SESSIONS", 5)
    sessions = Sessions(AccessControl(Clients({}), Board.from_tools([])))
    ana = Client(name="ana")
    ben = Client(name="ben")
    of_ana = sessions.get(ana, "work")

    for number in range(20):
        sessions.get(ben, f"s{number}")

    assert sessions.get(ana, "work") is of_ana
    ids = [session.id for session in sessions.all() if session.client is ben]
    assert ids == [f"s{number}" for number in range(15, 20)]


def test_no_answer_is_lost_or_mixed_up_among_many_sessions(desk_uri, desk, served, over_http):
    settings = GatewaySettings(catalogs=desk, serve=ServeSettings.model_validate(BUSY))

    async def session(url, number):
        answers = []
        async with over_http(url, {"Pegboard-Session": f"s{number}"}) as client:
            name = ("echo", "freeze", "die", "fail")[number % 4]
            await client.call_tool("search_tools", {"query": name, "k": 1})
            for turn in range(ROUNDS):
                text = f"{number}-{turn}"
                result = await client.call_tool("call_tool", {
                    "name": "echo", "arguments": {"text": text}
                })  # fmt: skip
                answers.append(result.content[0].text == text)
            listed = [tool.name for tool in (await client.list_tools()).tools]
        return answers, listed == [*RESERVED, name]

    async def run(url):
        return await asyncio.gather(*(session(url, number) for number in range(SESSIONS)))

    with served(desk_uri, settings) as (url, _):
        results = asyncio.run(run(url))

    assert results == [([True] * ROUNDS, True)] * SESSIONS


def test_a_subscription_is_notified_only_of_its_own_session(desk_uri, served):
    settings = GatewaySettings(serve=ServeSettings(mode="gateway"))
    heard = []

    @asynccontextmanager
    async def connected(url, name):
        headers = {"Pegboard-Session": name} if name else {}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(url, http_client=http)
            async with mcp.Client(transport, mode="2026-07-28") as client:
                yield client

    async def listen(url, name, ready):
        async with (
            connected(url, name) as client,
            client.listen(tools_list_changed=True) as subscription,
        ):
            ready.set()
            await anext(subscription)
            heard.append(name)
            return await names(client)

    async def names(client):
        return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]

    async def run(url):
        ready = asyncio.Event(), asyncio.Event()
        one, two = (
            asyncio.create_task(listen(url, name, event))
            for name, event in zip(("one", "two"), ready, strict=True)
        )
        await asyncio.gather(*(event.wait() for event in ready))
        async with connected(url, "") as without_session, connected(url, "one") as same_session:
            await without_session.call_tool("search_tools", {"query": "fail", "k": 1})
            await same_session.call_tool("search_tools", {"query": "echo", "k": 1})
            listed = await one, await names(without_session)
        two.cancel()
        await asyncio.gather(two, return_exceptions=True)
        return listed

    with served(desk_uri, settings) as (url, _):
        assert asyncio.run(run(url)) == ([*RESERVED, "echo"], [*RESERVED])
    assert heard == ["one"]


def test_the_command_serves_one_client_over_stdio(desk_uri, tmp_path, monkeypatch):
    (tmp_path / "pegboard.toml").write_text(
        f'[board]\nuri = "{desk_uri}"\n[serve.clients.ana]\ntoken = "${{ANA_TOKEN}}"\n'
        f'allow = [{{ tool = "kit/desk/echo" }}]\n'
    )
    command = ["-m", "pegboard", "serve", "-c", str(tmp_path / "pegboard.toml"), "--stdio"]
    environment = {"ANA_TOKEN": "x-4711", "PYTHONPATH": ":".join(sys.path)}
    server = StdioServerParameters(
        command=sys.executable, args=[*command, "--client", "ana"], env=environment
    )

    async def run():
        async with mcp.Client(server) as client:
            result = await client.call_tool("search_tools", {"query": "anything", "k": 20})
            hidden = await client.call_tool("fail", {})
        return [tool["name"] for tool in result.structured_content["tools"]], hidden

    visible, hidden = asyncio.run(run())

    assert visible == ["echo"]
    assert hidden.is_error
    assert "Unknown tool: 'fail'" in hidden.content[0].text
