"""Download an OpenAPI document within limits, and parse it as JSON or YAML."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin

from catalogs.shared.retries import Retries
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, Unreadable, parse_json
from pegboard.foreign.limits import ENCODINGS, MAX_DEPTH
from pegboard.text.redaction import public_url
from pegboard.transient import TRANSIENT_STATUSES, is_transient_network, retry_after_seconds

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
"""Members of a path item that are operations: the HTTP methods, in lower case."""
NULLABLE = {"const", "default", *METHODS}
"""Members in which null is kept: it is a value there, or an operation left empty by its author."""
OPAQUE = {"const", "default", "enum", "example", "examples", "security"}
"""Members that hold data, so their own members are not keywords."""
BY_NAME = {
    "$defs", "content", "definitions", "patternProperties", "properties", "responses", "schemas",
}  # fmt: skip
"""Members whose own members are names chosen by the author; an empty schema allows anything."""
EMPTY = BY_NAME | {
    "additionalProperties", "components", "info", "items", "not", "requestBody", "schema",
}  # fmt: skip
"""Members that are objects, which PHP writes as `[]` if they are empty."""

YAML = "tag:yaml.org,2002:"
"""Prefix of the tags of YAML's own types."""
SCALARS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "null": (r"~|null|Null|NULL|", "~nN", lambda _: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true"),
    "int": (r"[-+]?(0|[1-9][0-9]{0,399})", "-+0123456789", int),
    "float": (
        r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]+|[0-9]\.)([eE][-+]?[0-9]+)?"
        r"|[-+]?(0|[1-9][0-9]*)[eE][-+]?[0-9]+",
        "-+.0123456789",
        lambda text: text if abs(float(text)) == float("inf") else float(text),
    ),
    "merge": ("<<", "<", str),
}
"""Unquoted scalars of YAML 1.2 by type: a pattern, its possible initial characters, and a function
that converts the text to a value."""


def download(
    url: str,
    headers: Mapping[str, str],
    *,
    timeout: float,
    max_bytes: int,
    retries: Retries = Retries(attempts=1),  # noqa: B008  frozen
) -> bytes:
    """Return the bytes at a URL. Redirects are not followed, since the headers may hold keys.

    Args:
        headers: `${NAME}` in their values is replaced by an environment variable.
        timeout: seconds of one attempt, from the connection to the last byte.
        max_bytes: limit of the body, both on the wire and decompressed.
        retries: policy for transient failures.

    Raises:
        SourceError: no reply in time, or a reply that is an error, a redirect or too large. The
            message contains neither headers nor the query of the URL.
    """
    import anyio

    async def fetch() -> bytes:
        document = await download_if_changed(url, headers, timeout=timeout, max_bytes=max_bytes)
        if document is None:
            raise SourceError(f"{public_url(url)} returned status 304, expected the document.")
        return document.content

    return anyio.run(retries.call_async, fetch)


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes at a URL, and the headers by which a server knows them; empty without."""

    content: bytes
    etag: str = ""
    modified: str = ""


async def download_if_changed(
    url: str,
    headers: Mapping[str, str],
    *,
    timeout: float,
    max_bytes: int,
    etag: str = "",
    modified: str = "",
) -> Document | None:
    """Return the document at a URL; None if the server says that it is unchanged. See `download`.

    Args:
        etag: the header ETag of the last answer; empty without.
        modified: its header Last-Modified; empty without.
    """
    import anyio
    import httpx

    where = public_url(url)
    known = {"If-None-Match": etag, "If-Modified-Since": modified}
    sent = {
        "Accept-Encoding": "identity",
        **{name: value for name, value in known.items() if value},
        **_expanded(headers),
    }
    try:
        # httpx's own timeout is per read: a server that trickles bytes would never exceed it.
        with anyio.fail_after(timeout):
            async with (
                httpx.AsyncClient(timeout=None) as client,  # noqa: S113  limited as a whole
                client.stream("GET", url, headers=sent) as response,
            ):
                if response.status_code == HTTPStatus.NOT_MODIFIED and (etag or modified):
                    return None
                content = await _body(response, where, max_bytes)
                answer = response.headers
                return Document(content, answer.get("etag", ""), answer.get("last-modified", ""))
    except TimeoutError:
        raise SourceError(
            f"{where} has not sent the document after {timeout:g} seconds. Raise `timeout`.",
            may_pass=True,
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # Only the type is shown: some messages quote the request.
        raise SourceError(
            f"Cannot fetch {where}: {type(error).__name__}. Check the address and the network.",
            may_pass=isinstance(error, httpx.TransportError) and is_transient_network(error),
        ) from None


async def _body(response: Any, where: str, max_bytes: int) -> bytes:
    if response.is_redirect:
        target = public_url(urljoin(str(response.url), response.headers.get("location", "")))
        raise SourceError(
            f"{where} has moved to {target}. Configure that URL if you trust it with the headers."
        )
    if not response.is_success:  # the reason phrase is untrusted, so only the number is shown
        raise SourceError(
            f"{where} returned status {response.status_code}, expected the document.",
            may_pass=response.status_code in TRANSIENT_STATUSES,
            retry_after=retry_after_seconds(response.headers.get("retry-after", "")),
        )
    encoding = response.headers.get("content-encoding", "").lower()
    if encoding not in ENCODINGS:
        raise SourceError(
            f"The document at {where} is compressed as {encoding!r:.100}, expected plain, gzip or "
            f"deflate."
        )
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if max(response.num_bytes_downloaded, len(body)) > max_bytes:
            raise SourceError(
                f"{where} sent more than {max_bytes:,} bytes. Split the document, or raise "
                f"`max_bytes` of its catalog."
            )
    return bytes(body)


def _expanded(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with `${NAME}` replaced by environment variables."""
    from pegboard.servers.config import References as Variables

    variables = Variables()
    expanded = {name: variables.resolve(value) for name, value in headers.items()}
    problems = variables.problems + [
        f"the value of the header {name} has characters not allowed in a header; correct it"
        for name, value in expanded.items()
        if not (value.isascii() and value.isprintable())
    ]
    if problems:
        raise SourceError(f"The headers cannot be sent: {'; '.join(problems)}.")
    return expanded


