"""The gateway as a web application and over stdio."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncGenerator, Collection, MutableMapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastmcp.server.middleware.rate_limiting import TokenBucketRateLimiter
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pegboard import __version__
from pegboard.errors import ConfigurationError
from pegboard.serve import ard, http_api
from pegboard.serve.access import ANYONE, Client
from pegboard.serve.changes import telling_of_changes
from pegboard.serve.gateway import Gateway
from pegboard.serve.http_errors import ApiError, error_of
from pegboard.serve.mcp_server import mcp_server
from pegboard.serve.request_ids import McpEndpoint, limited

BACKLOG = 2048
"""Connections that wait to be accepted."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_BODY = 1_048_576
"""Bytes of a request's body to the HTTP API."""
PAGE = Path(__file__).with_name("page")
PUBLIC = ("/openapi.json", "/healthz")
"""Paths that are answered without credentials, as the page is: nothing of the board is there."""

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
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
PAGE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": POLICY,
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
    local = host in LOOPBACK
    if not local and gateway.rules.is_open:
        raise ConfigurationError(
            f"On {host} anyone could call the tools of the board. Expected [serve.clients.NAME] "
            f"with a token for each client, and none without; or --host 127.0.0.1."
        )
    gateway.closed = not local
    mcp_app = mcp_server(gateway).http_app("/mcp")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with mcp_app.lifespan(mcp_app), telling_of_changes(gateway):
            yield
        await gateway.close()

    auth_routes = gateway.auth.get_routes("/mcp") if gateway.auth is not None else []
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
    for router in (http_api.health_router, http_api.router, ard.router):
        app.include_router(router)
    return app


class ClientMiddleware:
    """Decides whose request it is, as `request.state.client`; answers 401 for unknown ones, and
    turns errors into answers.

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
        state = scope.setdefault("state", {})
        path, state["client"] = scope["path"], None
        of_page = path == "/" or path.startswith("/page/")

        async def respond(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in (PAGE_HEADERS if of_page else HEADERS).items():
                    own.setdefault(name, value)
            await send(message)

        try:
            headers = Headers(scope=scope)
            _check_origin(headers, self._hosts)
            if not of_page and path not in self.public:
                client = state["client"] = await self.gateway.client(headers)
                if client is not None:
                    # By this the SDK binds a session to who opened it.
                    token = AccessToken(token="-", client_id=client.name, scopes=[])  # noqa: S106
                    scope["user"] = AuthenticatedUser(token)
                    await self._check_rate(client)
                elif path != ard.MANIFEST:
                    raise self._unknown_client()
            own = receive if path == "/mcp" else limited(receive, MAX_BODY)
            await self.app(scope, own, respond)
        except Exception as error:
            if path == "/mcp" and not isinstance(error, ApiError):
                raise
            problem, client = error_of(error), state["client"]
            if problem.status < 500:
                detail = f"{scope['method']} {path}: {problem.values['what']}"
                self.gateway.observer.refused(problem.code, detail, client.name if client else "")
            await problem.response()(scope, receive, respond)

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

    def _unknown_client(self) -> ApiError:
        """Return the error of unknown credentials, which says where to get a token."""
        auth, metadata = self.gateway.auth, ""
        if auth is not None and auth.base_url:
            base = str(auth.base_url).rstrip("/")
            metadata = f' resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
        return ApiError(
            401, "unknown_client", "The credentials are not known here.", "Authorization",
            "Send the header `Authorization: Bearer TOKEN` with the token of a client.",
            {"WWW-Authenticate": f"Bearer{metadata}"},
        )  # fmt: skip


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of this machine; port 0 means a free one.

    Raises:
        ConfigurationError: the address is in use, or is none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # Where one of these fails, `create_server` leaves its socket open.
        host.encode("idna")
        port.to_bytes(2, "big")
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError, OverflowError) as error:
        raise ConfigurationError(
            f"Cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}. "
            f"Expected an address of this machine with --host, such as 127.0.0.1, and with --port "
            f"one from 1024 that no other process listens on; --port 0 takes a free one."
        ) from None


def serve_http(app: FastAPI, listening: socket.socket) -> bool:
    """Serve an application over HTTP until interrupted; return whether it began to."""
    import uvicorn

    # Idle connections stay open for longer than clients use them again.
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=75)
    server = uvicorn.Server(config)
    # Of what a second Ctrl-C cut off, uvicorn would write tracebacks.
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.force_exit)
    with suppress(KeyboardInterrupt, SystemExit):  # uvicorn exits where the app cannot start
        server.run(sockets=[listening])
    return server.started


async def serve_stdio(gateway: Gateway) -> None:
    """Serve a gateway over stdin and stdout until stdin ends. Interrupted, the process ends."""
    gateway.rules.named(gateway.stdio_client)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: loop.create_task(_end_process(gateway)))
    try:
        async with telling_of_changes(gateway):
            await mcp_server(gateway).run_stdio_async(show_banner=False)
    finally:
        await gateway.close()


async def _end_process(gateway: Gateway) -> None:
    """End the process, a thread of which waits for stdin, after the servers that it started."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C does not wait for them
    await gateway.close()
    os._exit(130)


def _check_origin(headers: Headers, hosts: Collection[str]) -> None:
    """Raise ApiError for a request that a web page of another origin may have sent."""
    host, origin = headers.get("host", ""), headers.get("origin")
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    problem = ""
    if hosts and name.strip("[]") not in hosts:
        expected = ", ".join(hosts)
        problem = f"The host {host!r:.100} is not served here; expected one of {expected}."
    elif origin and origin.partition("://")[2] != host:
        problem = f"Pages of {origin!r:.100} may not use this gateway."
    if problem:
        raise ApiError(
            403, "other_origin", problem, "Host or Origin",
            "Send it to the address that the gateway listens on, from its own page or no browser.",
        )  # fmt: skip


async def _refusal(request: Request, error: Exception) -> Response:
    """Answer a path that is not served, or parameters that are invalid."""
    problem = error_of(error)
    return ard.refusal(problem) if request.url.path == ard.SEARCH else problem.response()
