"""Source kind `openapi`: every operation of an OpenAPI 3.0, 3.1 or 3.2 or a Swagger 2.0 document,
in JSON or YAML, is a tool of that API. See docs/how-to/sources.md.

A document of another version fails as a whole. An operation that is broken, or that refers to
something which is missing or must not be followed, is rejected with the reason, and the others are
listed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic import Field, model_validator

from catalogs.openapi import swagger2
from catalogs.openapi.document import METHODS, References, download, parse
from catalogs.openapi.operation import Operation, arguments, output_schema, resolve_operation
from catalogs.openapi.schema import SchemaGraph
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions, files_of_path
from catalogs.shared.validity import member_text, valid_text
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, flaw_of, matching_files, read_text
from pegboard.text.redaction import public_url

TEMPLATE = re.compile(r"\{([^{}]+)\}")
"""A parameter in a path."""


class OpenAPIOptions(SourceOptions):
    """The options of a catalog of type `openapi`: exactly one of `path` and `url`.

    `headers` may hold `${NAME}`, which stands for an environment variable. `agent` is the name of
    the API in ids, by default that of the catalog."""

    path: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    timeout: float = Field(30.0, gt=0)
    agent: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "OpenAPIOptions":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either `path` or `url` of the document")
        if self.url and urlsplit(self.url).scheme not in ("http", "https"):
            raise ValueError("`url` must begin with http:// or https://; for a file give `path`")
        return self


def read(listing: ListingBuilder, options: OpenAPIOptions) -> None:
    """List the operations of the document.

    Raises SourceError if it cannot be read or is neither OpenAPI 3 nor Swagger 2.0.
    """
    document, refs, place = _load(listing, options)
    _check(document, place)
    info = document.get("info")
    info = info if isinstance(info, dict) else {}
    # Ids hold the name of the catalog: titles are long, and change with the version.
    agent = listing.agent(
        options.agent or listing.catalog,
        description=_joined(member_text(info, "title"), _text(info)),
        kind="api",
        source=place,
    )
    api = _Api(listing, agent, document, SchemaGraph(refs), place)
    for path, item in document["paths"].items():
        if path.startswith("x-"):
            continue
        with listing.record(f"{place} {path}"):
            api.list_path(path, item)
    listing.repeatable = listing.repeatable and not refs.left_document


def _load(listing: ListingBuilder, options: OpenAPIOptions) -> tuple[Any, References, str]:
    if options.url:
        place = public_url(options.url)
        content = download(
            options.url, options.headers, timeout=options.timeout, max_bytes=options.max_bytes
        )
        document = parse(content.decode("utf-8-sig", "surrogateescape"), place)
        return document, References.of(document, None, 0), place
    files = matching_files(listing.base, options.path or "")
    if len(files) > 1:
        raise SourceError(
            f"'{options.path}' matches {len(files)} files, expected one. Add a catalog for each "
            f"document."
        )
    text = read_text(files[0], options.max_bytes)
    document = parse(text, str(files[0]))
    return document, References.of(document, files[0], options.max_bytes), options.path or ""


def _check(document: Any, place: str) -> None:
    """Raise SourceError if the document is neither OpenAPI 3 nor Swagger 2, or has no paths."""
    if not isinstance(document, dict):
        raise SourceError(
            f"{place} is not an OpenAPI document: it is {type(document).__name__}, expected an "
            f"object."
        )
    if isinstance(document, RepeatedNames):
        raise SourceError(f"{place} is ambiguous: {flaw_of(document)}.")
    known = re.match(r"3\.[012](?!\d)", str(document.get("openapi")))  # in YAML perhaps a number
    if known is None and not swagger2.is_swagger_2(document):
        version = document.get("swagger", document.get("openapi"))
        raise SourceError(
            f"{place} is not an OpenAPI document: its version is {version!r:.100}, expected "
            f"`openapi` '3.0.x', '3.1.x' or '3.2.x', or `swagger` '2.0'."
        )
    if not isinstance(document.get("paths"), dict):
        raise SourceError(
            f"{place} has no `paths`, so it offers no operations. Expected an object of paths."
        )


@dataclass(frozen=True, slots=True)
class _Api:
    """Lists the operations of one document."""

    listing: ListingBuilder
    agent: str
    document: Mapping[str, Any]
    graph: SchemaGraph
    place: str

    def list_path(self, path: str, item: Any) -> None:
        paths = self.document["paths"]
        if isinstance(paths, RepeatedNames) and path in paths.repeated:
            raise SourceError("its path stands twice in the document; remove one")
        if item is None or _has_only_nulls(item):
            raise SourceError("it has no operation but null; describe one, or remove the path")
        _check_path(path)
        for part, base in _path_items(self.graph.refs, item):
            for method in METHODS:
                if part.get(method) is not None:
                    with self.listing.record(f"{self.place} {method.upper()} {path}"):
                        self._list_operation(path, method, part, base)

    def _list_operation(self, path: str, method: str, item: Mapping[str, Any], base: str) -> None:
        spec = item[method]
        if not isinstance(spec, dict):
            raise SourceError(f"it is {type(spec).__name__}, expected an operation object")
        operation = resolve_operation(self.graph.refs, item, spec, base)
        if swagger2.is_swagger_2(self.document):
            operation = swagger2.convert_operation(operation, self.document, base)
        operation.check()
        _check_parameters(operation, path)
        inputs = arguments(self.graph, operation)
        self.listing.tool(
            self.agent,
            (spec.get("operationId") or "").strip() or _name(method, path),
            where=f"{self.place} {method.upper()} {path}",
            raw=spec,
            description=_description(spec, item),
            input_schema=inputs.schema,
            output_schema=output_schema(self.graph, operation),
            annotations={
                **_annotations(self.document, spec, method, path),
                **self._base_url(item, spec),
                **inputs.annotations,
            },
            tags=spec.get("tags") or (),
        )

    def _base_url(self, item: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, str]:
        """Return what stands before the path in the operation's URL, if the document says so."""
        if swagger2.is_swagger_2(self.document):
            servers: Any = swagger2.base_urls(self.document, spec)
        else:
            holders = (spec, item, self.document)
            servers = next((each["servers"] for each in holders if each.get("servers")), [])
        first = servers[0] if isinstance(servers, list) and servers else None
        url = server_url(first, self.place) if isinstance(first, dict) else ""
        return {"baseUrl": url} if url else {}


