"""The gateway posts an event when a server says that its list of tools changed."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from pegboard.errors import ConfigurationError
from pegboard.events import catalog_resource
from pegboard.opening import open_board
from pegboard.serve.gateway import Gateway
from pegboard.serve.settings import GatewaySettings, load_gateway_settings
from tests.children import end_child, start_child

SERVER = Path(__file__).parents[3] / "catalogs/servers/changing_http.py"


class Receiver(ThreadingHTTPServer):
    """Takes what is posted.

    Attributes:
        status: of its answers.
        posts: path, headers and body of each post.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 204
        self.posts: list[tuple[str, Any, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Takes a post."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, self.headers, json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Generator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def changing_server(folder: Path) -> Generator[int]:
    """Run an MCP server that announces changes in the block, which gets its port."""
    (folder / "tools.json").write_text('{"now": "Tells the time."}')
    command = [sys.executable, str(SERVER), str(folder / "tools.json"), "0", "announces"]
    server = start_child(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        end_child(server)
        server.stdout.close()


async def announce_until(port: int, condition: Any) -> None:
    """Let the server announce changes until a condition holds: the stream for announcements opens
    after the session.
    """

    def announce() -> None:
        with urlopen(f"http://127.0.0.1:{port}/announce") as answer:
            assert answer.status == 200

    while not condition():
        await asyncio.to_thread(announce)
        await asyncio.sleep(0.05)


def posted(workshop, port: int, condition: Any, **events: Any) -> None:
    """Call a tool through a gateway, and have its server announce changes until a condition."""
    workshop.publish({"clock": [workshop.tool("now", "Tells the time.")]})
    catalogs = {
        "kit": {"type": "mcp", "servers": {"clock": {"url": f"http://127.0.0.1:{port}/mcp"}}}
    }
    settings = GatewaySettings.model_validate(
        {"board": {"uri": workshop.uri}, "catalogs": catalogs, "serve": {"events": events}}
    )

    async def run() -> None:
        gateway = Gateway(settings, open_board(workshop.uri, refresh=0))
        client = gateway.access.clients.of_headers({})
        tool = await (await gateway.access.view(client)).board.tool("kit/clock/now")
        await gateway.caller.call(client, tool, {})
        await announce_until(port, condition)
        await gateway.close()

    asyncio.run(run())


def test_an_announced_change_is_posted_as_prefect_takes_events(workshop, receiver, monkeypatch):
    monkeypatch.setenv("EVENTS_KEY", "topsecret4711value")
    headers = {"Authorization": "Bearer ${EVENTS_KEY}"}
    with changing_server(workshop.folder) as port:
        condition = lambda: receiver.posts  # noqa: E731
        posted(workshop, port, condition, url=f"{receiver.url}/api", headers=headers)

    path, sent, (event,) = receiver.posts[0]
    assert path == "/api/events"
    assert sent["Authorization"] == "Bearer topsecret4711value"
    assert event["event"] == "pegboard.catalog.changed"
    assert event["resource"]["prefect.resource.id"] == catalog_resource(workshop.uri, "kit")
    assert event["payload"] == {"board": workshop.uri, "catalog": "kit", "agent": "kit/clock"}
    assert "topsecret4711value" not in json.dumps(event)


def test_a_webhook_gets_the_post_at_its_own_address_and_its_failure_is_logged(
    workshop, receiver, caplog
):
    receiver.status = 500
    with changing_server(workshop.folder) as port:
        condition = lambda: len(receiver.posts) > 1 and "HTTP 500" in caplog.text  # noqa: E731
        posted(workshop, port, condition, url=f"{receiver.url}/hook?key=hush5544value")

    assert receiver.posts[0][0] == "/hook?key=hush5544value"
    assert "hush5544value" not in caplog.text


def test_a_receiver_that_is_away_is_logged_and_the_gateway_goes_on(workshop, caplog):
    with changing_server(workshop.folder) as port:
        condition = lambda: caplog.text.count("takes no events") > 1  # noqa: E731
        posted(workshop, port, condition, url="http://127.0.0.1:9/api")


@pytest.mark.parametrize("url", ["ftp://acme.example", "http://ana:pass@acme.example/api"])
def test_an_address_for_events_without_http_or_with_credentials_is_refused(tmp_path, url):
    file = tmp_path / "pegboard.toml"
    file.write_text(f'[board]\nuri = "board"\n[serve.events]\nurl = "{url}"\n')

    with pytest.raises(ConfigurationError, match=r"serve\.events\.url"):
        load_gateway_settings(file)
