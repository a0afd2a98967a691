"""Convert an OpenAPI operation to the input and output schema of a tool.

A tool has one set of named arguments, so parameters and properties of the body are merged.
`Arguments.annotations` says where each argument goes in the request.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from catalogs.openapi.plain import plain
from catalogs.openapi.references import References
from catalogs.openapi.schema import (
    Detail,
    SchemaGraph,
    SchemaWriter,
    check_length,
    has_flag,
    shortened,
)
from catalogs.openapi.subtypes import LITERALS, UNION
from pegboard.canonical import canonical_json
from pegboard.errors import SourceError
from pegboard.schemas.loose import object_schema

IGNORED_HEADERS = {"accept", "content-type", "authorization"}
"""Names of header parameters that OpenAPI says to ignore, since the client sets these headers."""
SUCCESS = re.compile(r"2(\d\d|XX)")
"""Matches the code of a successful response."""
FLAT = {
    "type", "properties", "required", "allOf", "anyOf", "oneOf", "not", "title", "description",
    "example", "examples", "default", "deprecated", "additionalProperties", "minProperties",
    "maxProperties", "nullable", "discriminator", "xml", "externalDocs", "$schema", "$id", "$defs",
    "definitions",
}  # fmt: skip
"""Keywords allowed in a body schema whose properties are merged with the parameters. Constraints on
the body as a whole are not copied; the server checks them."""
STYLE = "x-pegboard-style"
"""Member that holds the style of a Swagger 2 parameter; OpenAPI lacks some of these styles."""
WHOLE_BODY = "requestBody"
"""Location of an argument that is the whole body; a single property of the body has `body`."""

MAX_NOTED = 12
"""Most properties that the description of a discriminator names for each of its values."""

Placed = tuple[Any, str]
"""A part of the document, and the URI of the file that contains it."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with references to its parts resolved; references in schemas are kept."""

    spec: Mapping[str, Any]
    parameters: tuple[Placed, ...]
    body: Placed | None
    responses: Mapping[str, Placed]

    def check(self) -> None:
        """Raise SourceError with all problems if a part is not valid OpenAPI."""
        try:
            _Shape.model_validate(
                {
                    **self.spec,
                    "parameters": [part for part, _ in self.parameters],
                    "requestBody": self.body[0] if self.body else {},
                }
            )
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_input=False)
            ]
            raise SourceError(f"it is not valid OpenAPI: {'; '.join(problems)}") from None


class _Part(BaseModel):
    """The members read from a parameter or body, without schemas."""

    model_config = ConfigDict(strict=True)

    description: str = ""
    content: dict[str, dict[str, Any]] = {}


class _Parameter(_Part):
    name: str
    place: Literal["path", "query", "header", "cookie", "querystring"] = Field(alias="in")


class _Shape(BaseModel):
    """The members read from an operation."""

    model_config = ConfigDict(strict=True)

    operation_id: str = Field("", alias="operationId")
    summary: str = ""
    description: str = ""
    tags: list[str] = []
    parameters: list[_Parameter]
    body: _Part = Field(alias="requestBody")


@dataclass(slots=True)
class Arguments:
    """The input schema of a tool, and how its arguments are sent to the API.

    Attributes:
        locations: `path`, `query`, `header`, `cookie`, `body` or `requestBody` by argument.
        names: the API's name of each argument that was renamed because of a collision.
        styles: the serialization of parameters that differ from OpenAPI's default: the style,
            followed by `,false` or `,true` if `explode` is given; `json` for a media type.
        content_type: media type of the body.
        left_out: names of the schemas that are replaced by a note, since the whole is too long.
    """

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])
    locations: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    styles: dict[str, str] = field(default_factory=dict[str, str])
    content_type: str = ""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    left_out: tuple[str, ...] = ()

    def add(self, name: str, schema: Any, location: str, required: bool, style: str = "") -> None:
        argument = name
        while argument in self.properties:
            argument = f"{argument}_{location}"
        if argument != name:
            self.names[argument] = name
        self.properties[argument] = schema
        self.locations[argument] = location
        if style:
            self.styles[argument] = style
        if required:
            self.required.append(argument)

    @property
    def schema(self) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "object", "properties": self.properties}
        return out | ({"required": self.required} if self.required else {}) | self.extra

    @property
    def annotations(self) -> dict[str, Any]:
        """Return what a caller needs to send the arguments; empty values are left out."""
        values = {
            "locations": self.locations,
            "names": self.names,
            "styles": self.styles,
            "contentType": self.content_type,
        }
        return {key: value for key, value in values.items() if value}