def server_url(server: Mapping[str, Any], place: str) -> str:
    """Return the URL of a server with the defaults of its variables; empty if it has none.

    Args:
        place: of the document; a relative URL counts from it, if it is a URL.
    """
    url, variables = server.get("url"), server.get("variables")
    if not isinstance(url, str):
        return ""

    def default(match: re.Match[str]) -> str:
        variable = variables.get(match[1]) if isinstance(variables, dict) else None
        value = variable.get("default") if isinstance(variable, dict) else None
        return value if isinstance(value, str) else match[0]

    url = valid_text(re.sub(r"\{([^{}]*)\}", default, url))
    try:
        url = urljoin(place, url) if "://" in place else url
        parts = urlsplit(url)
    except ValueError:
        return ""
    return public_url(url).rstrip("/") if parts.scheme in ("", "http", "https") else ""


def _path_items(refs: References, item: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the path item, and the one that it refers to; each may have operations."""
    yield _path_item(item), refs.uri
    if "$ref" in item:
        target, base = refs.follow({"$ref": item["$ref"]}, refs.uri)
        yield _path_item(target), base


def _has_only_nulls(item: Any) -> bool:
    """Return whether all operations of a path are null: beside others, null counts as absent."""
    operations = (
        [item[method] for method in METHODS if method in item] if isinstance(item, dict) else []
    )
    return (
        bool(operations) and "$ref" not in item and not any(spec is not None for spec in operations)
    )


def _path_item(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise SourceError(f"it is {type(item).__name__}, expected an object of operations")
    if isinstance(item, RepeatedNames):
        raise SourceError(flaw_of(item))
    return item


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise SourceError("its path does not begin with /; correct it")
    if set(TEMPLATE.sub("", path)) & {"{", "}"}:
        raise SourceError("its path has a brace that is not part of a {name}; correct it")


def _check_parameters(operation: Operation, path: str) -> None:
    """Raise SourceError for a parameter that stands twice, or that only the path names."""
    invalid, seen = "it is not valid OpenAPI:", set[tuple[str, str]]()
    for part, _ in operation.parameters:
        key = part["name"], part["in"]
        if key in seen:
            raise SourceError(f"{invalid} the {key[1]} parameter {key[0]!r:.200} stands twice")
        seen.add(key)
    for name in TEMPLATE.findall(path):
        if (name, "path") not in seen:
            raise SourceError(f"{invalid} its path names {name!r:.200}, which is no path parameter")


def _annotations(
    document: Mapping[str, Any], spec: Mapping[str, Any], method: str, path: str
) -> dict[str, Any]:
    """Return what the tool does beyond its schema; the hints are named as in MCP."""
    out: dict[str, Any] = {"method": method.upper(), "path": path}
    if method in ("get", "head", "query"):
        out["readOnlyHint"] = True
    if method == "delete":
        out["destructiveHint"] = True
    if spec.get("deprecated") is True:
        out["deprecated"] = True
    if security := _security(document, spec):
        out["security"] = security
    return out


def _security(document: Mapping[str, Any], spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the security schemes of the operation; an empty list of its own overrides."""
    components = document.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    if swagger2.is_swagger_2(document):
        schemes = document.get("securityDefinitions")
    required = spec.get("security", document.get("security"))
    out: dict[str, dict[str, Any]] = {}
    for alternative in required if isinstance(required, list) else []:
        for name in alternative if isinstance(alternative, dict) else ():
            scheme = schemes.get(name) if isinstance(schemes, dict) else None
            kind = scheme.get("type") if isinstance(scheme, dict) else None
            out[name] = {"name": valid_text(name)} | (
                {"type": valid_text(kind)} if isinstance(kind, str) else {}
            )
            if isinstance(scheme, dict) and isinstance(kind, str):
                out[name] |= _carrier(scheme)
    return list(out.values())


def _carrier(scheme: Mapping[str, Any]) -> dict[str, str]:
    """Return by what a credential is sent: the parameter of a key, or the HTTP scheme."""
    keys = {"apiKey": {"in": "in", "name": "parameter"}, "http": {"scheme": "scheme"}}
    return {
        own: valid_text(scheme[key])
        for key, own in keys.get(scheme["type"], {}).items()
        if isinstance(scheme.get(key), str)
    }


def _description(spec: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    text = _text(spec) or _text(item)
    return f"{text}\n\nDeprecated.".strip() if spec.get("deprecated") is True else text


def _text(part: Mapping[str, Any]) -> str:
    """Return the summary and the description, once if the one begins with the other."""
    summary, description = member_text(part, "summary"), member_text(part, "description")
    if description.startswith(summary.rstrip(".")):
        return description
    return _joined(summary, description)


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _name(method: str, path: str) -> str:
    """Return a name as stable as the address: `get_pets_by_petId` for `GET /pets/{petId}`."""
    words = re.sub(r"\{([^{}]*)\}", r"by_\1", path)
    return re.sub(r"[^A-Za-z0-9_]+", "_", f"{method}_{words}").strip("_").replace("__", "_")


source = SourceKind(options=OpenAPIOptions, read=read, inputs=files_of_path)
"""A document that refers to other files says so when it is read."""
