"""One operation of an OpenAPI document as the input and the output schema of a tool.

A caller of a tool has one set of named arguments, so the parameters and the properties of the body
stand side by side. `Arguments.annotations` says where each goes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from catalogs.openapi.document import References
from catalogs.openapi.schema import SchemaGraph, SchemaWriter, has_flag
from pegboard.canonical import canonical_json
from pegboard.errors import SourceError
from pegboard.schemas.loose import object_schema

IGNORED_HEADERS = {"accept", "content-type", "authorization"}
"""Parameters of these names are ignored, as OpenAPI says: the client sets the headers itself."""
FLAT = {
    "type", "properties", "required", "allOf", "anyOf", "oneOf", "not", "title", "description",
    "example", "examples", "default", "deprecated", "additionalProperties", "minProperties",
    "maxProperties", "nullable", "discriminator", "xml", "externalDocs", "$schema", "$id", "$defs",
}  # fmt: skip
"""Keywords of a body whose properties may stand beside the parameters. Of those that constrain the
body as a whole only the server may judge."""
STYLE = "x-pegboard-style"
"""The style of a parameter of Swagger 2, which OpenAPI does not have all of."""
WHOLE_BODY = "requestBody"
"""The location of an argument that is the whole body; that of one of its properties is `body`."""

Placed = tuple[Any, str]
"""A part of the document, and the file in which it stands."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with the references to its parts resolved; those inside schemas are not."""

    spec: Mapping[str, Any]
    parameters: tuple[Placed, ...]
    body: Placed | None
    responses: Mapping[str, Placed]

    def check(self) -> None:
        """Raise SourceError, with all problems, if a part is not what OpenAPI says."""
        try:
            _Shape.model_validate(
                {
                    **self.spec,
                    "parameters": [part for part, _ in self.parameters],
                    "requestBody": self.body[0] if self.body else {},
                    "responses": {code: part for code, (part, _) in self.responses.items()},
                }
            )
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_input=False)
            ]
            raise SourceError(f"it is not valid OpenAPI: {'; '.join(problems)}") from None


class _Part(BaseModel):
    """What is read of a parameter, body or response, beside schemas."""

    model_config = ConfigDict(strict=True)

    description: str = ""
    content: dict[str, dict[str, Any]] = {}


class _Parameter(_Part):
    name: str
    place: Literal["path", "query", "header", "cookie", "querystring"] = Field(alias="in")


class _Shape(BaseModel):
    """What is read of an operation."""

    model_config = ConfigDict(strict=True)

    operation_id: str = Field("", alias="operationId")
    summary: str = ""
    description: str = ""
    tags: list[str] = []
    parameters: list[_Parameter]
    body: _Part = Field(alias="requestBody")
    responses: dict[str, _Part]


@dataclass(slots=True)
class Arguments:
    """The input schema of a tool, and what a caller of the API needs beside it.

    Attributes:
        locations: `path`, `query`, `header`, `cookie`, `body` or `requestBody` by argument.
        names: the API's own name of an argument, where another argument has it already.
        styles: how a parameter is written where that is not OpenAPI's default: the style, and
            `,false` or `,true` where `explode` is stated; `json` for one with a media type.
        content_type: of the body.
    """

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])
    locations: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    styles: dict[str, str] = field(default_factory=dict[str, str])
    content_type: str = ""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

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
        """Return the non-empty values that a caller needs."""
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
    """Resolve an operation, with the parameters of its path item merged in.

    Raises SourceError for a reference that leads nowhere.
    """
    own = [refs.follow(part, base) for part in _list(spec, "parameters")]
    overridden = {_key(part) for part, _ in own}
    inherited = [refs.follow(part, base) for part in _list(item, "parameters")]
    parameters = (*(part for part in inherited if _key(part[0]) not in overridden), *own)
    responses = spec.get("responses")
    responses = responses if isinstance(responses, dict) else {}
    return Operation(
        spec=spec,
        parameters=parameters,
        body=refs.follow(spec["requestBody"], base) if "requestBody" in spec else None,
        responses={
            code: refs.follow(part, base)
            for code, part in responses.items()
            if not code.startswith("x-")
        },
    )


