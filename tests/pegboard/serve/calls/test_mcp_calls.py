"""Calls of configured MCP servers: start, reuse, restart and limits of their sessions."""

import asyncio
import base64
import os
import sys
from contextlib import AsyncExitStack

import pytest

from pegboard.serve.mcp.changes import following_changes
from pegboard.serve.mcp.sessions import Sessions
from pegboard.servers.messages import NOT_SHOWN
from tests.catalogs.mcp_servers import http_server
from tests.pegboard.serve.office import called, text_of


@pytest.fixture
def call(desk_uri, desk, call):
    """A function: the results of several calls one after the other, through one gateway."""
    return lambda *calls, uri=desk_uri, **serve: call(uri, *calls, **{"catalogs": desk, **serve})


def test_a_server_is_started_for_its_first_call_and_kept(call, tmp_path):
    first, second, starts = call(
        ("echo", {"text": "one"}), ("kit/desk/echo", {"text": "two"}), ("count_starts", {})
    )

    assert [text_of(first), text_of(second), text_of(starts)] == ["one", "two", "1"]


def test_arguments_that_violate_the_schema_are_not_sent(call, tmp_path):
    (result,) = call(("echo", {"txt": 5}))

    assert result.is_error
    assert "'text' is a required property" in text_of(result).replace('"', "'")
    assert not (tmp_path / "starts").exists()


def test_a_server_that_dies_in_a_call_is_restarted_for_the_next(call):
    died, starts = call(("die", {}), ("count_starts", {}))

    assert died.is_error
    assert "broke off" in text_of(died)
    assert text_of(starts) == "2"


def test_a_call_without_an_answer_times_out_and_others_continue(desk_uri, desk, session_of):
    async def run():
        async with session_of(desk_uri, desk, calls={"timeout": 5}) as (_, client):
            await client.call_tool("echo", {"text": "ready"})
            waiting = asyncio.create_task(client.call_tool("wait_forever", {}))
            meanwhile = await client.call_tool("echo", {"text": "meanwhile"})
            assert not waiting.done()
            return meanwhile, await waiting, await client.call_tool("count_starts", {})

    meanwhile, waited, starts = asyncio.run(run())

    assert text_of(meanwhile) == "meanwhile"
    assert "did not answer within 5 seconds" in text_of(waited)
    assert text_of(starts) == "1"


def test_an_answer_that_is_too_long_fails_only_its_own_call(call):
    long, after, starts = call(
        ("write_much", {"size": 50_000}),
        ("echo", {"text": "after"}),
        ("count_starts", {}),
        calls={"max_bytes": 10_000},
    )

    assert "has more than 10,000 bytes" in text_of(long)
    assert (text_of(after), text_of(starts)) == ("after", "1")


SECRET = "pat4711-abcdef0815"


def test_variables_of_a_server_are_redacted_in_everything_it_sends(call, desk, monkeypatch):
    """The name of the variable does not matter, unless it is marked public."""
    monkeypatch.setenv("GITHUB_PAT", SECRET)

    results, error = call(("tell_secret", {}), ("tell_secret", {"how": "error"}))
    desk["kit"]["servers"]["desk"]["public"] = ["GITHUB_PAT"]
    [public] = call(("tell_secret", {}))

    assert text_of(results) == "The key is ***."
    assert "***" in text_of(error)
    dumps = [result.model_dump_json(by_alias=True) for result in (results, error, public)]
    assert [dump.count(SECRET) for dump in dumps] == [0, 0, 5]
    encoded = base64.b64encode(b"\x89PNG" + SECRET.encode()).decode()
    assert [dump.count(encoded[8:-4]) for dump in dumps] == [0, 0, 2]
    _, image, resource = results.content  # clients refuse redacted base64
    assert image.text == resource.resource.text == NOT_SHOWN


def test_errors_of_a_tool_are_forwarded(call):
    (result,) = call(("fail", {}))

    assert (result.is_error, text_of(result)) == (True, "There is no ink.")


