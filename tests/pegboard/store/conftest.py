"""Object stores on this machine: moto's S3 as a process, and servers that refuse in every way a
store can.

Tests that need an emulator are marked `slow`.
"""

import os
import re
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import pegboard
from pegboard.errors import StoreError
from tasks.lake.files import Lake
from tasks.settings.configuration import Configuration, load_configuration
from tests.children import end_child, start_child

KEY = "AKIAPEGBOARDTEST"
SECRET = "s3cr3t/of+the=store"


@dataclass(frozen=True)
class S3:
    """A server that speaks S3. It takes any key, but enforces conditional writes."""

    endpoint: str

    def bucket(self) -> str:
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT"))
        return name

    def contents(self, bucket: str) -> dict[str, bytes]:
        """Every object of a bucket."""
        from obstore.store import S3Store

        credentials = {"access_key_id": "x", "secret_access_key": "x", "region": "us-east-1"}
        config: Any = {"endpoint": self.endpoint, **credentials}
        store = S3Store(bucket, config=config, client_options={"allow_http": True})
        paths = [meta["path"] for page in store.list() for meta in page]
        return {path: bytes(store.get(path).bytes()) for path in paths}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_server(command: list[str], port: int, log: Path) -> subprocess.Popen[bytes]:
    """The process of a server, once it listens."""
    with log.open("wb") as out:
        process = start_child(command, stdout=out, stderr=subprocess.STDOUT)
    while process.poll() is None:  # pytest-timeout is the guard
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.1)
    raise RuntimeError(f"{command[0]} did not start: {log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def server() -> Callable[[list[str], int, Path], subprocess.Popen[bytes]]:
    return start_server


@pytest.fixture(scope="session")
def port() -> Callable[[], int]:
    return free_port


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = start_server(command, port, tmp_path_factory.mktemp("moto") / "log")
    yield S3(f"http://127.0.0.1:{port}")
    end_child(process)


@pytest.fixture(autouse=True)
def _no_store_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if re.match("AWS_|AZURE_|AZURITE_|GOOGLE_|PEGBOARD_BOARD", name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Credentials in the environment, as for any program that speaks S3."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return KEY, SECRET


@pytest.fixture
def configured(workshop: Any) -> Callable[..., Configuration]:
    """Write a pegboard.toml with the catalog `kit` for a board at an address, and read it."""

    def configured(uri: str, **storage: str) -> Configuration:
        options = "".join(f'{name} = "{value}"\n' for name, value in storage.items())
        text = f'[board]\nuri = "{uri}"\nreport = false\n[board.storage]\n{options}'
        text += '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
        text += '[[indexes]]\nencoder = "hashing/256"\n'
        workshop.uri = uri
        return load_configuration(workshop.write("pegboard.toml", text))

    return configured


@pytest.fixture
def fails() -> Callable[..., str]:
    """Call something that has to fail; returns the message, after a look for secrets in the
    traceback."""

    def fails(call: Callable[[], object], match: str | None = None, error: Any = StoreError) -> str:
        with pytest.raises(error, match=match) as raised:
            call()
        shown = "".join(traceback.format_exception(raised.value))
        assert KEY not in shown
        assert SECRET not in shown
        return str(raised.value)

    return fails


@pytest.fixture
def board_and_lake_fail(fails: Callable[..., str]) -> Callable[..., list[str]]:
    """Open a board and read its lake, which have to fail alike; returns both messages."""

    def both_fail(uri: str, *expected: Any) -> list[str]:
        calls = (lambda: pegboard.open(uri), lambda: Lake(uri).read_json("latest.json"))
        return [fails(call, *expected) for call in calls]

    return both_fail


class Refusals:
    """Starts servers that answer everything alike, or never: `refusing(403, "AccessDenied")`,
    `refusing(None)`.

    Attributes:
        requests: the methods and paths of all requests, in the order in which they came.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._servers: list[ThreadingHTTPServer] = []
        self._ended = threading.Event()

    def __call__(self, status: int | None, code: str = "Trouble", message: str = "no") -> str:
        requests = self.requests
        ended = self._ended

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                requests.append(f"{self.command} {self.path}")
                if status is None:
                    ended.wait()
                    self.close_connection = True
                    return
                error = f"<Code>{code}</Code><Message>{message}</Message>"
                body = f"<?xml version='1.0'?><Error>{error}</Error>".encode()
                self.send_response(status)
                self.send_header("content-type", "application/xml")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None: ...

        httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        httpd.daemon_threads = True
        self._servers.append(httpd)
        threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{httpd.server_port}"

    def end(self) -> None:
        self._ended.set()
        for httpd in self._servers:
            httpd.shutdown()
            httpd.server_close()


@pytest.fixture
def refusing() -> Iterator[Refusals]:
    refusals = Refusals()
    yield refusals
    refusals.end()
