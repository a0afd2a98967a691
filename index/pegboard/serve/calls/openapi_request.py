"""The HTTP request of an OpenAPI operation, from its annotations in the release and arguments.

The release is not trusted here: the request goes to the configured address whatever it says."""

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from unicodedata import normalize
from urllib.parse import quote, unquote, urlencode, urlsplit

from pegboard.errors import did_you_mean
from pegboard.records import Tool
from pegboard.serve.calls.results import CallProblem

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY")
OWN_HEADERS = {
    *("host", "authorization", "cookie", "content-length", "content-type", "transfer-encoding"),
    *("connection", "proxy-authorization", "upgrade", "te", "trailer", "expect", "accept"),
}
"""Headers that no argument sets: they are the client's and the credentials'."""
SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
DECODINGS = 3
"""Of a path that is sent, by a server and its proxies, before they look for dots and slashes."""
SHOWN = 20
"""Arguments that an error names."""


@dataclass(slots=True)
class OpenAPIRequest:
    """One request, ready to be sent.

    Attributes:
        query: pairs of names and values.
        files: parts of a multipart body: name, and file name, content and type.
    """

    method: str
    url: str
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None
    files: list[tuple[str, tuple[None, str, str]]] = field(
        default_factory=list[tuple[str, tuple[None, str, str]]]
    )

    @property
    def address(self) -> str:
        """The URL with its query."""
        return f"{self.url}?{urlencode(self.query)}" if self.query else self.url


def build_request(
    tool: Tool, arguments: Mapping[str, Any], base_url: str, slashes: Container[str] = ()
) -> OpenAPIRequest:
    """Return the request of a call.

    Args:
        base_url: the operator's, without a slash at its end.
        slashes: names of the parameters of the path whose values may contain `/` and `\\`.

    Raises:
        CallProblem: the release or the arguments do not give a request to that address.
    """
    annotations = tool.annotations
    method, path = str(annotations.get("method", "")).upper(), annotations.get("path")
    locations: Mapping[str, str] = annotations.get("locations") or {}
    if method not in METHODS or not isinstance(path, str) or not path.startswith("/"):
        raise CallProblem("failed", f"The release does not say how {tool.id} is called.")
    if "body" not in locations.values():
        _check_names(tool, arguments, locations)
    request = OpenAPIRequest(method, "")
    body: dict[str, Any] = {}
    for name, value in arguments.items():
        location = locations.get(name)
        if value is None and location != "body":
            continue
        own = (annotations.get("names") or {}).get(name, name)
        style = _style((annotations.get("styles") or {}).get(name), location)
        if location == "path":
            path = path.replace("{" + own + "}", _path_value(own, value, style, own in slashes))
        elif location == "query":
            request.query += _query_pairs(own, value, style)
        elif location == "header":
            _add_header(request, own, value)
        elif location == "cookie":
            request.cookies[own] = quote(_text(value, ","), safe="")
        elif location == "requestBody":
            _set_body(request, value, str(annotations.get("contentType", "")))
        else:  # a property of the body, or one more that its schema allows
            body[own] = value
    if body:
        _set_body(request, body, str(annotations.get("contentType", "")))
    if "{" in path:
        missing = path.partition("{")[2].partition("}")[0]
        raise CallProblem("invalid", f"The argument {missing!r:.100} of the path is missing.")
    request.url = base_url + path
    _check_origin(request.url, base_url)
    return request


@dataclass(frozen=True, slots=True)
class _Style:
    name: str
    explode: bool


def _style(stated: Any, location: str | None) -> _Style:
    """Return how a parameter is written; `style` or `style,false`, OpenAPI's default if unsaid."""
    default = "form" if location in ("query", "cookie") else "simple"
    name, _, explode = str(stated or "").partition(",")
    name = name or default
    return _Style(name, explode != "false" if explode else name in ("form", "deepObject"))


def _path_value(name: str, value: Any, style: _Style, slashes: bool) -> str:
    text = _joined(value, ",", style.explode)
    # A segment of nothing or of dots would lead to another operation.
    if not text or _has_dots(text):
        raise CallProblem(
            "invalid",
            f"The argument {name!r:.100} cannot be {text!r:.100} in a path; expected a text "
            f"without '.' and '..' between slashes.",
        )
    # Many servers decode a slash before they choose the operation.
    if not slashes and any("/" in form or "\\" in form for form in _decoded(text)):
        raise CallProblem(
            "invalid",
            f"The argument {name!r:.100} cannot be {text!r:.100} in a path; expected a text "
            f"without '/' and '\\', also encoded. Whoever runs the gateway allows them by slashes "
            f"= [{json.dumps(name):.100}] under [serve.apis.NAME], if the operation takes such.",
        )
    prefix = {"label": ".", "matrix": f";{name}="}.get(style.name, "")
    return prefix + quote(text, safe=",")


