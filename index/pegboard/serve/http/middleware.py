"""Each request's client, origin, rate and headers, before and after the application."""

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
from pegboard.serve.mcp.endpoint import limited

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that are this machine."""
MAX_BODY = 1_048_576
"""Most bytes of the body of a request to the HTTP API."""

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
                client = state["client"] = await self.gateway.access.client(headers)
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
            if path == "/mcp" and not isinstance(error, RequestError):
                raise
            problem, client = reported_http_error(error), state["client"]
            if problem.status < 500:
                detail = f"{scope['method']} {path}: {problem.values['what']}"
                self.gateway.metrics.record_refusal(
                    problem.code, detail, client.name if client else ""
                )
            await error_response(problem)(scope, receive, respond)

    async def _check_rate(self, client: Client) -> None:
        """Raise RequestError if a client made too many requests."""
        most = self._per_minute
        if most is None or client == ANYONE:
            return
        bucket = self._buckets.setdefault(client.name, TokenBucketRateLimiter(most, most / 60))
        if not await bucket.consume():
            raise RequestError(
                429, "too_many_requests", f"More than {most:,} requests in a minute.", "client",
                f"Wait for {60 / most:.0f} seconds.",
            )  # fmt: skip

    def _unknown_client(self) -> RequestError:
        """Return the error of unknown credentials, which says where to get a token."""
        provider, metadata = self.gateway.access.identity_provider, ""
        if provider is not None and provider.base_url:
            base = str(provider.base_url).rstrip("/")
            metadata = f' resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
        return RequestError(
            401, "unknown_client", "The credentials are not known here.", "Authorization",
            "Send the header `Authorization: Bearer TOKEN` with the token of a client.",
            {"WWW-Authenticate": f"Bearer{metadata}"},
        )  # fmt: skip


def _check_origin(headers: Headers, hosts: Collection[str]) -> None:
    """Raise RequestError for a request that a web page of another origin may have sent."""
    host, origin = headers.get("host", ""), headers.get("origin")
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    problem = ""
    if hosts and name.strip("[]") not in hosts:
        expected = ", ".join(hosts)
        problem = f"The host {host!r:.100} is not served here; expected one of {expected}."
    elif origin and origin.partition("://")[2] != host:
        problem = f"Pages of {origin!r:.100} may not use this gateway."
    if problem:
        raise RequestError(
            403, "other_origin", problem, "Host or Origin",
            "Send it to the address that the gateway listens on, from its own page or no browser.",
        )  # fmt: skip
