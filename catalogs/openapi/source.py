"""Source kind `openapi`: every operation of an OpenAPI 3.0, 3.1 or 3.2 document, in JSON or YAML,
is a tool of that API.

    [catalogs.petstore]
    type = "openapi"
    url = "https://petstore.example/openapi.json"     # or: path = "petstore.yaml"
    headers = { Authorization = "Bearer ${PETSTORE_TOKEN}" }

A document that is not OpenAPI 3 fails as a whole. An operation that is broken, or that refers to
something which is missing or must not be followed, is rejected with the reason, and the others are
listed."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from catalogs.openapi.document import Broken, References, fetch, parse, read_document
from catalogs.openapi.operation import Operation, arguments, output_schema, resolved
from catalogs.openapi.schema import SchemaGraph
from catalogs.shared.files import matching_files
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from pegboard.errors import SourceError
from pegboard.redaction import public_url

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_ERRORS = 20
"""Errors of a document that are told at once."""


class OpenAPIOptions(SourceOptions):
    """The options of a catalog of type `openapi`: exactly one of `path` and `url`.

    `headers` may hold `${NAME}`, which stands for an environment variable. `agent` replaces the
    title of the document as the name of the API, which has to be told apart from the others of the
    catalog."""

    path: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    timeout: float = Field(30.0, gt=0)
    agent: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "OpenAPIOptions":
        if (self.path is None) == (self.url is None):
            raise ValueError("give either `path` or `url` of the document")
        if self.url and not re.match(r"https?://", self.url):
            raise ValueError("`url` must begin with http:// or https://; for a file give `path`")
        return self


def read(listing: ListingBuilder, options: OpenAPIOptions) -> None:
    """List the operations of the document. Raises SourceError if it cannot be read or is not
    OpenAPI 3.
    """
    document, refs, place = _load(listing, options)
    _check(document, place)
    info = document["info"]
    agent = listing.agent(
        options.agent or info["title"],
        description=_text(info),
        kind="api",
        source=place,
    )
    graph = SchemaGraph(refs)
    for path, item in document["paths"].items():
        if path.startswith("x-"):
            continue
        where = f"{place} {path}"
        try:
            items = list(_path_items(refs, item))
        except Broken as error:
            listing.reject(where, f"{error}", item)
            continue
        for part, base in items:
            for method in METHODS:
                if method in part:
                    _list_operation(
                        listing, agent, document, graph, (path, method, part, base), place
                    )
    listing.repeatable = listing.repeatable and not refs.left


def _load(listing: ListingBuilder, options: OpenAPIOptions) -> tuple[Any, References, str]:
    if options.url:
        place = public_url(options.url)
        document = parse(fetch(options.url, options.headers, options.timeout), place)
        return document, References.of(document, None), place
    found = matching_files(listing.base, options.path or "")
    if len(found) > 1:
        raise SourceError(
            f"'{options.path}' matches {len(found)} files, expected one. Add a catalog for each "
            f"document."
        )
    document = read_document(found[0])
    return document, References.of(document, found[0]), options.path or ""


def _check(document: Any, place: str) -> None:
    """Raise SourceError if the document as a whole is not OpenAPI 3; what its operations say is not
    looked at.
    """
    if not isinstance(document, dict):
        raise SourceError(
            f"{place} is not an OpenAPI document: it is {type(document).__name__}, expected an "
            f"object."
        )
    if "swagger" in document:
        raise SourceError(
            f"{place} is written in Swagger {document['swagger']}, expected OpenAPI 3. "
            "Convert it, for example with `npx swagger2openapi` or the converter of "
            "editor.swagger.io."
        )
    validator = _validator(document, place)
    if not isinstance(document.get("paths"), dict):
        raise SourceError(
            f"{place} has no `paths`, so it offers no operations. Expected an object of paths."
        )
    info = document.get("info")
    if isinstance(
        info, dict
    ):  # what else stands there, by mistake or for another version, is nothing to fail for
        info = {key: info[key] for key in ("title", "version") if key in info}
    head = {"openapi": document["openapi"], "info": info, "paths": {}}
    errors = [_error(error, 0) for error in validator.schema_validator.iter_errors(head)]
    if errors:
        more = f" (and {len(errors) - MAX_ERRORS} more)" if len(errors) > MAX_ERRORS else ""
        raise SourceError(
            f"{place} is not valid OpenAPI: {'; '.join(errors[:MAX_ERRORS])}{more}. Correct it."
        )


def _validator(document: Mapping[str, Any], place: str) -> Any:
    from openapi_spec_validator.shortcuts import get_validator_cls
    from openapi_spec_validator.validation.exceptions import ValidatorDetectError

    version = document.get("openapi")
    try:
        return get_validator_cls({"openapi": version} if isinstance(version, str) else {})
    except ValidatorDetectError:
        raise SourceError(
            f"{place} is not an OpenAPI document: its version `openapi` is {version!r}, expected "
            f"'3.0.x', '3.1.x' or '3.2.x'."
        ) from None


def _path_items(refs: References, item: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The path item, and the one that it refers to; each may have operations."""
    if not isinstance(item, dict):
        raise Broken(f"it is {type(item).__name__}, expected an object of operations")
    yield item, refs.uri
    if "$ref" in item:
        target, base = refs.follow({"$ref": item["$ref"]}, refs.uri)
        if not isinstance(target, dict):
            raise Broken(f"it refers to {type(target).__name__}, expected an object of operations")
        yield target, base


