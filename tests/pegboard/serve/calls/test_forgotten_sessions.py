"""Servers over HTTP that forget sessions, refuse calls, or answer with invalid results."""

import asyncio
import os
import shutil
import signal
import socket
import threading
import time
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from pegboard.serve.calls import connection as connections
from tests.catalogs.mcp_servers import http_server
from tests.children import end_child, start_child
from tests.pegboard.serve.conftest import loaded
from tests.pegboard.serve.office import text_of

PACKAGE = "@modelcontextprotocol/server-everything@2026.8.31"
EVERYTHING = ["npx", "-y", PACKAGE, "streamableHttp"]
UNKNOWN_SESSION = {
    "the protocol's 404": (404, {"code": -32001, "message": "Session not found"}),
    "TypeScript, 400": (400, {"code": -32000, "message": "Bad Request: No valid session ID"}),
    "TypeScript, new transport": (400, {"code": -32000, "message": "Server not initialized"}),
    "Python, 400": (400, {"code": -32600, "message": "Bad Request: Missing session ID"}),
    "Go, text": (404, "session not found"),
    "Go, 400": (400, "Invalid session ID"),
    "Rust, 401": (401, "Unauthorized: Session not found"),
    "Java": (404, {"code": -32603, "message": "Session not found: 4711"}),
    "a proxy's 503": (503, "<html>no available server</html>"),
    "nothing but 400": (400, ""),
    "nothing but 410": (410, ""),
    "an error in 200": (200, {"code": -32001, "message": "Unknown session"}),
    "no handshake": (200, {"code": -32002, "message": "Server not initialized yet"}),
    "500": (500, {"code": -32603, "message": "Session 4711 does not exist"}),
}


class Nothing(set):
    """A set that keeps nothing."""

    def add(self, _):
        pass


@pytest.fixture
def server():
    server = loaded("forgetful").Forgetful()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def opened(desk_uri, session_of, server):
    """A function: a client of a gateway to the forgetful server, which stands for the desk."""
    catalogs = {"kit": {"type": "mcp", "servers": {"desk": {"url": server.url}}}}

    @asynccontextmanager
    async def session(**serve):
        async with session_of(desk_uri, catalogs, **serve) as (_, client):
            yield client

    return session


def calls(opened, *texts, between=lambda: None):
    """Return the results of calls; `between` is done after the first one."""

    async def run():
        results = []
        async with opened() as client:
            for text in texts:
                results.append(await client.call_tool("echo", {"text": text}))
                if len(results) == 1:
                    between()
        return results

    return asyncio.run(run())


@pytest.mark.parametrize("form", UNKNOWN_SESSION)
def test_a_call_in_a_forgotten_session_is_made_once_in_a_new_one(opened, server, form):
    server.unknown = UNKNOWN_SESSION[form]

    results = calls(opened, "one", "two", "three", between=server.sessions.clear)

    assert [text_of(result) for result in results] == ["done"] * 3
    assert [call["arguments"]["text"] for call in server.calls] == ["one", "two", "three"]
    assert server.opened == 2


def test_a_server_that_forgets_each_session_is_called_twice_and_quoted(opened, server):
    server.unknown = (401, "Unauthorized: Session not found")

    def never_remember():
        server.sessions = Nothing()

    _, result = calls(opened, "one", "two", between=never_remember)

    assert result.is_error
    assert "Unauthorized: Session not found" in text_of(result)
    assert server.opened == 2
    assert len(server.calls) == 1


REFUSALS = [
    (400, {"code": -32602, "message": "There is no train 7."}),
    (403, "Trains are not for you."),
    (422, "Which train?"),
    (429, "Slowly, please."),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: str(refusal[0]))
def test_a_call_that_is_refused_for_another_reason_is_not_repeated(opened, server, refusal):
    server.answers = [refusal]
    said = refusal[1]["message"] if isinstance(refusal[1], dict) else refusal[1]

    refused, after = calls(opened, "one", "two")

    assert refused.is_error
    assert said in text_of(refused)
    assert "had an effect" not in text_of(refused)
    assert text_of(after) == "done"
    assert (len(server.calls), server.opened) == (2, 1)


@pytest.mark.parametrize("code", [-32000, -32001, -32002, -32042, -32099, -32600, 7])
@pytest.mark.parametrize("message", ["Payroll is locked until Monday.", "Connection closed"])
def test_an_error_of_json_rpc_is_an_answer_whatever_its_code(opened, server, code, message):
    server.answers = [{"error": {"code": code, "message": message, "data": {"until": "Monday"}}}]

    refused, after = calls(opened, "one", "two")

    assert refused.is_error
    assert f"{code}: {message}" in text_of(refused)
    assert '{"until": "Monday"}' in text_of(refused)
    assert text_of(after) == "done"
    assert (len(server.calls), server.opened) == (2, 1)


