"""Sessions with MCP servers: their clients, requests of servers, and changed tools."""

import asyncio
import json
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from mcp_types import ElicitResult

from pegboard.serve.settings import GatewaySettings, ServeSettings
from tests.catalogs.mcp_servers import http_server
from tests.pegboard.serve.office import text_of

KEY = "open-sesame-4711"


@pytest.fixture
def settings(desk):
    """A function: the settings of a gateway that starts the desk."""

    def made(catalogs=None, **serve):
        return GatewaySettings(
            serve=ServeSettings.model_validate(serve),
            catalogs=desk if catalogs is None else catalogs,
        )

    return made


@pytest.mark.parametrize("era", ["legacy"])
@pytest.mark.parametrize(("sessions", "starts"), [(None, "2"), ("client", "2"), ("shared", "1")])
def test_each_client_session_has_its_own_session_with_a_started_server(
    desk_uri, served, settings, over_http, sessions, starts
):
    async def run(url):
        async with over_http(url) as one, over_http(url) as other:
            await one.call_tool("echo", {"text": "x"})
            await other.call_tool("echo", {"text": "x"})
            return await one.call_tool("count_starts", {})

    with served(desk_uri, settings(servers={"kit/desk": {"sessions": sessions}})) as (url, _):
        assert text_of(asyncio.run(run(url))) == starts


@pytest.mark.parametrize("era", ["legacy"])
def test_a_session_with_a_server_ends_with_the_client_session(
    desk_uri, served, settings, over_http
):
    async def run(url, gateway):
        health = gateway.caller.health
        async with over_http(url) as client:
            await client.call_tool("echo", {"text": "x"})
            assert health()["kit/desk"]["state"] == "up"
        while health()["kit/desk"]["state"] == "up":
            await asyncio.sleep(0.01)

    with served(desk_uri, settings()) as (url, gateway):
        asyncio.run(run(url, gateway))


@pytest.mark.parametrize("era", ["legacy"])
def test_the_longest_idle_session_is_ended_for_a_new_one(desk_uri, served, settings, over_http):
    async def run(url):
        async with over_http(url) as one, over_http(url) as other:
            for client in (one, other, one):
                await client.call_tool("echo", {"text": "x"})
            return await one.call_tool("count_starts", {})

    servers = {"kit/desk": {"max_sessions": 1}}
    with served(desk_uri, settings(servers=servers)) as (url, _):
        assert text_of(asyncio.run(run(url))) == "3"


@pytest.mark.parametrize("era", ["legacy"])
@pytest.mark.parametrize("sessions", ["client", "shared"])
def test_requests_of_a_server_reach_only_the_client_of_its_session(
    desk_uri, served, settings, over_http, sessions
):
    questions = []

    async def answer(context, params):
        questions.append(params.message)
        return ElicitResult(action="accept", content={})

    async def run(url):
        async with over_http(url, elicitation_callback=answer) as client:
            return await client.call_tool("ask_back", {"method": "elicitation/create"})

    with served(desk_uri, settings(servers={"kit/desk": {"sessions": sessions}})) as (url, _):
        reply = json.loads(text_of(asyncio.run(run(url))))

    assert questions == (["Really?"] if sessions == "client" else [])
    assert ("result" in reply) == (sessions == "client")


@pytest.mark.parametrize(
    "difference", [{"description": "Burns a text."}, {"input_schema": {"type": "object"}}]
)
def test_a_tool_that_differs_from_the_release_is_reported_or_refused(
    desk_uri, desk, gateway_of, caplog, difference
):
    expected = "its server lists another description or inputSchema, or none"

    async def run(changed):
        async with gateway_of(desk_uri, desk, calls={"changed": changed}) as gateway:
            client = gateway.access.clients.of_headers({})
            tool = await (await gateway.access.view(client)).board.tool("kit/desk/echo")
            same = await gateway.caller.call(client, tool, {"text": "x"})
            changed_tool = replace(tool, **difference)
            return same, await gateway.caller.call(client, changed_tool, {"text": "x"})

    same, warned = asyncio.run(run("warn"))
    _, refused = asyncio.run(run("refuse"))
    _, allowed = asyncio.run(run("allow"))

    assert same.meta is None
    assert warned.meta == {"pegboard/changed": expected}
    assert expected in caplog.text
    assert "was not called" in text_of(refused)
    assert not allowed.meta