def _list_operation(
    listing: ListingBuilder,
    agent: str,
    document: Mapping[str, Any],
    graph: SchemaGraph,
    placed: tuple[str, str, dict[str, Any], str],
    place: str,
) -> None:
    path, method, item, base = placed
    where, spec = f"{place} {method.upper()} {path}", item[method]
    try:
        if not isinstance(spec, dict):
            raise Broken(f"it is {type(spec).__name__}, expected an operation object")
        operation = resolved(graph.refs, item, spec, base)
        _check_operation(operation, document, path, method)
        given = arguments(graph, operation)
        output = output_schema(graph, operation)
    except Broken as error:
        listing.reject(where, f"{error}", spec)
        return
    except RecursionError:
        listing.reject(where, "its schemas are nested too deeply; flatten them", spec)
        return
    listing.tool(
        agent,
        (spec.get("operationId") or "").strip() or _name(method, path),
        where=where,
        raw=spec,
        description=_description(spec, item),
        input_schema=given.schema,
        output_schema=output,
        annotations=_annotations(document, spec, method, path)
        | ({"locations": given.locations} if given.locations else {})
        | ({"contentType": given.content_type} if given.content_type else {}),
        tags=spec.get("tags") or (),
    )


def _check_operation(
    operation: Operation, document: Mapping[str, Any], path: str, method: str
) -> None:
    """Raise Broken with all that the validator of OpenAPI says of this operation, alone in a
    document of its own.
    """
    alone = {
        "openapi": document["openapi"],
        "info": {"title": "", "version": ""},
        "paths": {path: {method: operation.outline()}},
    }
    # Without references and schemas, the validator has nothing to fetch; its own errors come in two
    # passes.
    validator = _validator(document, "")(alone)
    errors = [_error(error, 3) for error in validator.schema_validator.iter_errors(alone)]
    errors = errors or [
        _error(error, 0) for error in validator.root_validator(validator.schema_path)
    ]
    if errors:
        more = f" (and {len(errors) - MAX_ERRORS} more)" if len(errors) > MAX_ERRORS else ""
        raise Broken(f"it is not valid OpenAPI: {'; '.join(errors[:MAX_ERRORS])}{more}")


def _error(error: Any, skipped: int) -> str:
    place = "/".join(str(part) for part in list(error.absolute_path)[skipped:])
    message = str(error.message).partition("\n")[0]
    message = message if len(message) <= 200 else f"{message[:200]}..."
    return f"{message} at {place}" if place else message


def _annotations(
    document: Mapping[str, Any], spec: Mapping[str, Any], method: str, path: str
) -> dict[str, Any]:
    """What the tool does beyond its schema; the hints are named as MCP names them."""
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
    """The schemes that the operation may ask for, each with its type. An empty list of its own
    means that it needs none.
    """
    components = document.get("components")
    known = components.get("securitySchemes") if isinstance(components, dict) else None
    required = spec.get("security", document.get("security"))
    out: dict[str, dict[str, Any]] = {}
    for alternative in required if isinstance(required, list) else []:
        for name in alternative if isinstance(alternative, dict) else ():
            scheme = known.get(name) if isinstance(known, dict) else None
            kind = scheme.get("type") if isinstance(scheme, dict) else None
            out[name] = {"name": name} | ({"type": kind} if isinstance(kind, str) else {})
    return list(out.values())


def _description(spec: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    text = _text(spec) or _text(item)
    return f"{text}\n\nDeprecated.".strip() if spec.get("deprecated") is True else text


def _text(part: Mapping[str, Any]) -> str:
    """The summary and the description, once if the one begins with the other."""
    summary, description = (
        value.strip() if isinstance(value := part.get(key), str) else ""
        for key in ("summary", "description")
    )
    if description.startswith(summary.rstrip(".")):
        return description
    return "\n\n".join(text for text in (summary, description) if text)


def _name(method: str, path: str) -> str:
    """A name that is as stable as the address: `get_pets_by_petId` for `GET /pets/{petId}`."""
    words = re.sub(r"\{([^{}]*)\}", r"by_\1", path)
    return re.sub(r"[^A-Za-z0-9_]+", "_", f"{method}_{words}").strip("_").replace("__", "_")


def inputs(base: Path, options: OpenAPIOptions) -> list[Path] | None:
    """The document, if it is a file; one that refers to other files says so when it is read."""
    return matching_files(base, options.path) if options.path else None


source = SourceKind(options=OpenAPIOptions, read=read, inputs=inputs)
