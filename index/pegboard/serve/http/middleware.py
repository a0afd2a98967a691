"""Checks of each request before the application (origin, client, rate, size), and the headers of
responses."""

from collections.abc import Collection, MutableMapping
from typing import Any

from fastmcp.server.middleware.rate_limiting import TokenBucketRateLimiter
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers, MutableHeaders

from pegboard.serve.access.clients import ANYONE, Client
from pegboard.serve.errors import RequestError
from pegboard.serve.gateway import Gateway
from pegboard.serve.http import ard
from pegboard.serve.http.responses import error_response, reported_http_error
from pegboard.serve.mcp.endpoint import limited_body

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that are this machine."""
MAX_BODY = 1_048_576
"""Most bytes of the body of a request to the HTTP API."""

CONTENT_SECURITY_POLICY = "; ".join(
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
"""The policy of the page: nothing is loaded from other origins."""
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Headers of every response except the page's files."""
PAGE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Headers of the page's files."""


class ClientMiddleware:
    """Sets `request.state.client` to the client of a request, answers unknown clients with 401, and
    turns errors into responses.

    Args:
        local: whether only requests to loopback and to `allowed_hosts` are answered.
        public: paths that are answered without credentials.
    """

    def __init__(self, app: Any, gateway: Gateway, local: bool, public: Collection[str]) -> None:
        self.app = app
        self.gateway = gateway
        self.public = public
        self._allowed = gateway.settings.serve.allowed_hosts
        self._hosts = (*LOOPBACK, *self._allowed) if local else self._allowed
        self._per_minute = gateway.settings.serve.requests_per_minute
        self._buckets: dict[str, TokenBucketRateLimiter] = {}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        state = scope.setdefault("state", {})
        state["client"] = None
        if scope["path"] == "/mcp/":  # a redirect would lose the proxy's scheme
            scope = {**scope, "path": "/mcp", "raw_path": b"/mcp"}
        path = scope["path"]
        is_page = path == "/" or path.startswith("/page/")

        async def respond(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                for name, value in (PAGE_HEADERS if is_page else HEADERS).items():
                    response_headers.setdefault(name, value)
            await send(message)

        try:
            headers = Headers(scope=scope)
            _check_origin(headers, self._hosts, self._allowed)
            if not is_page and path not in self.public:
                client = await self.gateway.access.client(headers)
                state["client"] = client
                if client is not None:
                    # The SDK binds a session to this user.
                    token = AccessToken(token="-", client_id=client.name, scopes=[])  # noqa: S106
                    scope["user"] = AuthenticatedUser(token)
                    await self._check_rate(client)
                elif path != ard.MANIFEST:
                    raise self._unknown_client()
            limited_receive = receive if path == "/mcp" else limited_body(receive, MAX_BODY)
            await self.app(scope, limited_receive, respond)
        except Exception as error:
            if path == "/mcp" and not isinstance(error, RequestError):
                raise
            problem = reported_http_error(error)
            client = state["client"]
            if problem.status < 500:
                detail = f"{scope['method']} {path}: {problem.values['what']}"
                self.gateway.metrics.record_refusal(
                    problem.code, detail, client.name if client else ""
                )
            await error_response(problem)(scope, receive, respond)

    async def _check_rate(self, client: Client) -> None:
        """Raise RequestError if a client made too many requests."""
        limit = self._per_minute
        if limit is None or client == ANYONE:
            return
        bucket = self._buckets.setdefault(client.name, TokenBucketRateLimiter(limit, limit / 60))
        if not await bucket.consume():
            raise RequestError(
                429, "too_many_requests", f"More than {limit:,} requests in a minute.", "client",
                f"Wait for {60 / limit:.0f} seconds.",
            )  # fmt: skip

    def _unknown_client(self) -> RequestError:
        """Return the error of unknown credentials, which says where to get a token."""
        provider = self.gateway.access.identity_provider
        metadata = ""
        if provider is not None and provider.base_url:
            base = str(provider.base_url).rstrip("/")
            metadata = f' resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
        return RequestError(
            401, "unknown_client", "The credentials are not known here.", "Authorization",
            "Send the header `Authorization: Bearer TOKEN` with the token of a client.",
            {"WWW-Authenticate": f"Bearer{metadata}"},
        )  # fmt: skip


def _check_origin(headers: Headers, hosts: Collection[str], allowed: Collection[str]) -> None:
    """Raise RequestError for a request that a web page of another origin may have sent.

    A proxy may replace `Host` by the gateway's own address, as nginx does, so that the page's
    origin may also be an allowed host.

    Args:
        hosts: the hosts that are served, with or without a port; all if there are none.
        allowed: those of `allowed_hosts`.
    """
    host = headers.get("host", "")
    origin = headers.get("origin")
    origin_host = (origin or "").partition("://")[2]
    if hosts and not {host, _without_port(host)} & {*hosts}:
        what = f"The host {host!r:.100} is not served here; expected one of {', '.join(hosts)}."
        name = _without_port(host)
    elif origin and origin_host != host and origin_host not in allowed:
        what = f"Pages of {origin!r:.100} may not use this gateway."
        name = origin_host
    else:
        return
    next_step = (
        "Send it to the address that the gateway listens on, from its own page or no browser."
    )
    if name:
        next_step += (
            f" If a proxy in front of the gateway has the name {name!r:.100}, its operator adds "
            f"that to allowed_hosts of [serve], and restarts it."
        )
    raise RequestError(403, "other_origin", what, "Host or Origin", next_step)


def _without_port(host: str) -> str:
    """Return a host without its port, and without the brackets of an IPv6 address."""
    has_port = ":" in host and not host.endswith("]")
    name = host.rpartition(":")[0] if has_port else host
    return name.strip("[]")
