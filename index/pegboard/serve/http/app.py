"""The gateway as a web application."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pegboard import __version__
from pegboard.errors import ConfigurationError
from pegboard.serve.gateway import Gateway
from pegboard.serve.http import api, ard
from pegboard.serve.http.middleware import LOOPBACK, ClientMiddleware
from pegboard.serve.http.responses import error_response, reported_http_error
from pegboard.serve.mcp.changes import following_changes
from pegboard.serve.mcp.endpoint import McpEndpoint
from pegboard.serve.mcp.server import mcp_server

PAGE = Path(__file__).with_name("page")
"""The folder of the page's files."""
PUBLIC = ("/openapi.json", "/healthz")
"""Paths besides the page that need no credentials, since they reveal nothing of the board."""


def create_app(gateway: Gateway, host: str = "127.0.0.1") -> FastAPI:
    """Return the gateway as an ASGI application: `/mcp`, `/healthz`, the HTTP API and the page.

    Args:
        host: the address that it listens on. On loopback, only requests to loopback are answered,
            so that no web page can reach it under another name.

    Raises:
        ConfigurationError: other machines could reach the gateway without credentials.
    """
    local = host in LOOPBACK
    if not local and gateway.access.clients.is_open:
        raise ConfigurationError(
            f"On {host} anyone could call the tools of the board. Expected [serve.clients.NAME] "
            f"with a token for each client, and none without; or --host 127.0.0.1."
        )
    gateway.access.requires_credentials = not local
    server = mcp_server(gateway)
    mcp_app = server.http_app("/mcp")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with mcp_app.lifespan(mcp_app), following_changes(gateway, server.sessions):
            yield
            await gateway.caller.close()  # calls under way end, for which the SDK waits
        await gateway.close()

    provider = gateway.access.identity_provider
    auth_routes = provider.get_routes("/mcp") if provider is not None else []
    public = {*PUBLIC, *(route.path for route in auth_routes)}
    app = FastAPI(
        title="Pegboard gateway",
        description="Finds the right few tools for a request. Every answer is about the tools "
        "that the client may see, or an error: what is wrong, where, and the next step.",
        version=__version__,
        servers=[{"url": "."}],
        docs_url=None,
        redoc_url=None,
        routes=[
            *auth_routes,
            Route("/mcp", endpoint=McpEndpoint(mcp_app)),
            Route("/", lambda _: FileResponse(PAGE / "index.html")),
            Mount("/page", StaticFiles(directory=PAGE)),
        ],
        lifespan=lifespan,
        middleware=[Middleware(ClientMiddleware, gateway=gateway, local=local, public=public)],
        exception_handlers={HTTPException: _refusal, RequestValidationError: _refusal},
    )
    app.state.gateway = gateway
    for router in (api.health_router, api.router, ard.router):
        app.include_router(router)
    return app


async def _refusal(request: Request, error: Exception) -> Response:
    """Answer a request with an unknown path or invalid parameters."""
    problem = reported_http_error(error)
    return ard.refusal(problem) if request.url.path == ard.SEARCH else error_response(problem)
