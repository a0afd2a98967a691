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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from catalogs.openapi.document import InvalidPart, References, fetch, parse, read_document
from catalogs.openapi.operation import Operation, arguments, output_schema, resolve_operation
from catalogs.openapi.schema import SchemaGraph
from catalogs.shared.files import matching_files
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from pegboard.errors import SourceError
from pegboard.redaction import public_url

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_ERRORS = 20
"""Errors of a document that a message names."""


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
    """List the operations of the document.

    Raises SourceError if it cannot be read or is not OpenAPI 3.
    """
    document, refs, place = _load(listing, options)
    _check(document, place)
    info = document["info"]
    agent = listing.agent(
        options.agent or info["title"], description=_text(info), kind="api", source=place
    )
    api = _Api(listing, agent, document, SchemaGraph(refs), place)
    for path, item in document["paths"].items():
        if not path.startswith("x-"):
            api.list_path(path, item)
    listing.repeatable = listing.repeatable and not refs.left_document


def _load(listing: ListingBuilder, options: OpenAPIOptions) -> tuple[Any, References, str]:
    if options.url:
        place = public_url(options.url)
        document = parse(fetch(options.url, options.headers, options.timeout), place)
        return document, References.of(document, None), place
    files = matching_files(listing.base, options.path or "")
    if len(files) > 1:
        raise SourceError(
            f"'{options.path}' matches {len(files)} files, expected one. Add a catalog for each "
            f"document."
        )
    document = read_document(files[0])
    return document, References.of(document, files[0]), options.path or ""


def _check(document: Any, place: str) -> None:
    """Raise SourceError if the document, operations aside, is not OpenAPI 3."""
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
    if isinstance(info, dict):  # other members are no reason to fail
        info = {key: info[key] for key in ("title", "version") if key in info}
    head = {"openapi": document["openapi"], "info": info, "paths": {}}
    errors = [_error(error, 0) for error in validator.schema_validator.iter_errors(head)]
    if errors:
        raise SourceError(f"{place} is not valid OpenAPI: {_first_errors(errors)}. Correct it.")


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


@dataclass(frozen=True, slots=True)
class _Api:
    """Lists the operations of one document."""

    listing: ListingBuilder
    agent: str
    document: Mapping[str, Any]
    graph: SchemaGraph
    place: str

    def list_path(self, path: str, item: Any) -> None:
        try:
            items = list(_path_items(self.graph.refs, item))
        except InvalidPart as error:
            self.listing.reject(f"{self.place} {path}", str(error), item)
            return
        for part, base in items:
            for method in METHODS:
                if method in part:
                    self._list_operation(path, method, part, base)

    def _list_operation(self, path: str, method: str, item: Mapping[str, Any], base: str) -> None:
        where, spec = f"{self.place} {method.upper()} {path}", item[method]
        try:
            if not isinstance(spec, dict):
                raise InvalidPart(f"it is {type(spec).__name__}, expected an operation object")
            operation = resolve_operation(self.graph.refs, item, spec, base)
            _check_operation(operation, self.document, path, method)
            inputs = arguments(self.graph, operation)
            output = output_schema(self.graph, operation)
        except InvalidPart as error:
            self.listing.reject(where, str(error), spec)
            return
        except RecursionError:
            self.listing.reject(where, "its schemas are nested too deeply; flatten them", spec)
            return
        annotations = _annotations(self.document, spec, method, path)
        if inputs.locations:
            annotations["locations"] = inputs.locations
        if inputs.content_type:
            annotations["contentType"] = inputs.content_type
        self.listing.tool(
            self.agent,
            (spec.get("operationId") or "").strip() or _name(method, path),
            where=where,
            raw=spec,
            description=_description(spec, item),
            input_schema=inputs.schema,
            output_schema=output,
            annotations=annotations,
            tags=spec.get("tags") or (),
        )


def _path_items(refs: References, item: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the path item, and the one that it refers to; each may have operations."""
    if not isinstance(item, dict):
        raise InvalidPart(f"it is {type(item).__name__}, expected an object of operations")
    yield item, refs.uri
    if "$ref" in item:
        target, base = refs.follow({"$ref": item["$ref"]}, refs.uri)
        if not isinstance(target, dict):
            kind = type(target).__name__
            raise InvalidPart(f"it refers to {kind}, expected an object of operations")
        yield target, base


def _check_operation(
    operation: Operation, document: Mapping[str, Any], path: str, method: str
) -> None:
    """Raise InvalidPart with all errors that OpenAPI's validator finds in this operation alone."""
    alone = {
        "openapi": document["openapi"],
        "info": {"title": "", "version": ""},
        "paths": {path: {method: operation.outline()}},
    }
    # Without references and schemas, the validator has nothing to fetch; its own errors come in two
    # passes.
    validator = _validator(document, "")(alone)
    errors = [_error(error, 3) for error in validator.schema_validator.iter_errors(alone)]
    if not errors:
        second_pass = validator.root_validator(validator.schema_path)
        errors = [_error(error, 0) for error in second_pass]
    if errors:
        raise InvalidPart(f"it is not valid OpenAPI: {_first_errors(errors)}")


def _first_errors(errors: list[str]) -> str:
    more = f" (and {len(errors) - MAX_ERRORS} more)" if len(errors) > MAX_ERRORS else ""
    return "; ".join(errors[:MAX_ERRORS]) + more


def _error(error: Any, skipped: int) -> str:
    place = "/".join(str(part) for part in list(error.absolute_path)[skipped:])
    message = str(error.message).partition("\n")[0]
    message = message if len(message) <= 200 else f"{message[:200]}..."
    return f"{message} at {place}" if place else message


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
    required = spec.get("security", document.get("security"))
    out: dict[str, dict[str, Any]] = {}
    for alternative in required if isinstance(required, list) else []:
        for name in alternative if isinstance(alternative, dict) else ():
            scheme = schemes.get(name) if isinstance(schemes, dict) else None
            kind = scheme.get("type") if isinstance(scheme, dict) else None
            out[name] = {"name": name} | ({"type": kind} if isinstance(kind, str) else {})
    return list(out.values())


def _description(spec: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    text = _text(spec) or _text(item)
    return f"{text}\n\nDeprecated.".strip() if spec.get("deprecated") is True else text


def _text(part: Mapping[str, Any]) -> str:
    """Return the summary and the description, once if the one begins with the other."""
    summary, description = (
        value.strip() if isinstance(value := part.get(key), str) else ""
        for key in ("summary", "description")
    )
    if description.startswith(summary.rstrip(".")):
        return description
    return "\n\n".join(text for text in (summary, description) if text)


def _name(method: str, path: str) -> str:
    """Return a name as stable as the address: `get_pets_by_petId` for `GET /pets/{petId}`."""
    words = re.sub(r"\{([^{}]*)\}", r"by_\1", path)
    return re.sub(r"[^A-Za-z0-9_]+", "_", f"{method}_{words}").strip("_").replace("__", "_")


def inputs(base: Path, options: OpenAPIOptions) -> list[Path] | None:
    """Return the document, if it is a file; one that refers to others says so when it is read."""
    return matching_files(base, options.path) if options.path else None


source = SourceKind(options=OpenAPIOptions, read=read, inputs=inputs)
