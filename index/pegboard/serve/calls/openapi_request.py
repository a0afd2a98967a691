"""The HTTP request of an OpenAPI operation, from its annotations in the release and arguments, as
FastMCP writes it.

The release is not trusted here: the request goes to the configured address whatever it says."""

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
STYLES = ("form", "simple", "spaceDelimited", "pipeDelimited", "deepObject", "json")
"""In which parameters are written; of an operation with another one no call would be right."""
OWN_HEADERS = {
    *("host", "authorization", "cookie", "content-length", "content-type", "transfer-encoding"),
    *("connection", "proxy-authorization", "upgrade", "te", "trailer", "expect", "accept"),
}
"""Headers that no argument sets: they are the client's and the credentials'."""
DECODINGS = 3
"""Of a path that is sent, by a server and its proxies, before they look for dots and slashes."""
SHOWN = 20
"""Arguments that an error names."""

_DIRECTOR: Any = RequestDirector(None)  # pyright: ignore[reportArgumentType]  # it reads no document


def check_operation(tool: Tool) -> None:
    """Raise CallProblem unless the release says how the operation of a tool is called."""
    annotations = tool.annotations
    method, path = str(annotations.get("method", "")).upper(), annotations.get("path")
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
        base_url: the operator's, without a slash at its end.
        slashes: names of the parameters of the path whose values may contain `/` and `\\`.

    Raises:
        CallProblem: the release or the arguments do not give a request to that address.
    """
    check_operation(tool)
    annotations = tool.annotations
    locations: Mapping[str, str] = annotations.get("locations") or {}
    content_type = str(annotations.get("contentType") or "application/json")
    values, places, parameters = dict[str, Any](), dict[str, Any](), list[Any]()
    for argument, value in arguments.items():
        if argument not in locations and "body" not in locations.values():
            names = ", ".join(list(locations)[:SHOWN]) or "none"
            raise CallProblem(
                "invalid",
                f"{tool.id} was not called, since it has no argument {argument!r:.100}"
                f"{did_you_mean(argument, locations)} (expected: {names}).",
            )
        # What is nowhere else is one more property that the schema of the body allows.
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
    whole = "requestBody" in locations.values()
    properties = {argument: {} for argument, place in places.items() if place["location"] == "body"}
    route = HTTPRoute.model_validate(
        {
            "path": annotations["path"],
            "method": str(annotations["method"]).upper(),
            "parameters": parameters,
            "request_body": {
                "content_schema": {content_type: {} if whole else {"properties": properties}}
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
    """Return a value with at most one level; what is below is JSON."""
    if isinstance(value, dict):
        return {name: _text(item) for name, item in value.items()}
    return [_text(item) for item in value] if isinstance(value, list) else value


def _text(value: Any) -> Any:
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False)


def _check_path_value(name: str, value: Any, slashes: bool) -> None:
    """Raise CallProblem for a value that makes segments of a path, or none. Many servers decode a
    slash before they choose the operation.
    """
    text = str(value)
    if not text or not (slashes or all("/" not in form for form in _decoded(text))):
        raise CallProblem(
            "invalid",
            f"The argument {name!r:.100} cannot be {text!r:.100} in a path; expected a text "
            f"without '/' and '\\', also encoded. The gateway's operator allows them by slashes "
            f"= [{json.dumps(name):.100}] under [serve.apis.NAME], if the operation takes such.",
        )


def _check_header(name: str, value: Any) -> None:
    own = name.lower() in OWN_HEADERS or name.lower().startswith("proxy-")
    if own or not f"{name}{value}".isprintable():
        raise CallProblem(
            "invalid", f"The header {name!r:.100} cannot be set by an argument, or not to this."
        )


def _check_address(url: str, base_url: str) -> None:
    """Raise CallProblem unless a URL is below the operator's address, however lenient the server is
    that reads it.
    """
    address, base = urlsplit(url), urlsplit(base_url)
    same = (address.scheme, address.netloc) == (base.scheme, base.netloc)
    segments = [
        "".join(filter(str.isprintable, segment.partition(";")[0])).strip()
        for form in _decoded(address.path)
        for segment in form.split("/")
    ]
    if not same or not address.path.startswith(f"{base.path}/") or {".", ".."} & set(segments):
        raise CallProblem(
            "failed",
            "The path of this operation leads away from its API: it has '.' or '..' between "
            "slashes, as it is or decoded.",
        )


def _decoded(path: str) -> Iterator[str]:
    """Yield a path as servers may read it: as it is, decoded once and more often, with `/` for
    `\\`.
    """
    for _ in range(DECODINGS + 1):
        yield normalize("NFKC", path).replace("\\", "/")
        path = unquote(path)
