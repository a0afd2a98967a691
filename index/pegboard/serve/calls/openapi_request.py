"""The HTTP request of an OpenAPI operation, which FastMCP builds from the annotations in the
release and the arguments.

The release is not trusted: whatever it says, the request goes to the configured address."""

import json
from collections.abc import Container, Iterator, Mapping
from typing import Any
from unicodedata import normalize
from urllib.parse import quote, unquote, urlsplit

import httpx2
from fastmcp.utilities.openapi.director import RequestDirector
from fastmcp.utilities.openapi.models import HTTPRoute

from pegboard.errors import did_you_mean
from pegboard.records import Tool
from pegboard.serve.errors import CallProblem

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""HTTP methods of operations that can be called."""
STYLES = ("form", "simple", "spaceDelimited", "pipeDelimited", "deepObject", "json")
"""Styles of parameters that are supported. Operations with other styles are refused."""
RESERVED_HEADERS = {
    *("host", "authorization", "cookie", "content-length", "content-type", "transfer-encoding"),
    *("connection", "proxy-authorization", "upgrade", "te", "trailer", "expect", "accept"),
}
"""Headers that arguments cannot set: those of the HTTP client and of credentials."""
DECODINGS = 3
"""How often a server and its proxies may decode a path before they look for dots and slashes."""
MAX_NAMES = 20
"""Most arguments that an error names."""

_DIRECTOR: Any = RequestDirector(None)  # pyright: ignore[reportArgumentType]  # it reads no document


def check_operation(tool: Tool) -> None:
    """Raise CallProblem unless the release has a valid method and path, and supported styles."""
    annotations = tool.annotations
    method = str(annotations.get("method", "")).upper()
    path = annotations.get("path")
    if method not in METHODS or not isinstance(path, str) or not path.startswith("/"):
        raise CallProblem("failed", f"The release does not say how {tool.id} is called.")
    for name, style in (annotations.get("styles") or {}).items():
        if str(style).partition(",")[0] not in STYLES:
            raise CallProblem(
                "refused", f"{tool.id} has an argument {name!r:.100} in the style {style!r:.100}."
            )


def build_request(
    tool: Tool, arguments: Mapping[str, Any], base_url: str, slashes: Container[str] = ()
) -> httpx2.Request:
    """Return the request of a call.

    Args:
        base_url: the configured address, without a slash at its end.
        slashes: names of the path parameters whose values may contain `/` and `\\`.

    Raises:
        CallProblem: the release or the arguments give no request to that address.
    """
    check_operation(tool)
    annotations = tool.annotations
    locations: Mapping[str, str] = annotations.get("locations") or {}
    content_type = str(annotations.get("contentType") or "application/json")
    values: dict[str, Any] = {}
    places: dict[str, Any] = {}
    parameters: list[Any] = []
    for argument, value in arguments.items():
        if argument not in locations and "body" not in locations.values():
            names = ", ".join(list(locations)[:MAX_NAMES]) or "none"
            raise CallProblem(
                "invalid",
                f"{tool.id} was not called, since it has no argument {argument!r:.100}"
                f"{did_you_mean(argument, locations)} (expected: {names}).",
            )
        # An argument without a location is an additional property of the body.
        place = locations.get(argument, "body")
        name = (annotations.get("names") or {}).get(argument, argument)
        style, _, explode = (annotations.get("styles") or {}).get(argument, "").partition(",")
        if place in ("body", "requestBody"):
            as_json = place == "requestBody" or content_type.partition(";")[0].endswith("json")
            values[argument] = value if as_json else _form_value(value)
            places[argument] = {"location": "body", "openapi_name": name}
            continue
        if value is None:
            continue
        if place == "path":
            _check_path_value(name, value, name in slashes)
        elif place == "header":
            _check_header(name, value)
        value = json.dumps(value, ensure_ascii=False) if style == "json" else _flat(value)
        values[argument] = quote(str(value), safe="") if place == "cookie" else value
        places[argument] = {"location": place, "openapi_name": name}
        explodes = explode != "false" if explode else None
        parameter = {"name": name, "location": place, "style": style, "explode": explodes}
        parameters.append(parameter | {"schema": {}})
    is_whole_body = "requestBody" in locations.values()
    properties = {argument: {} for argument, place in places.items() if place["location"] == "body"}
    route = HTTPRoute.model_validate(
        {
            "path": annotations["path"],
            "method": str(annotations["method"]).upper(),
            "parameters": parameters,
            "request_body": {
                "content_schema": {
                    content_type: {} if is_whole_body else {"properties": properties}
                }
            },
            "parameter_map": places,
            "flat_param_schema": {"properties": properties},
        }
    )
    try:
        request = _DIRECTOR.build(route, values, base_url)
    except ValueError as error:
        raise CallProblem("invalid", f"{tool.id} was not called: {error!s:.300}.") from None
    _check_address(str(request.url), base_url)
    return request


def _form_value(value: Any) -> Any:
    return _flat(value) if isinstance(value, list) else _text(value)


def _flat(value: Any) -> Any:
    """Return a value with at most one level of nesting; deeper values become JSON."""
    if isinstance(value, dict):
        return {name: _text(item) for name, item in value.items()}
    return [_text(item) for item in value] if isinstance(value, list) else value


def _text(value: Any) -> Any:
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False)


def _check_path_value(name: str, value: Any, slashes: bool) -> None:
    """Raise CallProblem for a value that is empty, or adds segments to a path. Many servers decode
    a slash before they choose the operation.
    """
    text = str(value)
    has_slash = any("/" in decoded for decoded in _decoded(text))
    if not text or (has_slash and not slashes):
        raise CallProblem(
            "invalid",
            f"The argument {name!r:.100} cannot be {text!r:.100} in a path; expected a text "
            f"without '/' and '\\', also encoded. The gateway's operator allows them by slashes "
            f"= [{json.dumps(name):.100}] under [serve.apis.NAME], if the operation takes such.",
        )


def _check_header(name: str, value: Any) -> None:
    is_reserved = name.lower() in RESERVED_HEADERS or name.lower().startswith("proxy-")
    if is_reserved or not f"{name}{value}".isprintable():
        raise CallProblem(
            "invalid", f"The header {name!r:.100} cannot be set by an argument, or not to this."
        )


def _check_address(url: str, base_url: str) -> None:
    """Raise CallProblem unless a URL is below the configured address, even for a lenient server."""
    address = urlsplit(url)
    base = urlsplit(base_url)
    same_host = (address.scheme, address.netloc) == (base.scheme, base.netloc)
    segments = [
        "".join(filter(str.isprintable, segment.partition(";")[0])).strip()
        for decoded in _decoded(address.path)
        for segment in decoded.split("/")
    ]
    if not same_host or not address.path.startswith(f"{base.path}/") or {".", ".."} & set(segments):
        raise CallProblem(
            "failed",
            "The path of this operation leads away from its API: it has '.' or '..' between "
            "slashes, as it is or decoded.",
        )


def _decoded(path: str) -> Iterator[str]:
    """Yield a path as servers may read it: unchanged, and decoded up to `DECODINGS` times, each
    with `/` in place of `\\`.
    """
    for _ in range(DECODINGS + 1):
        yield normalize("NFKC", path).replace("\\", "/")
        path = unquote(path)
