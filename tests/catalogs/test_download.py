"""Documents from misbehaving servers: time and bytes, on the wire and decompressed, are limited."""

import gzip
import json
import socket
import threading
import zlib
from contextlib import suppress

import pytest

from catalogs.openapi.document import download
from pegboard.errors import SourceError

LIMIT = 1_000_000
DOCUMENT = json.dumps({"x": "y" * 1000}).encode()
SECRET = "t0ken"
HEADERS = {"Authorization": "Bearer ${SHOP_TOKEN}"}


class Server:
    """Sends the chunks of a script to each connection; `stopped` ends endless ones.

    Attributes:
        sent: bytes that were accepted by the network.
    """

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/api.json"
        self.script = lambda: iter(())
        self.requests = []
        self.sent = 0
        self.stopped = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        with connection, suppress(OSError):
            self.requests.append(connection.recv(65_536))
            for chunk in self.script():
                if self.stopped.is_set():
                    return
                connection.sendall(chunk)
                self.sent += len(chunk)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    server = Server()
    yield server
    server.stopped.set()
    server.socket.close()


def answer(body, encoding="", status="200 OK", **headers):
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    if encoding:
        lines.append(f"Content-Encoding: {encoding}\r\n")
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{''.join(lines)}\r\n"
    return [head.encode(), body]


def fetch(server, timeout=60):
    return download(f"{server.url}?key=secret", HEADERS, timeout=timeout, max_bytes=LIMIT)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (DOCUMENT, ""),
        (DOCUMENT, "identity"),
        (gzip.compress(DOCUMENT, mtime=0), "gzip"),
        (zlib.compress(DOCUMENT), "deflate"),
    ],
)
def test_a_document_is_downloaded_plain_or_compressed_once(server, body, encoding):
    server.script = lambda: iter(answer(body, encoding))

    assert fetch(server) == DOCUMENT
    assert b"Authorization: Bearer t0ken" in server.requests[0]
    assert b"Accept-Encoding: identity" in server.requests[0]


BOMB = gzip.compress(bytes(100_000_000))


@pytest.mark.parametrize(
    ("chunks", "why"),
    [
        (answer(BOMB, "gzip"), "more than 1,000,000 bytes"),
        (
            answer(gzip.compress(BOMB, mtime=0), "gzip, gzip"),
            "compressed as 'gzip, gzip', expected plain",
        ),
        (answer(DOCUMENT, "br"), "compressed as 'br'"),
        (answer(DOCUMENT, "gzip"), "Cannot fetch .*: DecodingError"),
        (answer(b"", status="404 t0ken secret"), "returned status 404, expected the document"),
        (answer(b"", status="302 Found", Location="/b?key=secret"), r"has moved to .*/b\."),
        (answer(b"", status="302 Found", Location="http://["), r"Cannot fetch|has moved to"),
        ([b"nonsense\r\n\r\n"], "Cannot fetch"),
        ([], "Cannot fetch"),
        ([answer(DOCUMENT)[0]], "Cannot fetch"),
    ],
)
def test_a_reply_other_than_a_document_is_an_error_without_secrets(server, chunks, why):
    server.script = lambda: iter(chunks)

    with pytest.raises(SourceError, match=why) as caught:
        fetch(server)

    assert not any(secret in str(caught.value) for secret in ("secret", SECRET, "key="))


def test_an_endless_body_is_not_read_beyond_the_limit(server):
    def endless():
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield b" " * 65_536

    server.script = endless

    with pytest.raises(SourceError, match="sent more than 1,000,000 bytes"):
        fetch(server)

    assert server.sent < 50 * LIMIT  # what the network buffers hold


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_server_that_trickles_bytes_exceeds_the_timeout(server, head):
    def trickle():
        yield head
        while not server.stopped.wait(0.02):
            yield b"X: y\r\n"

    server.script = trickle

    with pytest.raises(SourceError, match=r"not sent the document after 0\.3 seconds"):
        fetch(server, timeout=0.3)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (None, "the environment variable SHOP_TOKEN is not set"),
        ("t0ken\n", "the value of the header Authorization"),
    ],
)
def test_a_header_that_cannot_be_sent_is_named_without_its_value(server, monkeypatch, token, why):
    monkeypatch.delenv("SHOP_TOKEN")
    if token:
        monkeypatch.setenv("SHOP_TOKEN", token)

    with pytest.raises(SourceError, match=why) as caught:
        fetch(server)

    assert SECRET not in str(caught.value)
    assert server.requests == []
