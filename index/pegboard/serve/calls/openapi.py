"""Calls to operations of OpenAPI catalogs: at the address that the operator named, with the
credentials of the configuration, read when they are sent."""

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
        self.apis, self.limits = apis, limits
        self._client: httpx2.AsyncClient | None = None
        self._tokens: dict[str, tuple[str, float]] = {}

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the answer of an operation: its JSON also as structured content.

        Raises:
            CallProblem: the API does not answer within the limits, or a credential is missing.
        """
        api = self.apis[tool.catalog]
        request = build_request(tool, arguments, api.base_url, api.slashes)
        hidden = _authorize(request, tool, api)
        try:
            if api.token_url is not None:
                hidden.append(await self._sign_in(request, tool.catalog, api.token_url))
            secrets = SecretValues(hidden)
            status, kind, body = await self._answer(request, secrets)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = redact_line(SecretValues(hidden).hide(str(error)) or type(error).__name__, 300)
            log.error("The API at %s cannot be reached: %s", public_url(api.base_url), why)
            raise CallProblem(
                "failed",
                f"The API of '{tool.catalog}' cannot be reached. Whether the call had an effect is "
                f"not known: check before you repeat it. The gateway's log says why.",
            ) from None
        if status == HTTPStatus.UNAUTHORIZED:
            self._tokens.pop(tool.catalog, None)
        return _result(status, kind, body, secrets)

    def check(self, tool: Tool) -> None:
        """Raise CallProblem if the catalog of a tool has no address, or the tool no request."""
        if tool.catalog not in self.apis:
            raise CallProblem(
                "refused",
                f"The operations of '{tool.catalog}' are not called: no address is configured. "
                f'The gateway\'s operator adds [serve.apis."{tool.catalog}"] with its base_url.',
            )
        check_operation(tool)

    async def close(self) -> None:
        """Close the connections that are kept."""
        if self._client is not None:
            await self._client.aclose()

    async def _answer(
        self, request: httpx2.Request, secrets: SecretValues
    ) -> tuple[int, str, bytes]:
        """Return status, content type and body. No redirect is followed."""
        client, body = self._http(), bytearray()
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
        """Put a token in place of `client:secret` in a request; return it, "" for none.

        Raises:
            CallProblem: none was given.
        """
        credential = request.headers.get("authorization", "").removeprefix("Bearer ")
        client, separator, secret = credential.partition(":")
        if not separator:  # the operation wants something else
            return ""
        token, until = self._tokens.get(catalog, ("", 0.0))
        if time.monotonic() >= until:
            form = httpx2.Request("POST", url, data={"grant_type": "client_credentials"})
            answer = await self._http().send(form, auth=(client, secret))
            try:
                answer.raise_for_status()
                given = _Token.model_validate_json(answer.content)
            except (httpx2.HTTPStatusError, ValidationError):
                status = f"HTTP {answer.status_code}"
                log.error("%s gave no valid token: %s", public_url(url), status)
                raise CallProblem(
                    "failed", f"The API of '{catalog}' gave the gateway no token."
                ) from None
            token = given.access_token
            self._tokens[catalog] = token, time.monotonic() + (given.expires_in or 60) * 0.9
        request.headers["authorization"] = f"Bearer {token}"
        return token

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self.limits.timeout)
        return self._client


def _authorize(request: httpx2.Request, tool: Tool, api: ApiSettings) -> list[str]:
    """Add the credentials of the operation's security schemes; return what must not be shown."""
    secrets: list[str] = []
    for scheme in tool.annotations.get("security") or ():
        reference = api.credentials.get(str(scheme.get("name")))
        if reference is None:
            continue
        value = _resolved(reference)
        secrets += [value, *value.split(":")[1:], *referenced_values(reference)]
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
    if api.auth == "passthrough":
        secrets.append(client_token())
        request.headers["authorization"] = f"Bearer {secrets[-1]}"
    return secrets


def _resolved(value: str) -> str:
    """Return a configured value with the values of its variables. Raises CallProblem."""
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


def _result(status: int, kind: str, body: bytes, secrets: SecretValues) -> CallToolResult:
    """Return an answer as a result; one with an error's status is an error."""
    kind = secrets.hide(kind.partition(";")[0].strip()).lower()
    failed = status >= 400
    prefix = f"HTTP {status}\n" if failed else ""
    structured: Any = None
    content: Any
    # An image that is text is shown as one.
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
    """Return a JSON object; protocols before 2026-07-28 take nothing else as structured content."""
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:  # the text has it all the same
        return None
    if not isinstance(value, dict):
        return None
    return cast("dict[str, Any]", secrets.hide_in(value))
