"""Source kind `openapi`: every operation of an OpenAPI 3.0, 3.1 or 3.2 or Swagger 2.0 document, in
JSON or YAML, becomes a tool. See docs/how-to/sources.md.

A document of another version fails as a whole. An operation is rejected with the reason if it is
invalid, or if a reference in it is missing or not allowed; the others are listed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic import Field, model_validator

from catalogs.openapi import swagger2
from catalogs.openapi.document import METHODS, download
from catalogs.openapi.operation import Operation, arguments, output_schema, resolve_operation
from catalogs.openapi.plain import as_text, plain
from catalogs.openapi.references import References
from catalogs.openapi.schema import SchemaGraph
from catalogs.openapi.subtypes import Subtypes
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions, files_of_path
from catalogs.shared.selection import Candidate
from catalogs.shared.validity import member_text, valid_text
from catalogs.shared.watching import Watched, WatchedFiles, WatchedUrl
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames, decoded, flaw_of, matching_files, read_text
from pegboard.formatting import count_text
from pegboard.text.redaction import public_url

TEMPLATE = re.compile(r"\{([^{}]+)\}")
"""Matches a parameter in a path, such as `{petId}`."""
INTERNAL = ("x-internal", "x-hidden", "x-excluded", "x-speakeasy-ignore", "x-fern-ignore")
"""Flags of operations and paths that are not for the API's users."""
MAX_NAMES = 5
"""Most names in a message."""
OUTSIDE = re.compile(r"""["']?\$ref["']?\s*:\s*["']?[^#"'\s]""")
"""Matches a reference that leads out of its document."""


class OpenAPIOptions(SourceOptions):
    """The options of a catalog of type `openapi`: either `path` or `url`.

    `${NAME}` in `headers` is replaced by an environment variable. `agent` is the name of the API in
    ids; it defaults to the catalog's name."""

    path: str | None = None
    url: str | None = None
    root: str | None = None
    """The folder whose files the document may refer to; by default its own."""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    timeout: float = Field(30.0, gt=0)
    agent: str | None = None
    internal: bool = False
    """Whether operations that are marked as internal are listed."""

    @model_validator(mode="after")
    def _one_place(self) -> "OpenAPIOptions":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either `path` or `url` of the document")
        if self.url and urlsplit(self.url).scheme not in ("http", "https"):
            raise ValueError("`url` must begin with http:// or https://; for a file use `path`")
        if self.url and self.root is not None:
            raise ValueError(
                "`root` is for a document at a `path`; remove it, or save the document"
            )
        return self


def read(listing: ListingBuilder, options: OpenAPIOptions) -> None:
    """List the operations of the document.

    Raises SourceError if the document cannot be read or is neither OpenAPI 3 nor Swagger 2.0.
    """
    refs, place = _load(listing, options)
    document = refs.document
    _check(document, place)
    info = document.get("info")
    info = info if isinstance(info, dict) else {}
    # Ids use the catalog's name, since titles are long and change with the version.
    agent = listing.agent(
        options.agent or listing.catalog,
        description=_joined(member_text(info, "title"), _text(info)),
        kind="api",
        source=place,
    )
    repeated = _repeated_ids(refs, document["paths"])
    if repeated:
        shown = _shown(sorted(repeated))
        listing.notice(
            "renamed",
            place,
            f"several operations have the operationId {shown}; they are listed under names "
            f"of their method and path. Give each an operationId of its own.",
        )
    subtypes = Subtypes(refs) if refs.has_subtypes else None
    api = _Api(
        listing,
        agent,
        document,
        SchemaGraph(refs, subtypes),
        SchemaGraph(refs),
        place,
        repeated,
        options.internal,
    )
    for path, item in document["paths"].items():
        if path.startswith("x-"):
            continue
        with listing.record(f"{place} {path}"):
            api.list_path(path, item)
    if api.left_out:
        listing.notice(
            "skipped",
            place,
            f"{count_text(len(api.left_out), 'operation')} marked as internal left out, the first "
            f"is {api.left_out[0]:.200}. Set `internal = true` to list them.",
            len(api.left_out),
        )
    listing.repeatable = listing.repeatable and not refs.left_document


def _load(listing: ListingBuilder, options: OpenAPIOptions) -> tuple[References, str]:
    """Return the document, as references to it, and its place."""
    if options.url:
        place = public_url(options.url)
        content = download(
            options.url,
            options.headers,
            timeout=options.timeout,
            max_bytes=options.max_bytes,
            retries=listing.retries,
        )
        return References.of_url(decoded(content, place), place, options.url), place
    files = matching_files(listing.base, options.path or "")
    if len(files) > 1:
        raise SourceError(
            f"'{options.path}' matches {len(files)} files, expected one. Add a catalog for each "
            f"document."
        )
    text = read_text(files[0], options.max_bytes)
    root = _root(listing.base, options, files[0])
    return References.of_file(text, files[0], options.max_bytes, root), options.path or ""


