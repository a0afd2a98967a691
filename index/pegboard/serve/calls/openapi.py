"""Calls of operations of OpenAPI catalogs: at the address in the configuration, with its
credentials, which are resolved for each call."""

import base64
import logging
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import httpx2
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel, Field, FiniteFloat, ValidationError
from pydantic_core import from_json

from pegboard.records import Tool
from pegboard.serve.calls.client_request import client_token
from pegboard.serve.calls.openapi_request import build_request, check_operation
from pegboard.serve.errors import CallProblem, answer_too_large
from pegboard.serve.settings import ApiSettings, CallSettings
from pegboard.servers.config import References
from pegboard.servers.messages import NOT_SHOWN
from pegboard.servers.references import referenced_values
from pegboard.text.redaction import public_url, redact_line
from pegboard.text.secret_values import SecretValues

log = logging.getLogger("pegboard.serve")


class _Token(BaseModel):
    """The answer of a token endpoint."""

    access_token: str = Field(min_length=1)
    expires_in: FiniteFloat | None = None


class OpenAPICalls:
    """The operations of the catalogs with an entry in `[serve.apis]`."""

    def __init__(self, apis: Mapping[str, ApiSettings], limits: CallSettings) -> None:
        self.apis = apis
        self.limits = limits
        self._client: httpx2.AsyncClient | None = None
        self._tokens: dict[str, tuple[str, float]] = {}
        """The token of each catalog, and the time at which it expires, by the monotonic clock."""

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the answer of an operation. A JSON object is also structured content.

        Raises:
            CallProblem: the API does not answer within the limits, or a credential is missing.
        """
        api = self.apis[tool.catalog]
        request = build_request(tool, arguments, api.base_url, api.slashes)
        secret_values = _authorize(request, tool, api)
        try:
            if api.token_url is not None:
                secret_values.append(await self._sign_in(request, tool.catalog, api.token_url))
            secrets = SecretValues(secret_values)
            status, content_type, body = await self._answer(request, secrets)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            message = SecretValues(secret_values).hide(str(error)) or type(error).__name__
            why = redact_line(message, 300)
            log.error("The API at %s cannot be reached: %s", public_url(api.base_url), why)
            raise CallProblem(
                "failed",
                f"The API of '{tool.catalog}' cannot be reached. Whether the call had an effect is "
                f"not known: check before you repeat it. The gateway's log says why.",
            ) from None
        if status == HTTPStatus.UNAUTHORIZED:
            self._tokens.pop(tool.catalog, None)
        return _result(status, content_type, body, secrets)

    def check(self, tool: Tool) -> None:
        """Raise CallProblem if a tool's catalog has no address, or its operation is invalid."""
        if tool.catalog not in self.apis:
            raise CallProblem(
                "refused",
                f"The operations of '{tool.catalog}' are not called: no address is configured. "
                f'The gateway\'s operator adds [serve.apis."{tool.catalog}"] with its base_url.',
            )
        check_operation(tool)

    async def close(self) -> None:
        """Close the open connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _answer(
        self, request: httpx2.Request, secrets: SecretValues
    ) -> tuple[int, str, bytes]:
        """Return status, content type and body. Redirects are not followed."""
        client = self._http()
        body = bytearray()
        request.headers = httpx2.Headers({**client.headers, **request.headers})
        response = await client.send(request, stream=True)
        try:
            if response.has_redirect_location:
                where = secrets.hide(public_url(response.headers["location"]))
                raise CallProblem(
                    "failed",
                    f"The API answered with a redirect to {where:.300}, which is not followed.",
                )
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self.limits.max_bytes:
                    raise answer_too_large(self.limits.max_bytes)
        finally:
            await response.aclose()
        return response.status_code, response.headers.get("content-type", ""), bytes(body)

    async def _sign_in(self, request: httpx2.Request, catalog: str, url: str) -> str:
        """Replace `client:secret` in a request by a token; return the token. "" if the request has
        no such credentials.

        Raises:
            CallProblem: the token endpoint gave no token.
        """
        credential = request.headers.get("authorization", "").removeprefix("Bearer ")
        client, separator, secret = credential.partition(":")
        if not separator:  # the operation has other credentials
            return ""
        token, expires_at = self._tokens.get(catalog, ("", 0.0))
        if time.monotonic() >= expires_at:
            form = httpx2.Request("POST", url, data={"grant_type": "client_credentials"})
            answer = await self._http().send(form, auth=(client, secret))
            try:
                answer.raise_for_status()
                token_answer = _Token.model_validate_json(answer.content)
            except (httpx2.HTTPStatusError, ValidationError):
                status = f"HTTP {answer.status_code}"
                log.error("%s gave no valid token: %s", public_url(url), status)
                raise CallProblem(
                    "failed", f"The API of '{catalog}' gave the gateway no token."
                ) from None
            token = token_answer.access_token
            expires_at = time.monotonic() + (token_answer.expires_in or 60) * 0.9
            self._tokens[catalog] = token, expires_at
        request.headers["authorization"] = f"Bearer {token}"
        return token

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self.limits.timeout)
        return self._client


def _authorize(request: httpx2.Request, tool: Tool, api: ApiSettings) -> list[str]:
    """Add the credentials of the operation's security schemes; return the secrets in them."""
    secrets: list[str] = []
    for scheme in tool.annotations.get("security") or ():
        reference = api.credentials.get(str(scheme.get("name")))
        if reference is None:
            continue
        value = _resolved(reference)
        secrets += [value, *value.split(":")[1:], *referenced_values(reference)]
        if not value.isascii() or not value.isprintable():
            raise CallProblem("refused", f"The credential {scheme['name']!r:.100} is not ASCII.")
        scheme_type = scheme.get("type")
        http_scheme = str(scheme.get("scheme", "bearer")).lower()
        if scheme_type == "apiKey":
            _add_key(request, scheme, value)
        elif scheme_type == "basic" or (scheme_type == "http" and http_scheme == "basic"):
            encoded = base64.b64encode(value.encode()).decode()
            secrets.append(encoded)
            request.headers["authorization"] = f"Basic {encoded}"
        else:  # bearer, OAuth 2 and OpenID Connect: a token of the configuration
            request.headers["authorization"] = f"Bearer {value}"
    if api.auth == "passthrough":
        token = client_token()
        secrets.append(token)
        request.headers["authorization"] = f"Bearer {token}"
    return secrets