def resolve_operation(
    refs: References, item: Mapping[str, Any], spec: Mapping[str, Any], base: str
) -> Operation:
    """Resolve an operation, and merge the parameters of its path item.

    Raises SourceError for a reference whose target does not exist.
    """
    declared = [_followed(refs, part, base) for part in _list(spec, "parameters")]
    overridden = {_key(part) for part, _ in declared}
    shared = [_followed(refs, part, base) for part in _list(item, "parameters")]
    inherited = [part for part in shared if _key(part[0]) not in overridden]
    parameters = (*inherited, *declared)
    return Operation(
        spec=spec,
        parameters=parameters,
        body=_followed(refs, spec["requestBody"], base) if "requestBody" in spec else None,
        responses=_successful(refs, spec, base),
    )


def _followed(refs: References, part: Any, base: str) -> Placed:
    target, place = refs.follow(part, base)
    return plain(target), place


def _successful(refs: References, spec: Mapping[str, Any], base: str) -> dict[str, Placed]:
    """Return the successful responses that can be read. An operation is called without them."""
    responses = spec.get("responses")
    found: dict[str, Placed] = {}
    for code, part in responses.items() if isinstance(responses, dict) else ():
        if SUCCESS.fullmatch(code):
            with suppress(SourceError):
                found[code] = refs.follow(part, base)
    return found


def arguments(graph: SchemaGraph, operation: Operation) -> Arguments:
    """Return the arguments of an operation that passed `Operation.check`.

    Raises SourceError for an invalid schema.
    """
    return shortened(partial(_arguments, graph, operation))


def _arguments(graph: SchemaGraph, operation: Operation, detail: Detail) -> Arguments:
    parameters = [
        (part, _parameter_schema(part, base))
        for part, base in operation.parameters
        if not (part["in"] == "header" and part["name"].lower() in IGNORED_HEADERS)
    ]
    body = _Body.of(graph, operation.body) if operation.body else None
    roots = [schema for _, schema in parameters] + (body.roots if body else [])
    writer = SchemaWriter(graph, "input", roots, detail)
    out = Arguments()
    for part, schema in parameters:
        described = _described(writer.write(*schema), part)
        required = part.get("required") is True or part["in"] == "path"
        out.add(part["name"], described, part["in"], required, _style(part))
    if body:
        body.add_to(out, writer)
    if writer.defs:
        out.extra["$defs"] = writer.defs
    out.left_out = tuple(writer.left_out)
    check_length(out.schema, "input")
    return out


def output_schema(graph: SchemaGraph, operation: Operation) -> dict[str, Any] | None:
    """Return the schema of the first successful JSON response; None if there is none, or if it
    cannot be read.
    """
    for code in sorted(operation.responses):
        part, base = operation.responses[code]
        media = part.get("content") if isinstance(part, dict) else None
        media = media if isinstance(media, dict) else {}
        kind = next((kind for kind in media if _is_json(kind)), None)
        if kind is None or not isinstance(media[kind], dict) or "schema" not in media[kind]:
            continue
        try:
            return shortened(partial(_output, graph, media[kind]["schema"], base))
        except (SourceError, RecursionError):
            return None
    return None


def _output(graph: SchemaGraph, schema: Any, base: str, detail: Detail) -> dict[str, Any] | None:
    root = graph.refs.follow(schema, base)
    writer = SchemaWriter(graph, "output", [root], detail)
    written = writer.write(*root)
    if not isinstance(written, dict) or not written:
        return None
    out = object_schema(written) | ({"$defs": writer.defs} if writer.defs else {})
    check_length(out, "output")
    return out