FAILURES = {
    "HTTP 500": ((500, "Oops"), "Oops"),
    "HTTP 502": ((502, "upstream prematurely closed"), "prematurely"),
    "not JSON-RPC": ((200, "<html>"), "content type"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_after_a_call_was_sent_says_that_it_may_have_had_an_effect(opened, server, name):
    answer, said = FAILURES[name]
    server.answers = [answer]

    failed, after = calls(opened, "one", "two")

    assert failed.is_error
    assert connections.UNKNOWN in text_of(failed)
    assert said in text_of(failed)
    assert text_of(after) == "done"
    assert len(server.calls) == 2


WIDGET = {"type": "widget", "html": "<b>"}
TEXT = {"type": "text", "text": "12 free"}
NAN = float("nan")


@pytest.mark.parametrize(
    ("result", "content", "structured"),
    [
        ({"structuredContent": {"n": 7}}, ['{"n": 7}'], {"n": 7}),
        ({"content": [WIDGET, TEXT]}, ['{"type": "widget", "html": "<b>"}', "12 free"], None),
        ({"content": [TEXT], "structuredContent": {"n": NAN}}, ["12 free"], {"n": None}),
        ({"content": [TEXT], "structuredContent": [1, 2]}, ["12 free"], None),
        ({"structuredContent": [1, 2]}, ["[1, 2]"], None),
        ({"content": "plain"}, ["plain"], None),
        ({"content": TEXT}, ["12 free"], None),
        ({"content": None}, [], None),
        ({}, [], None),
        ({"toolResult": "of 2024"}, ["of 2024"], None),
    ],
)  # fmt: skip
def test_a_slightly_invalid_result_is_handed_on_as_far_as_it_is_valid(
    opened, server, result, content, structured
):
    server.answers = [{"result": result}]

    (handed_on,) = calls(opened, "one")

    assert not handed_on.is_error
    assert [block.text for block in handed_on.content] == content
    assert handed_on.structured_content == structured


def test_metadata_of_requests_and_results_passes(opened, server):
    server.answers = [{"result": {"content": [TEXT], "_meta": {"desk/colour": "red"}}}]

    async def run():
        async with opened() as client:
            meta = {"example.com/trip": "4711", "pegboard/session": "mine"}
            return await client.call_tool("echo", {"text": "x"}, meta=meta)

    result = asyncio.run(run())

    (sent,) = server.calls
    assert sent["_meta"]["example.com/trip"] == "4711"
    assert "pegboard/session" not in sent["_meta"]
    assert result.meta["desk/colour"] == "red"


def test_a_restarted_server_of_the_python_sdk_answers_the_first_call(
    workshop, session_of, monkeypatch
):
    """It knows no session of the process before it."""
    monkeypatch.setenv("CLOCK_KEY", "open-sesame-4711")
    workshop.publish({"clock": [workshop.tool("now", "Tells the time.", zone="where")]})

    async def run():
        with http_server("sdk_http.py") as port:
            headers = {"Authorization": "Bearer ${CLOCK_KEY}"}
            entry = {"url": f"http://127.0.0.1:{port}/mcp", "headers": headers}
            catalogs = {"kit": {"type": "mcp", "servers": {"clock": entry}}}
            session = session_of(workshop.uri, catalogs)
            _, client = await session.__aenter__()
            before = await client.call_tool("now", {"zone": "UTC"})
        with http_server("sdk_http.py", port):
            after = await client.call_tool("now", {"zone": "CET"})
            await session.__aexit__(None, None, None)
        return before, after

    assert [text_of(result) for result in asyncio.run(run())] == ["UTC", "CET"]


@pytest.mark.slow
def test_a_restarted_server_of_the_typescript_sdk_answers_the_first_call(workshop, session_of):
    if shutil.which("npx") is None:
        pytest.skip("npx is not installed, by which the server is started")
    workshop.publish({"every": [workshop.tool("echo", "Repeats.", message="what")]})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    entry = {"url": f"http://127.0.0.1:{port}/mcp"}
    catalogs = {"kit": {"type": "mcp", "servers": {"every": entry}}}

    @contextmanager
    def running():
        server = start_child(EVERYTHING, env={**os.environ, "PORT": str(port)})
        try:
            while not is_open(port):
                if server.poll() is not None:
                    pytest.skip("npm could not install the server")
                time.sleep(0.1)
            yield
        finally:
            with suppress(ProcessLookupError):  # npx leaves its child behind
                os.killpg(server.pid, signal.SIGKILL)
            end_child(server)
            while is_open(port):  # the child of npx ends a moment after it
                time.sleep(0.05)

    async def run():
        with running():
            session = session_of(workshop.uri, catalogs)
            _, client = await session.__aenter__()
            before = await client.call_tool("echo", {"message": "before"})
        with running():
            after = await client.call_tool("echo", {"message": "after"})
            await session.__aexit__(None, None, None)
        return before, after

    results = asyncio.run(run())

    assert [text_of(result) for result in results] == ["Echo: before", "Echo: after"]


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