def _root(base: Path, options: OpenAPIOptions, file: Path) -> Path | None:
    """Return the folder of the option `root`; None without it.

    Raises SourceError if it does not have the document.
    """
    if options.root is None:
        return None
    root = (base / Path(options.root).expanduser()).resolve()
    if not root.is_dir() or not file.resolve().is_relative_to(root):
        raise SourceError(
            f"`root` is {root}, expected a folder that has the document {file.resolve()}. Relative "
            f"paths count from the folder of pegboard.toml."
        )
    return root


def _check(document: Any, place: str) -> None:
    """Raise SourceError if the document is neither OpenAPI 3 nor Swagger 2, or has no paths."""
    if not isinstance(document, dict):
        raise SourceError(
            f"{place} is not an OpenAPI document: it is {type(document).__name__}, expected an "
            f"object."
        )
    if isinstance(document, RepeatedNames):
        raise SourceError(f"{place} is ambiguous: {flaw_of(document)}.")
    version_3 = re.match(r"3\.[012](?!\d)", str(document.get("openapi")))  # a number in some YAML
    if version_3 is None and not swagger2.is_swagger_2(document):
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
    outputs: SchemaGraph
    """The graph of output schemas, in which a base stands for itself."""
    place: str
    repeated: frozenset[str]
    """The operationIds of several operations, none of which is named by it."""
    internal: bool
    left_out: list[str] = field(default_factory=list[str])
    """Method and path of the operations that are left out, since they are internal."""

    def list_path(self, path: str, item: Any) -> None:
        paths = self.document["paths"]
        if isinstance(paths, RepeatedNames) and path in paths.repeated:
            raise SourceError("its path is repeated in the document; remove one")
        if item is None or _has_only_nulls(item):
            raise SourceError("its operations are all null; describe one, or remove the path")
        _check_path(path)
        for part, base in _path_items(self.graph.refs, item):
            for method in METHODS:
                if part.get(method) is not None:
                    with self.listing.record(f"{self.place} {method.upper()} {path}"):
                        self._list_operation(path, method, part, base)

    def _list_operation(self, path: str, method: str, item: Mapping[str, Any], base: str) -> None:
        raw = item[method]
        spec = plain(raw)
        if not isinstance(spec, dict):
            raise SourceError(f"it is {type(spec).__name__}, expected an operation object")
        where = f"{self.place} {method.upper()} {path}"
        annotations = {
            **_annotations(self.document, spec, method, path),
            **self._base_url(item, spec),
        }
        declared = (spec.get("operationId") or "").strip()
        name = _name(method, path) if not declared or declared in self.repeated else declared
        tags = spec.get("tags") or ()
        record = raw if isinstance(raw, RepeatedNames) else {**_extensions(item), **raw}
        if not self.listing.selection.selects(Candidate(name, tags, annotations, record), where):
            return
        if not self.internal and (_is_internal(item) or _is_internal(raw)):
            self.left_out.append(f"{method.upper()} {path}")
            return
        operation = resolve_operation(self.graph.refs, item, spec, base)
        if swagger2.is_swagger_2(self.document):
            operation = swagger2.convert_operation(operation, self.document, base)
        operation.check()
        if undeclared := _undeclared(operation, path):
            names = ", ".join(repr(name)[:200] for name in undeclared)
            self.listing.notice(
                "repaired",
                where,
                f"its path names {names}, which it does not declare; the operation is listed with "
                f"it as text. Declare it as a path parameter.",
            )
            added = tuple((_path_parameter(name), base) for name in undeclared)
            operation = replace(operation, parameters=(*operation.parameters, *added))
        inputs = arguments(self.graph, operation)
        is_listed = self.listing.tool(
            self.agent,
            name,
            where=where,
            raw=record,
            description=_description(spec, item),
            input_schema=inputs.schema,
            output_schema=output_schema(self.outputs, operation),
            annotations={**annotations, **inputs.annotations},
            tags=tags,
        )
        if is_listed and inputs.left_out:
            names = _shown(inputs.left_out)
            self.listing.notice(
                "cut",
                where,
                f"its input schema names {names} without what they have, since the whole would be "
                f"too long. Describe fewer in one operation, or split it.",
            )

    def _base_url(self, item: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, str]:
        """Return the base URL of the operation, if the document has one."""
        if swagger2.is_swagger_2(self.document):
            servers: Any = swagger2.base_urls(self.document, spec)
        else:
            levels = (spec, item, self.document)
            servers = next((level["servers"] for level in levels if level.get("servers")), [])
        server = servers[0] if isinstance(servers, list) and servers else None
        url = server_url(server, self.place) if isinstance(server, dict) else ""
        return {"baseUrl": url} if url else {}


def server_url(server: Mapping[str, Any], place: str) -> str:
    """Return the URL of a server with variables replaced by their defaults; empty without a URL.

    Args:
        place: where the document is; relative server URLs are resolved against it if it is a URL.
    """
    url = server.get("url")
    variables = server.get("variables")
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
    """Yield the path item, and the target of its `$ref`; both may have operations."""
    yield _path_item(item), refs.uri
    if "$ref" in item:
        target, base = refs.follow({"$ref": item["$ref"]}, refs.uri)
        yield _path_item(target), base