def _query_pairs(name: str, value: Any, style: _Style) -> list[tuple[str, str]]:
    if style.name == "json":
        return [(name, json.dumps(value, ensure_ascii=False))]
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        if style.name == "deepObject":
            return [(f"{name}[{key}]", _text(item, ",")) for key, item in items]
        if style.explode:
            return [(str(key), _text(item, ",")) for key, item in items]
        return [(name, ",".join(f"{key},{_text(item, ',')}" for key, item in items))]
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [_text(item, ",") for item in cast("Sequence[Any]", value)]
        if style.explode and style.name not in SEPARATORS:
            return [(name, text) for text in texts]
        return [(name, SEPARATORS.get(style.name, ",").join(texts))]
    return [(name, _text(value, ","))]


def _add_header(request: OpenAPIRequest, name: str, value: Any) -> None:
    text = _text(value, ",")
    valid = name.isascii() and all(char.isalnum() or char in "-_.!#$%&'*+^`|~" for char in name)
    if not valid or name.lower() in OWN_HEADERS or name.lower().startswith("proxy-"):
        raise CallProblem("invalid", f"The header {name!r:.100} cannot be set by an argument.")
    if not text.isascii() or not text.isprintable():
        raise CallProblem(
            "invalid", f"The argument {name!r:.100} goes into a header; expected printable ASCII."
        )
    request.headers[name] = text


def _set_body(request: OpenAPIRequest, value: Any, content_type: str) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind == FORM and isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        pairs: list[tuple[str, str]] = []
        for name, part in fields.items():
            style = _Style("json" if isinstance(part, Mapping) else "form", explode=True)
            pairs += _query_pairs(name, part, style)
        request.content = urlencode(pairs).encode()
    elif kind == MULTIPART and isinstance(value, Mapping):
        for name, part in cast("Mapping[str, Any]", value).items():
            is_text = isinstance(part, str)
            text = part if is_text else json.dumps(part, ensure_ascii=False)
            kind_of_part = "text/plain; charset=utf-8" if is_text else "application/json"
            request.files.append((str(name), (None, text, kind_of_part)))
        return
    elif kind in ("", "application/json") or kind.endswith("+json") or not isinstance(value, str):
        request.content = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        content_type = content_type or "application/json"
    else:
        request.content = value.encode("utf-8", "replace")
    request.headers["content-type"] = content_type


def _joined(value: Any, separator: str, explode: bool) -> str:
    """Return a value in the style `simple`."""
    if isinstance(value, Mapping):
        between = "=" if explode else ","
        items = cast("Mapping[str, Any]", value).items()
        return separator.join(f"{key}{between}{_text(item, separator)}" for key, item in items)
    return _text(value, separator)


def _text(value: Any, separator: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return separator.join(_text(item, separator) for item in cast("Sequence[Any]", value))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _check_names(tool: Tool, arguments: Iterable[str], known: Mapping[str, str]) -> None:
    """Raise CallProblem for arguments that an operation without properties of a body has not."""
    problems = [
        f"{name!r:.100}{did_you_mean(name, known)}" for name in arguments if name not in known
    ]
    if problems:
        expected = f"expected: {', '.join(list(known)[:SHOWN])}" if known else "it has none"
        raise CallProblem(
            "invalid",
            f"{tool.id} was not called, since it has no argument "
            f"{', '.join(problems[:SHOWN])} ({expected}).",
        )


def _check_origin(url: str, base_url: str) -> None:
    """Raise CallProblem unless a URL is below the operator's address."""
    address, base = urlsplit(url), urlsplit(base_url)
    same = (address.scheme, address.netloc) == (base.scheme, base.netloc)
    if not same or not url.isprintable() or "\\" in url or _has_dots(address.path):
        raise CallProblem("failed", "The path of this operation leads away from its API.")


def _has_dots(path: str) -> bool:
    """Whether a segment of a path is `.` or `..`, as the most lenient of servers reads it: decoded
    more than once, with `\\` for `/`, and without the parameters of segments (`..;x`).
    """
    for form in _decoded(path):
        for segment in re.split(r"[/\\]", form):
            name = "".join(char for char in segment.partition(";")[0] if char.isprintable())
            if name.strip() in (".", ".."):
                return True
    return False


def _decoded(path: str) -> Iterator[str]:
    """Yield a path as servers may read it: as it is, and decoded once and more often."""
    for _ in range(DECODINGS + 1):
        yield normalize("NFKC", path)
        path = unquote(path)