@dataclass(slots=True)
class _Body:
    """A request body: one argument per property, or else one argument for the whole body.

    Attributes:
        schema: the schema of the whole body.
        name: name of the argument for the whole body.
        properties: schemas by property name; several if alternatives of the body differ.
        required_names: properties required by every alternative.
    """

    required: bool
    description: str
    content_type: str
    schema: Placed
    name: str
    properties: dict[str, list[Placed]] = field(default_factory=dict[str, list[Placed]])
    required_names: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, graph: SchemaGraph, placed: Placed) -> "_Body":
        part, base = placed
        media = part.get("content") or {}
        kind = min(media, key=_preference, default="")
        declared = media[kind].get("schema", {}) if kind else {}
        schema = graph.follow(declared, base)
        name = part.get("x-body-name")
        body = cls(
            required=part.get("required") is True,
            description=part.get("description") or "",
            content_type=kind,
            schema=schema,
            name=name if isinstance(name, str) and name else "body",
        )
        required_names = body._collect(graph, schema, set())
        if required_names is None:
            body.properties = {}
        elif body.required:
            body.required_names = required_names
        return body

    @property
    def roots(self) -> list[Placed]:
        return list(chain.from_iterable(self.properties.values())) or [self.schema]

    def add_to(self, out: Arguments, writer: SchemaWriter) -> None:
        out.content_type = self.content_type
        if not self.properties:
            schema = _described(writer.write(*self.schema), {"description": self.description})
            out.add(self.name, schema, WHOLE_BODY, self.required)
            return
        for name, alternatives in self.properties.items():
            written = [writer.write(*placed) for placed in alternatives]
            shown = [schema for schema in written if not has_flag(schema, "readOnly")]
            if len(shown) > 1:
                shown = [*{canonical_json(schema): schema for schema in shown}.values()]
            if shown:
                schema = _either(shown) if len(shown) > 1 else shown[0]
                out.add(name, schema, "body", name in self.required_names)
        if self.description:
            out.extra["description"] = self.description
        if self.schema[0].get("additionalProperties") is False:
            out.extra["additionalProperties"] = False

    def sent_names(self) -> set[str]:
        """Return the names of the properties that a request may have."""
        return {
            name
            for name, placed in self.properties.items()
            if not all(has_flag(schema, "readOnly") for schema, _ in placed)
        }

    def _collect(self, graph: SchemaGraph, placed: Placed, seen: set[int]) -> set[str] | None:
        """Collect the properties of a schema, of its `allOf` and of its alternatives.

        Returns the names of required properties; None if the body is not a plain object.
        """
        schema, base = placed
        if id(schema) in seen:
            return set()
        seen.add(id(schema))
        if not isinstance(schema, dict) or not _is_flat(schema):
            return None
        for name, item in schema.get("properties", {}).items():
            self.properties.setdefault(name, []).append((item, base))
        names = {name for name in schema.get("required", []) if isinstance(name, str)}
        marked = graph.subtypes.marked(schema, base) if graph.subtypes else schema
        for key in ("allOf", "anyOf", "oneOf"):
            if key != "allOf" and UNION in marked:
                required = self._collect_subtypes(graph, marked, key, base, seen)
                if required is None:
                    return None
                names |= required
                continue
            parts = [graph.follow(part, base, schema) for part in schema.get(key, [])]
            collected = [self._collect(graph, part, seen) for part in parts]
            sets = [required for required in collected if required is not None]
            if len(sets) < len(collected):
                return None
            if sets:
                names |= set[str].union(*sets) if key == "allOf" else set[str].intersection(*sets)
        return names

    def _collect_subtypes(
        self, graph: SchemaGraph, union: Mapping[str, Any], key: str, base: str, seen: set[int]
    ) -> set[str] | None:
        """Collect the properties of all subtypes of a union; the one that tells them apart has
        their values, and says which properties belong to which.

        Returns the names of required properties; None if a subtype is not a plain object.
        """
        discriminator = union[UNION]
        subtypes: list[tuple[list[str], _Body, set[str]]] = []
        for part in union.get(key, ()):
            body = _Body(self.required, "", "", (part, base), "")
            # A base that subtypes share is collected for each.
            required = body._collect(graph, graph.refs.follow(part, base), {*seen})
            if required is None:
                return None
            subtypes.append((part[LITERALS][1], body, required))
        if not subtypes:
            return set()
        for _, body, _ in subtypes:
            for name, placed in body.properties.items():
                self.properties.setdefault(name, []).extend(placed)
        declared = self.properties.get(discriminator, [({}, base)])[0]
        schema, place = graph.refs.follow(*declared)
        values = [value for texts, _, _ in subtypes for value in texts]
        names = [body.sent_names() for _, body, _ in subtypes]
        shared = set.intersection(*names) if len(names) > 1 else {discriminator}
        note = "; ".join(
            f"{' or '.join(texts)}: {_names_text(sent - shared)}"
            for (texts, _, _), sent in zip(subtypes, names, strict=True)
        )
        own = schema if isinstance(schema, dict) else {}
        text = " ".join(
            filter(None, [str(own.get("description") or ""), f"Arguments by value: {note}."])
        )
        literal = {"type": "string"} | own | {"enum": values, "description": text}
        self.properties[discriminator] = [(literal, place)]
        return set.intersection(*(required for _, _, required in subtypes)) | {discriminator}