def _repeated_ids(refs: References, paths: Mapping[str, Any]) -> frozenset[str]:
    """Return the operationIds that operations of several methods or paths have."""
    places: dict[str, set[tuple[str, str]]] = {}
    for path, item in paths.items():
        with suppress(SourceError):  # which `list_path` reports
            for part, _ in _path_items(refs, item):
                for method in METHODS:
                    name = _operation_id(part.get(method))
                    if name:
                        places.setdefault(name, set()).add((method, path))
    return frozenset(name for name, found in places.items() if len(found) > 1)


def _operation_id(spec: Any) -> str:
    name = as_text(spec.get("operationId")) if isinstance(spec, dict) else None
    return name.strip() if isinstance(name, str) else ""


def _extensions(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the extensions of a path, which apply to its operations."""
    return {key: value for key, value in item.items() if key.startswith("x-")}


def _shown(names: Sequence[str]) -> str:
    """Return the first names for a message, and the number of the others."""
    shown = ", ".join(repr(name)[:100] for name in names[:MAX_NAMES])
    return shown + (f" and {len(names) - MAX_NAMES:,} others" if len(names) > MAX_NAMES else "")


def _is_internal(part: Any) -> bool:
    """Return whether an operation or path is marked as internal, or as not for MCP."""
    if not isinstance(part, dict):
        return False
    mcp = part.get("x-speakeasy-mcp")
    disabled = isinstance(mcp, dict) and mcp.get("disabled") is True
    return disabled or any(part.get(flag) is True for flag in INTERNAL)


def _has_only_nulls(item: Any) -> bool:
    """Return whether all operations of a path are null. Next to others, null means absent."""
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
        raise SourceError(str(flaw_of(item)))
    return item


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise SourceError("its path does not begin with /; correct it")
    if set(TEMPLATE.sub("", path)) & {"{", "}"}:
        raise SourceError("its path has a brace outside of a {name}; correct it")


def _undeclared(operation: Operation, path: str) -> list[str]:
    """Return the names in the path that are not declared as parameters.

    Raises SourceError for a repeated parameter.
    """
    seen: set[tuple[str, str]] = set()
    for part, _ in operation.parameters:
        key = part["name"], part["in"]
        if key in seen:
            raise SourceError(
                f"it is not valid OpenAPI: the {key[1]} parameter {key[0]!r:.200} is repeated"
            )
        seen.add(key)
    names = dict.fromkeys(TEMPLATE.findall(path))
    return [name for name in names if (name, "path") not in seen]


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _annotations(
    document: Mapping[str, Any], spec: Mapping[str, Any], method: str, path: str
) -> dict[str, Any]:
    """Return the annotations of the operation; the hints have the names of MCP."""
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
    """Return the security schemes of the operation; its own list, even empty, overrides."""
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
    """Return how a credential is sent: the parameter of an API key, or the HTTP scheme."""
    keys = {"apiKey": {"in": "in", "name": "parameter"}, "http": {"scheme": "scheme"}}
    return {
        label: valid_text(scheme[key])
        for key, label in keys.get(scheme["type"], {}).items()
        if isinstance(scheme.get(key), str)
    }


def _description(spec: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    text = _text(spec) or _text(item)
    return f"{text}\n\nDeprecated.".strip() if spec.get("deprecated") is True else text


def _text(part: Mapping[str, Any]) -> str:
    """Return summary and description; only the description if it begins with the summary."""
    summary = member_text(part, "summary")
    description = member_text(part, "description")
    if description.startswith(summary.rstrip(".")):
        return description
    return _joined(summary, description)


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _name(method: str, path: str) -> str:
    """Return a name derived from method and path: `get_pets_by_petId` for `GET /pets/{petId}`.

    A path that has more letters of other scripts than of ASCII keeps them.
    """
    words = re.sub(r"\{([^{}]*)\}", r"by_\1", path)
    letters = [character for character in path if character.isalpha()]
    is_foreign = 2 * sum(map(str.isascii, letters)) < len(letters)
    text = f"{method}_{words}"
    name = re.sub(r"\W+", "_", text) if is_foreign else re.sub(r"[^A-Za-z0-9_]+", "_", text)
    return name.strip("_").replace("__", "_")


def watched(base: Path, options: OpenAPIOptions) -> list[Watched]:
    """Return the document, and if it refers to other files, those of its folder."""
    if options.url:
        return [WatchedUrl(options.url, options.headers, options.timeout, options.max_bytes)]
    return [WatchedFiles(partial(_files, base, options), (options.path or "",))]


def _files(base: Path, options: OpenAPIOptions) -> list[Path]:
    files = matching_files(base, options.path or "")
    if OUTSIDE.search(read_text(files[0], options.max_bytes)):
        others = (_root(base, options, files[0]) or files[0].resolve().parent).rglob("*")
        files += sorted(file for file in others if file.suffix in (".json", ".yaml", ".yml"))
    return files


source = SourceKind(options=OpenAPIOptions, read=read, inputs=files_of_path, watched=watched)
"""If the document refers to other files, `read` marks the listing as not repeatable."""
