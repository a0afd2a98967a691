"""Servers over stdio that flood, hang or write without end: the gateway ends them, and stops."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.records import Tool
from pegboard.serve.calls import connection as connections
from pegboard.serve.calls.connection import Connection
from pegboard.serve.settings import CallSettings
from pegboard.servers import stdio
from pegboard.servers.config import resolve_server
from tests.pegboard.serve.office import text_of

LIAR = Path(__file__).parents[1] / "upstream" / "liar.py"
ECHO = Tool("kit/desk/echo", "kit", "kit/desk", "echo")


@pytest.fixture
def liar(tmp_path, monkeypatch):
    """The entry of a lying server; its processes are told apart by a path that is not there."""
    monkeypatch.setattr(stdio, "EXIT_SECONDS", 0.2)
    return {"command": sys.executable, "args": [str(LIAR), str(tmp_path / "liar")]}


@pytest.fixture
def left(tmp_path):
    """A function: the ids of the server's processes that run."""
    return lambda: processes(tmp_path / "liar")


def processes(mark):
    """Return the ids of the processes whose command line has a mark."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(mark).encode() in command.read_bytes():
                found.append(int(command.parent.name))
    return found


def in_session(entry, use, *, modern=False):
    """Return the result of `use(connection)` in a session with a server."""

    async def run():
        connection = Connection(
            resolve_server(entry, Path()),
            CallSettings(),
            forwards=False,
            modern=modern,
            on_list_changed=lambda change: None,
        )
        await connection.open()
        try:
            return await use(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


async def loop_turns(seconds=0.3):
    """Return how often the event loop selects while nothing is to be done."""
    loop = asyncio.get_running_loop()
    turns = 0
    select = loop._selector.select

    def counted(timeout=None):
        nonlocal turns
        turns += 1
        return select(timeout)

    loop._selector.select = counted
    await asyncio.sleep(seconds)
    loop._selector.select = select
    return turns


LIES = ["hang", "flood", "flood of notifications", "a line without end", "half an answer"]


@pytest.mark.parametrize("lie", [*LIES, "flood, 100 MB and hang"])
def test_a_lying_server_is_gone_when_its_session_is_closed_and_the_loop_rests(liar, left, lie):
    """The call is cancelled in the middle, as by its timeout or a client that left."""

    async def use(connection):
        call = asyncio.create_task(connection.call(ECHO, {"text": lie}))
        await asyncio.sleep(0.5)
        call.cancel()
        await connection.close()
        return left(), await loop_turns()

    running, turns = in_session(liar, use)

    assert running == []
    assert turns < 50


def test_a_server_is_killed_if_its_end_is_interrupted(liar, left, monkeypatch):
    monkeypatch.setattr(stdio, "EXIT_SECONDS", 60.0)

    async def use(connection):
        closing = asyncio.create_task(connection.close())
        await asyncio.sleep(1)  # longer than the flush of messages
        running = left()
        closing.cancel()
        await asyncio.wait({closing})
        while left():
            await asyncio.sleep(0.01)
        return running, await loop_turns()

    running, turns = in_session(liar, use)

    assert len(running) == 1
    assert turns < 50


def test_a_server_that_does_not_end_in_time_is_killed(liar, left, monkeypatch):
    monkeypatch.setattr(stdio, "EXIT_SECONDS", 600.0)
    monkeypatch.setattr(connections, "CLOSE_SECONDS", 0.1)

    async def use(connection):
        await connection.close()
        while left():
            await asyncio.sleep(0.01)
        return await loop_turns()

    assert in_session(liar, use) < 50


@pytest.mark.parametrize("lie", ["flood", "flood of notifications", "a line without end"])
def test_a_server_that_floods_is_ended_and_told_so(liar, left, monkeypatch, lie):
    monkeypatch.setattr("pegboard.servers.messages.MAX_ITEMS", 1_000)
    monkeypatch.setattr(stdio, "MAX_SKIPPED", 10_000_000)

    async def use(connection):
        with pytest.raises(connections.CallProblem) as caught:
            await connection.call(ECHO, {"text": lie})
        return str(caught.value), connection.usable

    why, usable = in_session(liar, use)

    assert "correct the server" in why
    assert "had an effect" in why
    assert not usable
    assert left() == []


def test_a_call_after_an_answer_of_100_mb_works_in_the_same_session(
    desk_uri, session_of, liar, left
):
    catalogs = {"kit": {"type": "mcp", "servers": {"desk": liar}}}

    async def run():
        async with session_of(desk_uri, catalogs) as (_, client):
            started = [
                text_of(await client.call_tool("echo", {"text": text}))
                for text in ("one", "100 MB", "two")
            ]
            return started, left()

    (_, large, after), running = asyncio.run(run())

    assert "The answer has more than" in large
    assert after == "two"
    assert len(running) == 1


def test_a_server_that_starts_slower_than_the_sdk_waits_is_reached(monkeypatch):
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.1)
    entry = {"command": sys.executable, "args": [str(LIAR.with_name("library.py"))]}

    async def use(connection):
        return connection.client.session.protocol_version

    assert in_session(entry, use, modern=True) in MODERN_PROTOCOL_VERSIONS


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_gateway_stops_with_all_its_servers(
    workshop, over_http, liar, tmp_path, left, number, era
):
    workshop.publish({"desk": [workshop.tool("echo", "Repeats.", text="what")]})
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"desk": liar}}))
    file = tmp_path / "pegboard.toml"
    file.write_text(
        f'[board]\nuri = "{workshop.uri}"\n[catalogs.kit]\ntype = "mcp"\npath = "mcp.json"\n'
    )
    command = [sys.executable, "-m", "pegboard", "serve", "-c", str(file), "--port", "0"]

    async def call(url, lie, called):
        async with over_http(url) as client:
            await client.call_tool("echo", {"text": "x"})
            called.release()
            await client.call_tool("echo", {"text": lie})

    async def run(url, gateway):
        called = asyncio.Semaphore(0)
        calls = [asyncio.create_task(call(url, lie, called)) for lie in LIES]
        for _ in LIES:
            await called.acquire()
        await asyncio.sleep(1)
        gateway.send_signal(number)
        await asyncio.to_thread(gateway.wait)
        for task in calls:
            task.cancel()
        await asyncio.wait(calls)

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as gateway:
        asyncio.run(run(re.search(r"http://\S+/mcp", gateway.stderr.readline())[0], gateway))

    assert left() == []
