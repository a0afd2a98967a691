"""One operation of an OpenAPI document as the input and the output schema of a tool.

A caller of a tool has one set of named arguments, so the parameters and the properties of the body
stand side by side, as long as their names differ. `Arguments.locations` says where each goes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalogs.openapi.document import InvalidPart, References
from catalogs.openapi.schema import SchemaGraph, SchemaWriter
from pegboard.schemas.loose import object_schema

IGNORED_HEADERS = {"accept", "content-type", "authorization"}
"""Parameters of these names are ignored, as OpenAPI says: the client sets the headers itself."""
FLAT = {
    "type", "properties", "required", "allOf", "title", "description", "example", "examples",
    "default", "deprecated", "additionalProperties", "discriminator", "xml", "externalDocs",
    "$schema", "$id", "$defs",
}  # fmt: skip
"""Keywords of a body whose properties may stand beside the parameters. Any other constrains the
body as a whole."""
MAX_PARENTS = 20
"""Levels of allOf within allOf."""

Placed = tuple[Any, str]
"""A part of the document, and the file in which it stands."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with the references to its parts resolved; those inside schemas are not."""

    spec: Mapping[str, Any]
    parameters: tuple[Placed, ...]
    body: Placed | None
    responses: Mapping[str, Placed]

    def outline(self) -> dict[str, Any]:
        """Return the operation without schemas and references, for OpenAPI's validator."""
        left_out = {key for key in self.spec if key == "callbacks" or key.startswith("x-")}
        out = {key: value for key, value in self.spec.items() if key not in left_out}
        out["parameters"] = [_outline(part) for part, _ in self.parameters]
        if self.body:
            out["requestBody"] = _outline(self.body[0])
        if isinstance(self.spec.get("responses"), dict):
            out["responses"] = {code: _outline(part) for code, (part, _) in self.responses.items()}
        return out


@dataclass(slots=True)
class Arguments:
    """The input schema of a tool, where each argument goes, and the content type of the body."""

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])
    locations: dict[str, str] = field(default_factory=dict[str, str])
    content_type: str = ""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    def add(self, name: str, schema: Any, location: str, required: bool) -> None:
        self.properties[name] = schema
        self.locations[name] = location
        if required:
            self.required.append(name)

    @property
    def schema(self) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "object", "properties": self.properties}
        return out | ({"required": self.required} if self.required else {}) | self.extra


def resolve_operation(
    refs: References, item: Mapping[str, Any], spec: Mapping[str, Any], base: str
) -> Operation:
    """Resolve an operation, with the parameters of its path item merged in.

    Raises InvalidPart for a reference that leads nowhere.
    """
    own = [refs.follow(part, base) for part in _list(spec, "parameters")]
    overridden = {_key(part) for part, _ in own}
    inherited = [refs.follow(part, base) for part in _list(item, "parameters")]
    responses = spec.get("responses")
    responses = responses if isinstance(responses, dict) else {}
    return Operation(
        spec=spec,
        parameters=(*(part for part in inherited if _key(part[0]) not in overridden), *own),
        body=refs.follow(spec["requestBody"], base) if "requestBody" in spec else None,
        responses={
            code: refs.follow(part, base)
            for code, part in responses.items()
            if not code.startswith("x-")
        },
    )


def arguments(graph: SchemaGraph, operation: Operation) -> Arguments:
    """Return the arguments of an operation that OpenAPI's validator has passed.

    Raises InvalidPart for a broken schema.
    """
    parameters = [
        (part, _parameter_schema(part, base))
        for part, base in operation.parameters
        if not (part["in"] == "header" and part["name"].lower() in IGNORED_HEADERS)
    ]
    body = _Body.of(graph.refs, operation.body) if operation.body else None
    roots = [schema for _, schema in parameters] + (body.roots if body else [])
    writer = SchemaWriter(graph, "input", roots)
    out = Arguments()
    for part, schema in parameters:
        name, place = part["name"], part["in"]
        name = f"{name}_{place}" if name in out.properties else name
        described = _described(writer.write(*schema), part)
        out.add(name, described, place, part.get("required") is True)
    if body:
        body.add_to(out, writer)
    if writer.defs:
        out.extra["$defs"] = writer.defs
    return out


def output_schema(graph: SchemaGraph, operation: Operation) -> dict[str, Any] | None:
    """Return the schema of the first successful JSON response; None if there is none."""
    for code in sorted(code for code in operation.responses if re.fullmatch(r"2(\d\d|XX)", code)):
        part, base = operation.responses[code]
        media = part.get("content") or {}
        kind = next((kind for kind in media if _is_json(kind)), None)
        if kind is None or "schema" not in media[kind]:
            continue
        root = graph.refs.follow(media[kind]["schema"], base)
        writer = SchemaWriter(graph, "output", [root])
        schema = writer.write(*root)
        if not isinstance(schema, dict) or not schema:
            return None
        return object_schema(schema) | ({"$defs": writer.defs} if writer.defs else {})
    return None


