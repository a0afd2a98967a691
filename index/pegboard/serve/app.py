"""The gateway as a web application and over stdio."""

import socket
from collections.abc import AsyncGenerator, Collection, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI
from fastmcp.server.middleware.rate_limiting import TokenBucketRateLimiter
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from pegboard import __version__
from pegboard.errors import ConfigurationError
from pegboard.serve.access import ANYONE, Client
from pegboard.serve.ard import ArdRegistry
from pegboard.serve.changes import telling_of_changes
from pegboard.serve.gateway import Gateway
from pegboard.serve.http_api import HttpApi
from pegboard.serve.http_errors import ApiError, not_served, unknown_client
from pegboard.serve.mcp_server import mcp_server
from pegboard.serve.request_ids import McpEndpoint, limited

BACKLOG = 2048
"""Connections that wait to be accepted."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_BODY = 1_048_576
"""Bytes of a request's body to the HTTP API."""
MANIFEST = "/.well-known/ard.json"
"""Is answered without credentials, and says more to a client that has some."""
PUBLIC = ("/", "/openapi.json", "/healthz", MANIFEST)
"""Paths that are answered without credentials: nothing of the board is behind them."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # texts cannot become HTML
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Of the page's files: a policy that allows nothing from elsewhere."""


def create_app(gateway: Gateway, host: str = "127.0.0.1") -> FastAPI:
    """Return the gateway as an ASGI application: `/mcp`, `/healthz`, the HTTP API and the page.

    Args:
        host: the address that it listens on; on loopback only requests to loopback are answered,
            so that no web page can reach it under another name.

    Raises:
        ConfigurationError: others than this machine would be let in without credentials.
    """
    check_host(gateway, host)
    gateway.live.closed = host not in LOOPBACK
    mcp_app = mcp_server(gateway).http_app("/mcp")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with mcp_app.lifespan(mcp_app), telling_of_changes(gateway):
            yield
        await gateway.close()

    auth_routes = gateway.auth.get_routes("/mcp") if gateway.auth is not None else []
    routes = [
        *auth_routes,
        Route("/mcp", endpoint=McpEndpoint(mcp_app, gateway.request_ids)),
        *_page_routes(),
    ]
    app = FastAPI(
        title="Pegboard gateway",
        description="Finds the right few tools for a request. Every answer is about the tools "
        "that the client may see.",
        version=__version__,
        servers=[{"url": "."}],
        docs_url=None,
        redoc_url=None,
        routes=routes,
        lifespan=lifespan,
        middleware=[
            Middleware(
                ClientMiddleware,
                gateway=gateway,
                local=host in LOOPBACK,
                public={*PUBLIC, *(route.path for route in auth_routes)},
            )
        ],
        exception_handlers={404: not_served, 405: not_served},
    )
    app.include_router(HttpApi(gateway).router())
    app.include_router(ArdRegistry(gateway).router())
    return app


def check_host(gateway: Gateway, host: str) -> None:
    """Raise ConfigurationError if others than this machine would be let in without credentials."""
    if host not in LOOPBACK and gateway.rules.is_open:
        raise ConfigurationError(
            f"On {host} anyone could call the tools of the board. Expected [serve.clients.NAME] "
            f"with a token for each client, and none without; or --host 127.0.0.1."
        )


