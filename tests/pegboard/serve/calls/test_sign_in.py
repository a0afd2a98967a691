"""Servers that want OAuth: signed in once by hand, then called with tokens that are kept encrypted
and renewed."""

import asyncio
import socket
import threading
import time
import webbrowser
from contextlib import contextmanager, suppress

import httpx2
import pytest
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.applications import Starlette
from starlette.routing import Mount

from pegboard.errors import ConfigurationError
from pegboard.serve.calls.upstreams import sign_in
from pegboard.serve.settings import GatewaySettings
from pegboard.servers import sign_in as module
from tests.pegboard.serve.office import text_of


@contextmanager
def protected_desk():
    """A desk whose tool `echo` returns its token, with an identity provider that is not at `/`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        base = f"http://127.0.0.1:{listening.getsockname()[1]}/deep"
        registration = ClientRegistrationOptions(enabled=True)
        auth = InMemoryOAuthProvider(base_url=base, client_registration_options=registration)
        desk = FastMCP("desk", auth=auth)

        @desk.tool
        def echo(text: str) -> str:
            return f"{text} {get_access_token().token}"

        app = desk.http_app("/mcp")
        routes = [*auth.get_well_known_routes("/mcp"), Mount("/deep", app)]
        config = uvicorn.Config(Starlette(routes=routes, lifespan=app.lifespan), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"{base}/mcp", auth
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def browse(url):
    """Open a page, and then the callback as soon as a server listens there."""

    def go():
        callback = httpx2.get(url, timeout=None).headers["location"]
        while True:
            with suppress(httpx2.ConnectError):
                return httpx2.get(callback, timeout=None)
            time.sleep(0.01)

    threading.Thread(target=go).start()


def test_tokens_from_signing_in_are_stored_encrypted_and_renewed(
    desk_uri, session_of, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv(module.KEY, "a long random text")
    monkeypatch.setattr(webbrowser, "open", browse)

    async def call(catalogs):
        serve = {"catalogs": catalogs, "calls": {"changed": "allow"}}
        async with session_of(desk_uri, **serve) as (_, client):
            return text_of(await client.call_tool("echo", {"text": "hello"}))

    async def expire(url):
        store = module._token_store("a long random text", tmp_path / "pegboard" / "tokens")
        place = {"key": f"{url}/token_expiry", "collection": "mcp-oauth-token-expiry"}
        await store.put(value={"expires_at": 1.0}, **place)

    with protected_desk() as (url, auth):
        catalogs = {"kit": {"type": "mcp", "servers": {"desk": {"url": url, "auth": "oauth"}}}}
        result_before = asyncio.run(call(catalogs))
        asyncio.run(sign_in(GatewaySettings(catalogs=catalogs), "kit/desk"))
        result_after = asyncio.run(call(catalogs))
        first_tokens = {*auth.access_tokens}
        asyncio.run(expire(url))
        renewed = asyncio.run(call(catalogs))
        second_tokens = {*auth.access_tokens}

    assert "is not available" in result_before
    assert "no user has signed in there; sign in with `pegboard serve --login" in caplog.text
    assert [result_after, renewed] == ["hello ***", "hello ***"]
    assert not first_tokens & second_tokens
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    tokens = {*first_tokens, *second_tokens, *auth.refresh_tokens, *auth.clients}
    assert not any(token.encode() in stored for token in tokens)


@pytest.mark.parametrize(
    ("agent", "key", "problem"),
    [
        ("kit/dest", "x", "No MCP server 'kit/dest'"),
        ("kit/open", "x", 'auth = "oauth"'),
        ("kit/desk", "", "PEGBOARD_TOKEN_KEY is not set"),
    ],
)
def test_a_failed_sign_in_says_why(agent, key, problem, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv(module.KEY, key)
    address = "http://127.0.0.1:1/mcp"
    servers = {"desk": {"url": address, "auth": "oauth"}, "open": {"url": address}}
    settings = GatewaySettings(catalogs={"kit": {"type": "mcp", "servers": servers}})

    with pytest.raises(ConfigurationError) as error:
        asyncio.run(sign_in(settings, agent))

    assert problem in str(error.value)