@pytest.mark.parametrize("passed", [True, False])
def test_a_passed_token_is_sent_only_with_requests_of_its_own_client(
    workshop, served, settings, over_http, monkeypatch, passed
):
    monkeypatch.setenv("CLOCK_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", "ana-4711-token")
    workshop.publish({"clock": [workshop.tool("now", "Tells the time.")]})

    async def run(url, token):
        async with over_http(url, {"Authorization": f"Bearer {token}"}) as client:
            return await client.call_tool("now", {"zone": "UTC"})

    with http_server("sdk_http.py") as port:
        entry = {"url": f"http://127.0.0.1:{port}/mcp"}
        serve = {
            "clients": {"ana": {"token": ["${CLOCK_KEY}", "${OTHER_KEY}"]}},
            "servers": {"kit/clock": {"auth": "passthrough"}} if passed else {},
        }
        catalogs = {"kit": {"type": "mcp", "servers": {"clock": entry}}}
        with served(workshop.uri, settings(catalogs, **serve)) as (url, _):
            tokens = ("ana-4711-token", KEY, "ana-4711-token")
            errors = [asyncio.run(run(url, token)).is_error for token in tokens]

    assert errors == [True, not passed, True]


def test_changed_settings_keep_the_sessions_of_unchanged_servers(
    desk_uri, desk, gateway_of, settings
):
    async def run():
        async with gateway_of(desk_uri, desk) as gateway:
            caller = gateway.caller
            client = gateway.access.clients.of_headers({})
            tool = await (await gateway.access.view(client)).board.tool("kit/desk/echo")
            states = []
            for catalogs in (desk, {}):
                await caller.call(client, tool, {"text": "x"})
                await caller.reload(settings(catalogs))
                health = caller.health()
                states.append(
                    (health.get("kit/desk", {}).get("state"), caller.call_problem(tool, ""))
                )
            return states

    (state, callable_), (gone, why) = asyncio.run(run())

    assert (state, callable_) == ("up", "")
    assert gone is None
    assert "has nothing that runs it" in why


@pytest.mark.parametrize("era", ["legacy"])
def test_a_slow_start_of_a_server_does_not_block_other_sessions(
    desk_uri, desk, served, settings, over_http, tmp_path
):
    server = desk["kit"]["servers"]["desk"]
    once = tmp_path / "once"
    script = f"mkdir {once} && sleep 3600; exec {sys.executable} {server['args'][0]}"
    server |= {"command": "bash", "args": ["-c", script]}

    async def run(url):
        async with over_http(url) as one, over_http(url) as other:
            waiting = asyncio.create_task(one.call_tool("echo", {"text": "x"}))
            while not once.exists():
                await asyncio.sleep(0.01)
            answer = await other.call_tool("echo", {"text": "x"})
            waiting.cancel()
            return text_of(answer)

    with served(desk_uri, settings()) as (url, _):
        assert asyncio.run(run(url)) == "x"


@pytest.mark.slow
@pytest.mark.parametrize("era", ["legacy"])
def test_the_gateway_stops_although_servers_of_ended_sessions_are_slow_to_end(
    desk_uri, desk, over_http, tmp_path
):
    server = desk["kit"]["servers"]["desk"]
    ended = tmp_path / "ended"
    script = f"trap '' TERM; {sys.executable} {server['args'][0]}; touch {ended}; sleep 3600"
    server |= {"command": "bash", "args": ["-c", script]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": desk["kit"]["servers"]}))
    file = tmp_path / "pegboard.toml"
    file.write_text(
        f'[board]\nuri = "{desk_uri}"\n[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\n'
    )
    command = [sys.executable, "-m", "pegboard", "serve", "-c", str(file), "--port", "0"]

    async def run(url):
        async with over_http(url) as client:
            assert text_of(await client.call_tool("echo", {"text": "x"})) == "x"
        while not ended.exists():
            await asyncio.sleep(0.01)

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as gateway:
        asyncio.run(run(re.search(r"http://\S+/mcp", gateway.stderr.readline())[0]))
        gateway.terminate()
        gateway.wait()

    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(ended) in _text(path)]
    assert not left


def _text(path):
    with suppress(OSError):
        return path.read_text(errors="replace")
    return ""