def parse(text: str, where: str) -> Any:
    """Return the value of a JSON or YAML text.

    Members that are null are removed, except paths and operations, and `[]` becomes an empty object
    where one is meant.
    """
    document = _parse(text, where)
    _drop_nulls(document)
    return document


def _parse(text: str, where: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return parse_yaml(text, where)
    try:
        return parse_json(text, where)
    except SourceError as error:
        try:
            return parse_yaml(text, where)
        except SourceError:
            raise error from None


def parse_yaml(text: str, where: str) -> Any:
    """Return the JSON value of a YAML text. Raises SourceError with the line.

    PyYAML only composes nodes. Its own constructors follow YAML 1.1, where `on` is true, 2024-01-01
    a date, and the status code 200 a key that JSON does not allow.
    """
    import yaml

    try:
        node = yaml.compose(text, _loader())
        return None if node is None else _value(node, where, {})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SourceError(
            f"{where} is not YAML: {error.problem}{place}. Correct that place."
        ) from error
    except (yaml.YAMLError, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"{where} is not YAML: {reason}. Save it as UTF-8.") from error


@cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("Loader", (base,), {"yaml_implicit_resolvers": {}})
    for kind, (pattern, initials, _) in SCALARS.items():
        keys = ["", *initials] if kind == "null" else [*initials]
        loader.add_implicit_resolver(f"{YAML}{kind}", re.compile(rf"(?:{pattern})\Z"), keys)
    return loader


def _value(node: Any, where: str, made: dict[Any, Any], depth: int = 0) -> Any:
    """Return the value of a node; aliases share the value of their anchor.

    Args:
        made: values by node; a node whose value is not finished yet maps to itself.
    """

    def fail(what: str, at: Any = node) -> SourceError:
        line = at.start_mark.line + 1
        return SourceError(f"{where} cannot be read as JSON in YAML: {what}, at line {line}.")

    kind = node.tag.removeprefix(YAML)
    if node.id == "scalar":
        try:
            return node.value if kind == "str" else SCALARS[kind][2](node.value)
        except (KeyError, ValueError):
            raise fail(f"the tag {node.tag} has no JSON equivalent; quote the value") from None
    if node in made:
        if made[node] is node:
            raise fail("an alias refers to the value that contains it")
        return made[node]
    if kind not in ("map", "seq"):
        raise fail(f"the tag {node.tag} has no JSON equivalent")
    if depth >= MAX_DEPTH:
        return Unreadable(f"a part nested deeper than {MAX_DEPTH} levels")
    made[node] = node
    if kind == "seq":
        made[node] = [_value(item, where, made, depth + 1) for item in node.value]
        return made[node]
    pairs: list[tuple[str, Any]] = []
    merged: dict[str, Any] = {}
    for key, item in node.value:
        if key.id != "scalar":
            raise fail("a key is a list or a mapping, which JSON does not allow", key)
        value = _value(item, where, made, depth + 1)
        if key.tag == f"{YAML}merge":
            bases = value if isinstance(value, list) else [value]
            for base in reversed(bases):
                merged |= base if isinstance(base, dict) else {}
        else:
            # Keys stay text, since 200, on and null are names of responses and properties.
            pairs.append((key.value, value))
    members = dict(pairs)
    if len(members) < len(pairs):
        made[node] = RepeatedNames(pairs)
    else:
        made[node] = merged | members
    return made[node]


def _drop_nulls(document: Any) -> None:
    """Remove members that are null, in place, except paths and operations; replace `[]` by `{}` in
    members that are objects.

    JSON generators write nulls, and a YAML key without a value is null: both mean an absent member.
    """
    seen: set[int] = set()
    pending = [document]
    while pending:
        part = pending.pop()
        if not isinstance(part, dict | list) or id(part) in seen:  # YAML aliases share values
            continue
        seen.add(id(part))
        if isinstance(part, list):
            pending += part
            continue
        for key, member in list(part.items()):
            value = member
            if value == [] and key in EMPTY:
                value = part[key] = {}
            if value is None and key not in NULLABLE:
                del part[key]
            elif key == "paths" and isinstance(value, dict):
                pending += value.values()
            elif key in BY_NAME and isinstance(value, dict):
                value |= {name: {} for name, schema in value.items() if schema in (None, [])}
                pending += value.values()
            elif key not in OPAQUE and not str(key).startswith("x-"):
                pending.append(value)