def _names_text(names: set[str]) -> str:
    """Return the names of properties for a description."""
    shown = ", ".join(sorted(names)[:MAX_NOTED])
    more = f" and {len(names) - MAX_NOTED} others" if len(names) > MAX_NOTED else ""
    return f"{shown}{more}" or "nothing else"


def _either(schemas: Iterable[Any]) -> dict[str, Any]:
    """Return the schema of a property that differs between alternatives of the body."""
    texts = (schema.get("description") for schema in schemas if isinstance(schema, dict))
    description = next(filter(None, texts), None)
    return {"anyOf": list(schemas)} | ({"description": description} if description else {})


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema describes an object with named properties."""
    return (
        all(key in FLAT or key.startswith("x-") for key in schema)
        and schema.get("type", "object") in ("object", ["object"], ["object", "null"])
        and isinstance(schema.get("properties", {}), dict)
        and isinstance(schema.get("additionalProperties", False), bool)
        and all(
            isinstance(schema.get(key, []), list) for key in ("required", "allOf", "anyOf", "oneOf")
        )
    )


def _list(part: Mapping[str, Any], key: str) -> list[Any]:
    value = part.get(key, [])
    if not isinstance(value, list):
        raise SourceError(f"its {key} are {type(value).__name__}, expected a list")
    return value


def _key(part: Any) -> tuple[str, str]:
    return (str(part.get("name")), str(part.get("in"))) if isinstance(part, dict) else ("", "")


def _style(part: Mapping[str, Any]) -> str:
    """Return the serialization of a parameter; empty for the default of its location."""
    if "content" in part:
        return "json"
    style = part.get(STYLE, part.get("style"))
    explode = part.get("explode")
    default = "form" if part["in"] in ("query", "cookie") else "simple"
    if style in (None, default) and explode in (None, default == "form"):
        return ""
    suffix = f",{str(explode).lower()}" if isinstance(explode, bool) else ""
    return f"{style or default}{suffix}"


def _parameter_schema(part: Mapping[str, Any], base: str) -> Placed:
    media = next(iter((part.get("content") or {}).values()), {})
    return part.get("schema", media.get("schema", {})), base


def _described(schema: Any, part: Mapping[str, Any]) -> Any:
    """Return the schema with the description and examples of its parameter or body added."""
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    if part.get("description"):
        out["description"] = part["description"]
    if part.get("deprecated") is True:
        out["deprecated"] = True
    examples = part.get("examples")
    if "examples" not in schema and isinstance(examples, dict):
        out["examples"] = [
            example["value"]
            for example in examples.values()
            if isinstance(example, dict) and "value" in example
        ]
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