class ClientMiddleware:
    """Decides whose request it is, as `request.state.client`; answers 401 for unknown ones.

    Args:
        local: whether only requests to loopback are answered, and to `allowed_hosts`.
        public: paths that are answered without credentials.
    """

    def __init__(self, app: Any, gateway: Gateway, local: bool, public: Collection[str]) -> None:
        self.app, self.gateway, self.public = app, gateway, public
        allowed = gateway.settings.serve.allowed_hosts
        self._hosts = (*LOOPBACK, *allowed) if local else allowed
        self._per_minute = gateway.settings.serve.requests_per_minute
        self._buckets: dict[str, TokenBucketRateLimiter] = {}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        if problem := _forbidden(headers, self._hosts):
            self.gateway.observer.refused("origin", problem)
            error = ApiError(
                403, "other_origin", problem, "Host or Origin",
                "Send it to the address that the gateway listens on, from its own page or no "
                "browser.",
            )  # fmt: skip
            return await error.response()(scope, receive, send)
        path = scope["path"]
        if path.startswith("/page/") or (path in self.public and path != MANIFEST):
            return await self.app(scope, receive, send)
        client = await self.gateway.identified(headers)
        scope.setdefault("state", {})["client"] = client
        if client is None:
            if path == MANIFEST:
                return await self.app(scope, receive, send)
            self.gateway.observer.refused("credentials", path)
            return await unknown_client(self._sign_in())(scope, receive, send)
        # By this the SDK binds a session to who opened it.
        token = AccessToken(token="-", client_id=client.name, scopes=[])  # noqa: S106
        scope["user"] = AuthenticatedUser(token)
        try:
            await self._check_rate(client)
            own = receive if path == "/mcp" else limited(receive, MAX_BODY)
            return await self.app(scope, own, send)
        except ApiError as error:
            self.gateway.observer.refused(error.values["code"], str(error), client.name)
            return await error.response()(scope, receive, send)

    async def _check_rate(self, client: Client) -> None:
        """Raise ApiError if a client made too many requests."""
        most = self._per_minute
        if most is None or client == ANYONE:
            return
        bucket = self._buckets.setdefault(client.name, TokenBucketRateLimiter(most, most / 60))
        if not await bucket.consume():
            raise ApiError(
                429, "too_many_requests", f"More than {most:,} requests in a minute.", "client",
                f"Wait for {60 / most:.0f} seconds.",
            )  # fmt: skip

    def _sign_in(self) -> str:
        """Return the address of the metadata that says where to get a token; "" without one."""
        auth = self.gateway.auth
        base = auth.base_url if auth is not None else None
        return f"{str(base).rstrip('/')}/.well-known/oauth-protected-resource/mcp" if base else ""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of this machine; port 0 means a free one.

    Raises:
        ConfigurationError: the address is in use, or is none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # where that fails, `create_server` leaves its socket open
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"Cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}. "
            f"Expected an address of this machine with --host, such as 127.0.0.1, and with --port "
            f"one from 1024 that no other process listens on; --port 0 takes a free one."
        ) from None


def serve_http(gateway: Gateway, host: str, listening: socket.socket) -> bool:
    """Serve a gateway over HTTP until interrupted; return whether it began to.

    Args:
        host: as in `create_app`.
    """
    import uvicorn

    app = create_app(gateway, host)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt, SystemExit):  # uvicorn exits where the app cannot start
        server.run(sockets=[listening])
    return server.started


async def serve_stdio(gateway: Gateway) -> None:
    """Serve a gateway over stdin and stdout until stdin ends."""
    gateway.rules.named(gateway.stdio_client)
    try:
        async with telling_of_changes(gateway):
            await mcp_server(gateway).run_stdio_async(show_banner=False)
    finally:
        await gateway.close()


def _forbidden(headers: Headers, hosts: Collection[str]) -> str:
    """Say why a request is refused that a web page of another origin may have sent; else ""."""
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if hosts and name.strip("[]") not in hosts:
        expected = ", ".join(hosts)
        return f"The host {host!r:.100} is not served here; expected one of {expected}."
    origin = headers.get("origin")
    if origin and origin.partition("://")[2] != host:
        return f"Pages of {origin!r:.100} may not use this gateway."
    return ""


class _Page(StaticFiles):
    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers.update(HEADERS)
        return response


def _page_routes() -> list[BaseRoute]:
    page = _Page(packages=[("pegboard.serve", "page")])

    async def index(request: Request) -> Response:
        return await page.get_response("index.html", request.scope)

    return [Route("/", index, methods=["GET"]), Mount("/page", page)]
