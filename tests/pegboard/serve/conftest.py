"""Gateways to published boards, and the servers of their tools."""

import asyncio
import importlib.util
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import mcp
import pytest
import uvicorn
from mcp.client.streamable_http import streamable_http_client

from pegboard.opening import open_board
from pegboard.serve.gateway import Gateway
from pegboard.serve.http.app import create_app
from pegboard.serve.mcp.server import mcp_server
from pegboard.serve.settings import GatewaySettings, ServeSettings
from tests.pegboard.serve.office import office as office

ERAS = ("legacy", "2026-07-28")
"""The protocols before and since 2026-07-28, as the SDK's client takes them."""
UPSTREAM = Path(__file__).parent / "upstream"


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"upstream_{name}", UPSTREAM / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gateway_of() -> Callable[..., Any]:
    """A function: a gateway to a board with settings of `[serve]`; it is closed after the block."""

    @asynccontextmanager
    async def opened(uri: str, catalogs: Any = None, **serve: Any) -> AsyncGenerator[Gateway]:
        settings = GatewaySettings(
            serve=ServeSettings.model_validate(serve), catalogs=catalogs or {}
        )
        gateway = Gateway(settings, open_board(uri, refresh=0))
        try:
            yield gateway
        finally:
            await gateway.close()

    return opened


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def connect(era: str) -> Callable[..., Any]:
    """A function: the SDK's client, connected to a gateway in each protocol era."""

    def connected(gateway: Gateway, **options: Any) -> mcp.Client:
        return mcp.Client(mcp_server(gateway)._mcp_server, mode=era, **options)

    return connected


@pytest.fixture
def session_of(gateway_of: Callable[..., Any], connect: Callable[..., Any]) -> Callable[..., Any]:
    """A function: a gateway as `gateway_of` opens it, and a client of it with the given options."""

    @asynccontextmanager
    async def opened(
        uri: str, catalogs: Any = None, *, options: Any = None, **serve: Any
    ) -> AsyncGenerator[tuple[Gateway, mcp.Client]]:
        async with (
            gateway_of(uri, catalogs, **serve) as gateway,
            connect(gateway, **(options or {})) as client,
        ):
            yield gateway, client

    return opened


@pytest.fixture
def call(session_of: Callable[..., Any]) -> Callable[..., Any]:
    """A function: the results of calls (name, arguments) over MCP, one after the other."""

    def results(uri: str, *calls: Any, **serve: Any) -> list[Any]:
        async def run() -> list[Any]:
            async with session_of(uri, **serve) as (_, client):
                return [await client.call_tool(name, arguments) for name, arguments in calls]

        return asyncio.run(run())

    return results


@pytest.fixture
def ask(gateway_of: Callable[..., Any]) -> Callable[..., Any]:
    """A function: the responses of a gateway to HTTP requests (method, address, options), one after
    the other.
    """

    async def answers(uri: str, requests: Sequence[Any], serve: Any) -> list[httpx.Response]:
        async with gateway_of(uri, **serve) as gateway:
            transport = httpx.ASGITransport(create_app(gateway))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1:8720"
            ) as client:
                return [
                    await client.request(method, address, **(options[0] if options else {}))
                    for method, address, *options in requests
                ]

    def responses(uri: str, *requests: Any, **serve: Any) -> list[httpx.Response]:
        return asyncio.run(answers(uri, requests, serve))

    return responses


@pytest.fixture(scope="session")
def desk_uri(tmp_path_factory: pytest.TempPathFactory, workshop_type: Any) -> str:
    """A board of the desk (an MCP server), the shop (an OpenAPI document) and functions."""
    workshop = workshop_type(tmp_path_factory.mktemp("desk"))
    workshop.servers({"desk": loaded("desk").TOOLS})
    workshop.write("shop.json", loaded("shop").DOCUMENT)
    catalogs = f"""
[catalogs.kit]
type = "mcp-dump"
path = "servers.json"

[catalogs.shop]
type = "openapi"
path = "shop.json"

[catalogs.office]
type = "python"
target = "office_functions"
search_path = "{UPSTREAM}"
"""
    workshop.run(workshop.configure(catalogs=catalogs))
    return workshop.uri


@pytest.fixture
def desk(tmp_path: Path) -> dict[str, Any]:
    """`[catalogs]` by which the gateway starts the desk."""
    env = {"STARTS": str(tmp_path / "starts"), "DESK": "${GITHUB_PAT:-none}"}
    server = {"command": sys.executable, "args": [str(UPSTREAM / "desk.py")], "env": env}
    return {"kit": {"type": "mcp", "servers": {"desk": server}}}


@pytest.fixture(scope="session")
def shop_module() -> Any:
    """The module of the shop's API, with its document."""
    return loaded("shop")


@pytest.fixture(scope="session")
def shop() -> Generator[Any]:
    """The shop's API: its `url`, and the paths of its `requests`."""
    server = loaded("shop").serve()
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def served() -> Callable[..., Any]:
    """A function: a gateway over HTTP on loopback; gives its address and the gateway itself."""

    @contextmanager
    def running(uri: str, settings: GatewaySettings) -> Generator[tuple[str, Gateway]]:
        gateway = Gateway(settings, open_board(uri, refresh=0))
        app = create_app(gateway)
        config = uvicorn.Config(
            app, "127.0.0.1", 0, log_level="critical", timeout_graceful_shutdown=0
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}/mcp", gateway
        finally:
            server.should_exit = True  # forced, it would leave what it started
            thread.join()

    return running


@pytest.fixture
def over_http(era: str) -> Callable[..., Any]:
    """A function: the SDK's client over HTTP with the given headers, in each protocol era."""

    @asynccontextmanager
    async def connected(
        url: str, headers: dict[str, str] | None = None, **options: Any
    ) -> AsyncGenerator[mcp.Client]:
        async with httpx2.AsyncClient(headers=headers or {}, timeout=None) as http:
            transport = streamable_http_client(url, http_client=http)
            async with mcp.Client(transport, mode=era, **options) as client:
                yield client

    return connected
