"""Live MCP servers whose answers are too large or endless, over stdio and HTTP."""

import pytest

from tests.catalogs.mcp_servers import (
    failure_in_time,
    http_server,
    names,
    only_failure,
    raw,
)


def test_a_server_that_refuses_as_if_it_had_ended_fails_with_what_it_says(servers):
    listing = servers({"good": raw("good"), "raw": raw("closed")})

    assert names(listing) == ["good"]
    assert "it answered tools/list with the error -32000: no more today" in listing.failures[0].why


def test_a_server_that_writes_much_on_stderr_is_listed(servers):
    assert names(servers({"raw": raw("stderr")})) == ["good"]


@pytest.fixture(scope="module")
def hostile_port():
    with http_server("hostile_http.py") as port:
        yield port


def test_an_event_without_end_fails_at_the_limit(servers, hostile_port):
    entry = {"url": f"http://127.0.0.1:{hostile_port}/events"}

    assert "SSE stream failed" in only_failure(servers({"raw": entry}, max_bytes=2_000_000))


@pytest.mark.parametrize("path", ["headers", "silence"])
def test_an_answer_that_trickles_does_not_outlast_the_timeout(servers, hostile_port, path):
    entry = {"url": f"http://127.0.0.1:{hostile_port}/{path}"}

    why, _ = failure_in_time(servers, entry, lambda why: "did not answer within" in why)

    assert "raise timeout" in why
