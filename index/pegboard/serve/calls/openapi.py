"""Calls to operations of OpenAPI catalogs: at the address that the operator named, with the
credentials of the configuration, read when they are sent."""

import base64
import json
import logging
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

import httpx2
from mcp_types import CallToolResult, ImageContent, TextContent

from pegboard.records import Tool
from pegboard.redaction import public_url, redact_line
from pegboard.secret_values import SecretValues
from pegboard.serve.calls.openapi_request import OpenAPIRequest, build_request
from pegboard.serve.calls.references import resolved
from pegboard.serve.calls.results import CallProblem, is_deep
from pegboard.serve.settings import ApiSettings, CallSettings

log = logging.getLogger("pegboard.serve")

MAX_REDIRECTS = 3
"""Of a request without effects, within the API's origin."""
SAFE = ("GET", "HEAD")


class OpenAPICalls:
    """The operations of the catalogs with an entry in `[serve.apis]`."""

    def __init__(self, apis: Mapping[str, ApiSettings], limits: CallSettings) -> None:
        self.apis, self.limits = apis, limits
        self._client: httpx2.AsyncClient | None = None

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the answer of an operation: its JSON also as structured content.

        Raises:
            CallProblem: the catalog has no address, or the API does not answer within the limits.
        """
        self.check(tool)
        api = self.apis[tool.catalog]
        request = build_request(tool, arguments, api.base_url, api.slashes)
        secrets = _authorize(request, tool, api)
        try:
            status, kind, body = await self._answer(request)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = redact_line(str(error) or type(error).__name__, 300, secrets)
            log.error("The API at %s cannot be reached: %s", public_url(api.base_url), why)
            raise CallProblem(
                "failed",
                f"The API of '{tool.catalog}' cannot be reached. Whether the call had an effect is "
                f"not known: check before you repeat it. The gateway's log says why.",
            ) from None
        return _result(status, kind, body, SecretValues(secrets))

    def check(self, tool: Tool) -> None:
        """Raise CallProblem if the catalog of a tool has no address."""
        if tool.catalog not in self.apis:
            raise CallProblem("refused", _unnamed(tool))

    async def close(self) -> None:
        """Close the connections that are kept."""
        if self._client is not None:
            await self._client.aclose()

    async def _answer(self, request: OpenAPIRequest) -> tuple[int, str, bytes]:
        """Return status, content type and body, after redirects that change nothing."""
        if self._client is None:
            # What the API sets for one client of the gateway is not sent with another's call.
            no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
            self._client = httpx2.AsyncClient(timeout=self.limits.timeout, cookies=no_cookies)
        address = request.address
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream(
                request.method,
                address,
                headers=request.headers,
                cookies=request.cookies or None,
                content=request.content,
                files=request.files or None,
            ) as response:
                location = response.headers.get("location")
                if location and 300 <= response.status_code < 400:
                    target = _target(address, location)
                    if not _may_follow(request, address, target):
                        raise CallProblem(
                            "failed",
                            f"The API answered with a redirect to {public_url(target):.300}.",
                        )
                    address = target
                    continue
                body = await self._body(response)
                return response.status_code, response.headers.get("content-type", ""), body
        raise CallProblem("failed", f"The API redirects more than {MAX_REDIRECTS} times.")

    async def _body(self, response: Any) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self.limits.max_bytes:
                raise CallProblem(
                    "too_large",
                    f"The answer has more than {self.limits.max_bytes:,} bytes. Ask for less, by "
                    f"the tool's filters or pages.",
                )
        return bytes(body)


def _authorize(request: OpenAPIRequest, tool: Tool, api: ApiSettings) -> list[str]:
    """Add the credentials of the operation's security schemes; return what must not be shown."""
    secrets: list[str] = []
    for scheme in tool.annotations.get("security") or ():
        reference = api.credentials.get(str(scheme.get("name")))
        if reference is None:
            continue
        value = resolved(reference)
        secrets += [value, *value.split(":")[1:]]
        if not value.isascii() or not value.isprintable():
            raise CallProblem("refused", f"The credential {scheme['name']!r:.100} is not ASCII.")
        kind, how = scheme.get("type"), str(scheme.get("scheme", "bearer")).lower()
        if kind == "apiKey":
            _add_key(request, scheme, value)
        elif kind == "basic" or (kind == "http" and how == "basic"):
            encoded = base64.b64encode(value.encode()).decode()
            secrets.append(encoded)
            request.headers["authorization"] = f"Basic {encoded}"
        else:  # bearer, OAuth 2 and OpenID Connect: the token that the operator has
            request.headers["authorization"] = f"Bearer {value}"
    return secrets


def _add_key(request: OpenAPIRequest, scheme: Mapping[str, Any], value: str) -> None:
    name = str(scheme.get("parameter") or scheme.get("name"))
    place = scheme.get("in", "header")
    if place == "query":
        request.query.append((name, value))
    elif place == "cookie":
        request.cookies[name] = value
    else:
        request.headers[name] = value


def _target(address: str, location: str) -> str:
    """Return where a redirect leads; "" if that is no address."""
    try:
        return urljoin(address, location)
    except ValueError:
        return ""


def _may_follow(request: OpenAPIRequest, address: str, target: str) -> bool:
    there, here = urlsplit(target), urlsplit(address)
    return request.method in SAFE and (there.scheme, there.netloc) == (here.scheme, here.netloc)


def _result(status: int, kind: str, body: bytes, secrets: SecretValues) -> CallToolResult:
    """Return an answer as a result; one with an error's status is an error."""
    kind = kind.partition(";")[0].strip().lower()
    failed = status >= 400
    prefix = f"HTTP {status}\n" if failed else ""
    structured: Any = None
    content: Any
    # An image that is text may repeat a credential, which is taken out of texts.
    if kind.startswith("image/") and not kind.endswith("+xml") and not failed:
        content = ImageContent(data=base64.b64encode(body).decode(), mime_type=kind)
    elif body and not kind.startswith("text/") and b"\0" in body[:1_000]:
        content = TextContent(text=f"{prefix}{len(body):,} bytes of type {kind or 'unknown'}.")
    else:
        text = secrets.hide(body.decode("utf-8", "replace"))
        content = TextContent(text=prefix + text if text else prefix or f"HTTP {status}")
        if "json" in kind and not failed:
            structured = _json(body, secrets)
    return CallToolResult(content=[content], structured_content=structured, is_error=failed)


def _json(body: bytes, secrets: SecretValues) -> dict[str, Any] | None:
    """Return a JSON object; protocols before 2026-07-28 take nothing else as structured content."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or is_deep(value):
        return None
    return cast("dict[str, Any]", secrets.hide_in(value))


def _unnamed(tool: Tool) -> str:
    return (
        f"The operations of '{tool.catalog}' are not called: no address is configured. Whoever "
        f'runs the gateway adds [serve.apis."{tool.catalog}"] with its base_url.'
    )
