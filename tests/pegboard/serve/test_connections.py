"""Clients with many requests at once."""

import socket
from urllib.parse import urlsplit

import pytest

from pegboard.serve.settings import GatewaySettings, ServeSettings

ANA, BOB = b"X-User: ana\r\n", b"X-User: bob\r\n"
SETTINGS = GatewaySettings(
    serve=ServeSettings.model_validate(
        {"clients": {name: {"header": {"X-User": name}} for name in ("ana", "bob")}}
    )
)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
BODY = b'{"query": "tea"}'


@pytest.fixture
def connect():
    """A function: a connection to an address that has sent some bytes, closed after the test."""
    sockets = []

    def connected(url, *parts):
        address = urlsplit(url)
        connection = socket.create_connection((address.hostname, address.port), timeout=60)
        sockets.append(connection)
        connection.sendall(b"".join(parts))
        return connection

    yield connected
    for connection in sockets:
        connection.close()


def find(client):
    """The head of a search, whose body is to follow."""
    return (
        b"POST /v1/find HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n%s\r\n" % (len(BODY), client)
    )


def status_of(connection):
    return int(connection.recv(65_536).split()[1])


def test_a_client_with_many_requests_leaves_half_of_the_connections_to_others(
    desk_uri, served, connect, monkeypatch
):
    monkeypatch.setattr("pegboard.serve.limits._max_files", lambda: 4)

    with served(desk_uri, SETTINGS) as (url, _):
        slow = [connect(url, find(ANA), BODY[:1]) for _ in range(2)]
        connect(url, HEALTH, b"\r\n").recv(1)  # those before it have come
        more = status_of(connect(url, find(ANA), BODY))
        other = status_of(connect(url, find(BOB), BODY))
        for connection in slow:
            connection.sendall(BODY[1:])
        ended = [status_of(connection) for connection in slow]
        again = status_of(connect(url, find(ANA), BODY))

    assert (more, other, ended, again) == (429, 200, [200, 200], 200)