@dataclass(slots=True)
class _Body:
    """A request body: arguments of their own for its properties, or else one argument for it."""

    required: bool
    description: str
    content_type: str
    whole: Placed
    properties: dict[str, Placed] = field(default_factory=dict[str, Placed])
    names: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, refs: References, placed: Placed) -> "_Body":
        part, base = placed
        media = part.get("content") or {}
        kind = min(media, key=_preference, default="")
        whole = refs.follow(media[kind].get("schema", {}) if kind else {}, base)
        body = cls(part.get("required") is True, part.get("description") or "", kind, whole)
        # An optional body with required properties stays whole: only so it can be left out and yet
        # be complete when sent.
        if not body._flatten(refs, whole) or (body.names and not body.required):
            body.properties = {}
        return body

    @property
    def roots(self) -> list[Placed]:
        return [*self.properties.values()] or [self.whole]

    def add_to(self, out: Arguments, writer: SchemaWriter) -> None:
        out.content_type = self.content_type
        if not self.properties or self.properties.keys() & out.properties.keys():
            names = ("body", "request_body", "request_body_")
            name = next(name for name in names if name not in out.properties)
            schema = _described(writer.write(*self.whole), {"description": self.description})
            out.add(name, schema, "body", self.required)
            return
        for name, placed in self.properties.items():
            schema = writer.write(*placed)
            if not (isinstance(schema, dict) and schema.get("readOnly") is True):
                out.add(name, schema, "body", name in self.names)
        if self.description:
            out.extra["description"] = self.description
        if self.whole[0].get("additionalProperties") is False:
            out.extra["additionalProperties"] = False

    def _flatten(self, refs: References, placed: Placed, depth: int = 0) -> bool:
        """Collect the properties of a schema and its `allOf`; False if they cannot stand alone."""
        schema, base = placed
        if not isinstance(schema, dict) or depth > MAX_PARENTS or not _is_flat(schema):
            return False
        for name, item in schema.get("properties", {}).items():
            if self.properties.setdefault(name, (item, base)) != (item, base):
                return False
        self.names += schema.get("required", [])
        parents = schema.get("allOf", [])
        return all(self._flatten(refs, refs.follow(parent, base), depth + 1) for parent in parents)


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Return whether nothing but the properties of an object, each by itself, constrains it."""
    return (
        all(key in FLAT or key.startswith("x-") for key in schema)
        and schema.get("type", "object") in ("object", ["object"])
        and isinstance(schema.get("properties", {}), dict)
        and isinstance(schema.get("required", []), list)
        and isinstance(schema.get("allOf", []), list)
        and isinstance(schema.get("additionalProperties", False), bool)
    )


def _outline(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    left_out = ("headers", "links", "example", "examples")
    out = {key: value for key, value in part.items() if key not in left_out}
    if "schema" in out:
        out["schema"] = {}
    if isinstance(out.get("content"), dict):
        out["content"] = {
            kind: {"schema": {}} if isinstance(media, dict) else media
            for kind, media in out["content"].items()
        }
    return out


def _list(part: Mapping[str, Any], key: str) -> list[Any]:
    value = part.get(key, [])
    if not isinstance(value, list):
        raise InvalidPart(f"its {key} are {type(value).__name__}, expected a list")
    return value


def _key(part: Any) -> tuple[str, str]:
    return (str(part.get("name")), str(part.get("in"))) if isinstance(part, dict) else ("", "")


def _parameter_schema(part: Mapping[str, Any], base: str) -> Placed:
    media = next(iter((part.get("content") or {}).values()), {})
    return part.get("schema", media.get("schema", {})), base


def _described(schema: Any, part: Mapping[str, Any]) -> Any:
    """Return the schema with the description and examples of its parameter or body."""
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    if part.get("description"):
        out["description"] = part["description"]
    if part.get("deprecated") is True:
        out["deprecated"] = True
    named = part.get("examples")
    if "examples" not in schema and isinstance(named, dict):
        examples = [item for item in named.values() if isinstance(item, dict) and "value" in item]
        out["examples"] = [item["value"] for item in examples]
    elif "examples" not in schema and "example" in part:
        out["examples"] = [part["example"]]
    return out


def _is_json(kind: str) -> bool:
    kind = kind.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _preference(kind: str) -> int:
    if kind.lower() == "application/json":
        return 0
    if _is_json(kind):
        return 1
    forms = ("application/x-www-form-urlencoded", "multipart/form-data")
    return 2 + forms.index(kind.lower()) if kind.lower() in forms else 4