DIES = ["-c", "raise SystemExit('Traceback: /srv/secret/place.py')"]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"command": "no-such-command", "args": ["${GITHUB_PAT}"]}, "no-such-command"),
        ({"command": sys.executable, "args": DIES}, "/srv/secret/place.py"),
        ({"url": "http://127.0.0.1:1/mcp"}, "cannot be reached"),
    ],
)
def test_the_reason_why_a_server_cannot_start_is_logged_once_and_not_shown(
    call, monkeypatch, caplog, server, expected
):
    monkeypatch.setenv("GITHUB_PAT", SECRET)
    catalogs = {"kit": {"type": "mcp", "servers": {"desk": server}}}

    results = call(("echo", {"text": "x"}), ("echo", {"text": "y"}), catalogs=catalogs)

    assert all("the gateway's log says why" in text_of(result) for result in results)
    assert not any(expected in text_of(result) for result in results)
    assert caplog.text.count(expected) == 1
    assert SECRET not in caplog.text


def test_servers_end_with_the_gateway(desk_uri, desk, gateway_of):
    async def run():
        async with gateway_of(desk_uri, desk) as gateway:
            await called(gateway, "echo", {"text": "x"})
            states = [gateway.caller.health()["kit/desk"]["state"]]
        return [*states, gateway.caller.health()["kit/desk"]["state"]]

    assert asyncio.run(run()) == ["up", "idle"]


@pytest.mark.parametrize("era", ["legacy"])
def test_progress_is_forwarded_without_secrets(desk_uri, desk, session_of, monkeypatch):
    monkeypatch.setenv("GITHUB_PAT", SECRET)
    seen = []

    async def note(progress, total, message):
        seen.append((progress, total, message))

    async def run():
        async with session_of(desk_uri, desk) as (_, client):
            await client.call_tool("echo", {"text": "opens the session with the desk"})
            return await client.call_tool("report_progress", {}, progress_callback=note)

    assert text_of(asyncio.run(run())) == "Done."
    assert seen == [(step, 3, "***") for step in (1, 2, 3)]


async def ended(gateway):
    """Wait until the desk has no session; the test's timeout is the limit."""
    async with following_changes(gateway, Sessions(gateway.access)):
        while gateway.caller.health()["kit/desk"]["state"] == "up":
            await asyncio.sleep(0.01)


def test_a_frozen_server_is_ended_and_restarted(desk_uri, desk, session_of, monkeypatch):
    monkeypatch.setattr("pegboard.serve.calls.connection.PING_SECONDS", 0.2)

    async def run():
        async with session_of(desk_uri, desk, calls={"timeout": 6}) as (gateway, client):
            await client.call_tool("echo", {"text": "ready"})
            frozen = await client.call_tool("freeze", {})
            await ended(gateway)
            return frozen, await client.call_tool("count_starts", {})

    frozen, starts = asyncio.run(run())

    assert "did not answer" in text_of(frozen)
    assert text_of(starts) == "2"
    assert os.environ.get("PEGBOARD_LISTING") is None


def test_an_idle_server_is_ended_and_restarted_for_the_next_call(desk_uri, desk, session_of):
    async def run():
        async with session_of(desk_uri, desk, calls={"idle": 0.1}) as (gateway, client):
            await client.call_tool("echo", {"text": "x"})
            await ended(gateway)
            return await client.call_tool("count_starts", {})

    assert text_of(asyncio.run(run())) == "2"


def test_a_restarted_http_server_is_reconnected(workshop, gateway_of, connect, monkeypatch):
    """The first call may fail with a lost session; the gateway needs no restart."""
    monkeypatch.setenv("CLOCK_KEY", "open-sesame-4711")
    monkeypatch.setattr("pegboard.serve.calls.upstreams.RETRY_SECONDS", 0.0)
    workshop.publish({"clock": [workshop.tool("now", "Tells the time.")]})

    async def run():
        with http_server("sdk_http.py") as port:
            headers = {"Authorization": "Bearer ${CLOCK_KEY}"}
            entry = {"url": f"http://127.0.0.1:{port}/mcp", "headers": headers}
            catalogs = {"kit": {"type": "mcp", "servers": {"clock": entry}}}
            opened = AsyncExitStack()
            gateway = await opened.enter_async_context(gateway_of(workshop.uri, catalogs))
            client = await opened.enter_async_context(connect(gateway))
            result_before = await client.call_tool("now", {"zone": "UTC"})
        async with opened:
            error_meanwhile = await client.call_tool("now", {"zone": "UTC"})
            with http_server("sdk_http.py", port):
                result_after = [await client.call_tool("now", {"zone": "CET"}) for _ in range(2)]
            return result_before, error_meanwhile, result_after

    result_before, error_meanwhile, result_after = asyncio.run(run())

    assert text_of(result_before) == "UTC"
    assert error_meanwhile.is_error
    assert text_of(result_after[-1]) == "CET"