def _resolved(value: str) -> str:
    """Return a configured value with its variables resolved. Raises CallProblem."""
    references = References()
    text = references.resolve(value)
    if references.problems:
        problems = "; ".join(references.problems)
        raise CallProblem("refused", f"The gateway cannot sign in at this API: {problems}.")
    return text


def _add_key(request: httpx2.Request, scheme: Mapping[str, Any], value: str) -> None:
    name = str(scheme.get("parameter") or scheme.get("name"))
    place = scheme.get("in", "header")
    if place == "query":
        request.url = request.url.copy_add_param(name, value)
    elif place == "cookie":
        cookies = [request.headers.get("cookie", ""), f"{name}={value}"]
        request.headers["cookie"] = "; ".join(filter(None, cookies))
    else:
        request.headers[name] = value


def _result(status: int, content_type: str, body: bytes, secrets: SecretValues) -> CallToolResult:
    """Return an answer as a result, which is an error from status 400."""
    kind = secrets.hide(content_type.partition(";")[0].strip()).lower()
    failed = status >= 400
    prefix = f"HTTP {status}\n" if failed else ""
    structured: Any = None
    content: Any
    # Images in a text format, such as SVG, are shown as text.
    if kind.startswith("image/") and not kind.endswith("+xml") and not failed:
        data = base64.b64encode(body).decode()
        clear = secrets.hide(data) == data
        content = ImageContent(data=data, mime_type=kind) if clear else TextContent(text=NOT_SHOWN)
    elif body and not kind.startswith("text/") and b"\0" in body[:1_000]:
        content = TextContent(text=f"{prefix}{len(body):,} bytes of type {kind or 'unknown'}.")
    else:
        text = secrets.hide(body.decode("utf-8", "replace"))
        content = TextContent(text=prefix + text if text else prefix or f"HTTP {status}")
        if "json" in kind and not failed:
            structured = _json(body, secrets)
    return CallToolResult(content=[content], structured_content=structured, is_error=failed)


def _json(body: bytes, secrets: SecretValues) -> dict[str, Any] | None:
    """Return a body that is a JSON object; None for other bodies, which protocols before 2026-07-28
    do not accept as structured content.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:  # the content has the text
        return None
    if not isinstance(value, dict):
        return None
    return cast("dict[str, Any]", secrets.hide_in(value))
