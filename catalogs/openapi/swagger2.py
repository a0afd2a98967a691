"""Convert operations of Swagger 2.0 documents to OpenAPI 3.0.

Only differences are converted, per operation: body and form parameters, media types, responses,
security schemes and the base URL. Schemas are not moved; references to `#/definitions/...` are
resolved in place.
"""

from collections.abc import Mapping
from typing import Any

from catalogs.openapi.operation import STYLE, Operation, Placed
from catalogs.shared.validity import texts_in

PARAMETER = ("name", "in", "required", "description", "allowEmptyValue")
"""Members of a parameter that are not part of its schema in OpenAPI 3."""
COLLECTIONS = {"ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}
"""OpenAPI style of a list parameter by its `collectionFormat`."""
SWAGGER_ONLY = {"consumes", "produces", "schemes", "collectionFormat"}
"""Members that OpenAPI 3 does not have."""
FILE = {"type": "string", "format": "binary"}
"""What OpenAPI 3 has in place of the type `file`."""
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
"""Media types of forms."""


def is_swagger_2(document: Mapping[str, Any]) -> bool:
    """Return whether a document is Swagger 2.0. In YAML the version may be a number."""
    return document.get("swagger") in ("2.0", 2.0)


def convert_operation(operation: Operation, document: Mapping[str, Any], base: str) -> Operation:
    """Convert a resolved operation of the file `base`."""
    spec = operation.spec
    parameters: list[Placed] = []
    bodies: list[Placed] = []
    fields: list[dict[str, Any]] = []
    for part, place in operation.parameters:
        if not isinstance(part, dict):
            parameters.append((part, place))  # rejected later
        elif part.get("in") == "body":
            bodies.append((part, place))
        elif part.get("in") == "formData":
            fields.append(part)
        else:
            parameters.append((_parameter(part), place))
    consumes = _media_types(document, spec, "consumes")
    body = None
    if bodies:
        part, place = bodies[0]
        body = _body(part, consumes or ["application/json"]), place
    elif fields:
        body = _form(fields, consumes), base
    produces = _media_types(document, spec, "produces") or ["application/json"]
    return Operation(
        spec={key: value for key, value in spec.items() if key not in SWAGGER_ONLY},
        parameters=tuple(parameters),
        body=body,
        responses={
            code: (_response(part, produces), place)
            for code, (part, place) in operation.responses.items()
        },
    )


def base_urls(document: Mapping[str, Any], spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the `servers` of an operation. Without a host, the URL is relative to the document.

    Of several schemes, https is preferred.
    """
    schemes = spec.get("schemes", document.get("schemes"))
    schemes = [scheme for scheme in texts_in(schemes) if scheme in ("http", "https")]
    host = document.get("host")
    host = host if isinstance(host, str) else ""
    path = document.get("basePath")
    path = path if isinstance(path, str) else ""
    if not host:
        return [{"url": path}] if path else []
    scheme = f"{max(schemes)}:" if schemes else ""
    return [{"url": f"{scheme}//{host}{path}"}]


def _parameter(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter with its type, items and enum moved to a schema."""
    out = {key: part[key] for key in PARAMETER if key in part}
    return out | {"schema": _schema_of(part)} | _style(part)


def _style(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the style of a list parameter; Swagger's default separator is a comma."""
    if part.get("type") != "array":
        return {}
    style = COLLECTIONS.get(str(part.get("collectionFormat", "csv")), "form")
    return {STYLE: style, "explode": part.get("collectionFormat") == "multi"}


def _schema_of(part: Mapping[str, Any]) -> dict[str, Any]:
    excluded = {*PARAMETER, *SWAGGER_ONLY}
    schema = {key: value for key, value in part.items() if key not in excluded}
    if schema.get("type") == "file":
        schema |= FILE
    items = schema.get("items")
    if isinstance(items, dict) and items.get("type") == "file":
        schema["items"] = items | FILE
    return schema


def _body(part: Mapping[str, Any], consumes: list[str]) -> dict[str, Any]:
    out = {key: part[key] for key in ("description", "required") if key in part}
    content = {kind: {"schema": part.get("schema", {})} for kind in consumes}
    return out | {"content": content, "x-body-name": part.get("name")}


def _form(fields: list[dict[str, Any]], consumes: list[str]) -> dict[str, Any]:
    properties = {
        field["name"]: _schema_of(field)
        | ({"description": field["description"]} if "description" in field else {})
        for field in fields
        if isinstance(field.get("name"), str)
    }
    required = [
        field["name"]
        for field in fields
        if field.get("required") is True and field.get("name") in properties
    ]
    has_file = any(field.get("type") == "file" for field in fields)
    kinds = [kind for kind in consumes if kind in FORMS] or [FORMS[0 if has_file else 1]]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"required": bool(required), "content": {kinds[0]: {"schema": schema}}}


def _response(part: Any, produces: list[str]) -> Any:
    if not isinstance(part, dict):
        return part
    out = {key: part[key] for key in ("description",) if key in part}
    schema = part.get("schema")
    if schema is None or (isinstance(schema, dict) and schema.get("type") == "file"):
        return out
    return out | {"content": {kind: {"schema": schema} for kind in produces}}


def _media_types(document: Mapping[str, Any], spec: Mapping[str, Any], key: str) -> list[str]:
    return texts_in(spec.get(key, document.get(key)))