def arguments(graph: SchemaGraph, operation: Operation) -> Arguments:
    """Return the arguments of an operation that is as `Operation.check` wants it.

    Raises SourceError for a broken schema.
    """
    parameters = [
        (part, _parameter_schema(part, base))
        for part, base in operation.parameters
        if not (part["in"] == "header" and part["name"].lower() in IGNORED_HEADERS)
    ]
    body = _Body.of(graph, operation.body) if operation.body else None
    roots = [schema for _, schema in parameters] + (body.roots if body else [])
    writer = SchemaWriter(graph, "input", roots)
    out = Arguments()
    for part, schema in parameters:
        described = _described(writer.write(*schema), part)
        required = part.get("required") is True or part["in"] == "path"
        out.add(part["name"], described, part["in"], required, _style(part))
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
    """A request body: arguments of their own for its properties, or else one argument for it.

    Attributes:
        name: of the argument for the whole body.
        properties: by name; several where alternatives of the body differ in one.
        names: the properties that every alternative requires.
    """

    required: bool
    description: str
    content_type: str
    whole: Placed
    name: str
    properties: dict[str, list[Placed]] = field(default_factory=dict[str, list[Placed]])
    names: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, graph: SchemaGraph, placed: Placed) -> "_Body":
        part, base = placed
        media = part.get("content") or {}
        kind = min(media, key=_preference, default="")
        schema = media[kind].get("schema", {}) if kind else {}
        whole = graph.refs.follow(schema, base)
        name = part.get("x-body-name")
        name = name if isinstance(name, str) and name else "body"
        body = cls(part.get("required") is True, part.get("description") or "", kind, whole, name)
        names = body._collect(graph.refs, whole, set())
        if names is None:
            body.properties = {}
        elif body.required:
            body.names = names
        return body

    @property
    def roots(self) -> list[Placed]:
        return [placed for each in self.properties.values() for placed in each] or [self.whole]

    def add_to(self, out: Arguments, writer: SchemaWriter) -> None:
        out.content_type = self.content_type
        if not self.properties:
            schema = _described(writer.write(*self.whole), {"description": self.description})
            out.add(self.name, schema, WHOLE_BODY, self.required)
            return
        for name, alternatives in self.properties.items():
            written = [writer.write(*placed) for placed in alternatives]
            shown = [schema for schema in written if not has_flag(schema, "readOnly")]
            if len(shown) > 1:
                shown = [*{canonical_json(schema): schema for schema in shown}.values()]
            if shown:
                schema = _either(shown) if len(shown) > 1 else shown[0]
                out.add(name, schema, "body", name in self.names)
        if self.description:
            out.extra["description"] = self.description
        if self.whole[0].get("additionalProperties") is False:
            out.extra["additionalProperties"] = False

    def _collect(self, refs: References, placed: Placed, seen: set[int]) -> set[str] | None:
        """Collect the properties of a schema, of its `allOf` and of its alternatives.

        Returns those that are required; None if the body is no plain object.
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
        for key in ("allOf", "anyOf", "oneOf"):
            parts = [refs.follow(part, base) for part in schema.get(key, [])]
            each = [self._collect(refs, part, seen) for part in parts]
            sets = [required for required in each if required is not None]
            if len(sets) < len(each):
                return None
            if sets:
                names |= set[str].union(*sets) if key == "allOf" else set[str].intersection(*sets)
        return names


def _either(schemas: Iterable[Any]) -> dict[str, Any]:
    """Return the schema of a property that alternatives of the body describe differently."""
    texts = (schema.get("description") for schema in schemas if isinstance(schema, dict))
    description = next(filter(None, texts), None)
    return {"anyOf": list(schemas)} | ({"description": description} if description else {})


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is that of an object with named properties."""
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
    """Return how a parameter is written, empty for the default of where it is."""
    if "content" in part:
        return "json"
    style, explode = part.get(STYLE, part.get("style")), part.get("explode")
    default = "form" if part["in"] in ("query", "cookie") else "simple"
    if style in (None, default) and explode in (None, default == "form"):
        return ""
    stated = f",{str(explode).lower()}" if isinstance(explode, bool) else ""
    return f"{style or default}{stated}"


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
