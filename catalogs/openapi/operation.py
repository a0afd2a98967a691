"""One operation of an OpenAPI document as the input and the output schema of a tool.

A caller of a tool has one set of named arguments, so the parameters and the properties of the body
stand side by side, as long as their names differ. `Arguments.locations` says where each goes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalogs.openapi.document import Broken, References
from catalogs.openapi.schema import Page, SchemaGraph
from catalogs.shared.loose_schema import object_schema

IGNORED_HEADERS = {"accept", "content-type", "authorization"}
"""OpenAPI says that a parameter of such a name is ignored: the client sets these headers by itself.
"""
FLAT = {
    "type", "properties", "required", "allOf", "title", "description", "example", "examples", "default", "deprecated",
    "additionalProperties", "discriminator", "xml", "externalDocs", "$schema", "$id", "$defs",
}  # fmt: skip
"""The keywords of a body whose properties may stand beside the parameters. Any other constrains the
body as a whole.
"""
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
        """The operation without its schemas and without references, as the validator of OpenAPI
        reads it.
        """
        out = {
            key: value
            for key, value in self.spec.items()
            if key != "callbacks" and not key.startswith("x-")
        }
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


def resolved(
    refs: References, item: Mapping[str, Any], operation: Mapping[str, Any], base: str
) -> Operation:
    """The operation with the parameters of its path merged in. Raises Broken for a reference that
    leads nowhere.
    """
    own = [refs.follow(part, base) for part in _list(operation, "parameters")]
    keys = {_key(part) for part, _ in own}
    inherited = [refs.follow(part, base) for part in _list(item, "parameters")]
    responses = operation.get("responses")
    return Operation(
        spec=operation,
        parameters=(*(placed for placed in inherited if _key(placed[0]) not in keys), *own),
        body=refs.follow(operation["requestBody"], base) if "requestBody" in operation else None,
        responses={
            code: refs.follow(part, base)
            for code, part in responses.items()
            if not code.startswith("x-")
        }
        if isinstance(responses, dict)
        else {},
    )


def arguments(graph: SchemaGraph, operation: Operation) -> Arguments:
    """The arguments of an operation that the validator of OpenAPI has passed. Raises Broken for a
    broken schema.
    """
    parameters = [
        (part, _parameter_schema(part, base))
        for part, base in operation.parameters
        if not _ignored(part)
    ]
    body = _Body.of(graph.refs, operation.body) if operation.body else None
    page = Page(
        graph, "input", [*(placed for _, placed in parameters), *(body.roots if body else ())]
    )
    out = Arguments()
    for part, placed in parameters:
        name = (
            part["name"] if part["name"] not in out.properties else f"{part['name']}_{part['in']}"
        )
        out.add(
            name, _described(page.write(*placed), part), part["in"], part.get("required") is True
        )
    if body:
        body.add_to(out, page)
    if page.defs:
        out.extra["$defs"] = page.defs
    return out


def output_schema(graph: SchemaGraph, operation: Operation) -> dict[str, Any] | None:
    """The schema of the first answer of success that is JSON; None if there is none."""
    for code in sorted(code for code in operation.responses if re.fullmatch(r"2(\d\d|XX)", code)):
        part, base = operation.responses[code]
        media = part.get("content") or {}
        kind = next((kind for kind in media if _is_json(kind)), None)
        if kind is None or "schema" not in media[kind]:
            continue
        root = graph.refs.follow(media[kind]["schema"], base)
        page = Page(graph, "output", [root])
        schema = page.write(*root)
        if not isinstance(schema, dict) or not schema:
            return None
        return object_schema(schema) | ({"$defs": page.defs} if page.defs else {})
    return None


@dataclass(slots=True)
class _Body:
    """A request body: its properties one by one if they can stand beside the parameters, and else
    as a whole.
    """

    required: bool
    description: str
    content_type: str
    whole: Placed
    properties: dict[str, Placed] = field(default_factory=dict[str, Placed])
    names: list[str] = field(default_factory=list[str])
    closed: bool = False

    @classmethod
    def of(cls, refs: References, placed: Placed) -> "_Body":
        part, base = placed
        media = part.get("content") or {}
        kind = min(media, key=_preference, default="")
        schema = media[kind].get("schema", {}) if kind else {}
        whole = refs.follow(schema, base)
        body = cls(part.get("required") is True, part.get("description") or "", kind, whole)
        # An optional body with required properties stays whole: only so it can be left out and yet
        # be complete when sent.
        if not (
            body._flatten(refs, whole) and body.properties and (body.required or not body.names)
        ):
            body.properties = {}
        body.closed = isinstance(whole[0], dict) and whole[0].get("additionalProperties") is False
        return body

    @property
    def roots(self) -> Iterator[Placed]:
        yield from self.properties.values() or [self.whole]

    def add_to(self, out: Arguments, page: Page) -> None:
        out.content_type = self.content_type
        if self.properties and not self.properties.keys() & out.properties.keys():
            for name, placed in self.properties.items():
                schema = page.write(*placed)
                if not (isinstance(schema, dict) and schema.get("readOnly") is True):
                    out.add(name, schema, "body", name in self.names)
            out.extra |= {"description": self.description} if self.description else {}
            out.extra |= {"additionalProperties": False} if self.closed else {}
            return
        name = next(
            name for name in ("body", "request_body", "request_body_") if name not in out.properties
        )
        out.add(
            name,
            _described(page.write(*self.whole), {"description": self.description}),
            "body",
            self.required,
        )

    def _flatten(self, refs: References, placed: Placed, depth: int = 0) -> bool:
        schema, base = placed
        if not isinstance(schema, dict) or depth > MAX_PARENTS:
            return False
        types = schema.get("type", "object")
        properties, names, parents = (
            schema.get("properties", {}),
            schema.get("required", []),
            schema.get("allOf", []),
        )
        if (
            any(key not in FLAT and not key.startswith("x-") for key in schema)
            or types not in ("object", ["object"])
            or not (
                isinstance(properties, dict)
                and isinstance(names, list)
                and isinstance(parents, list)
            )
            or not isinstance(schema.get("additionalProperties", False), bool)
        ):
            return False
        for name, item in properties.items():
            if self.properties.get(name, (item, base)) != (item, base):
                return False
            self.properties[name] = (item, base)
        self.names += names
        return all(self._flatten(refs, refs.follow(parent, base), depth + 1) for parent in parents)


def _outline(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    out = {
        key: value
        for key, value in part.items()
        if key not in ("headers", "links", "example", "examples")
    }
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
        raise Broken(f"its {key} are {type(value).__name__}, expected a list")
    return value


def _key(part: Any) -> tuple[str, str]:
    return (str(part.get("name")), str(part.get("in"))) if isinstance(part, dict) else ("", "")


def _ignored(part: Mapping[str, Any]) -> bool:
    return part["in"] == "header" and part["name"].lower() in IGNORED_HEADERS


def _parameter_schema(part: Mapping[str, Any], base: str) -> Placed:
    media = next(iter((part.get("content") or {}).values()), {})
    return part.get("schema", media.get("schema", {})), base


def _described(schema: Any, part: Mapping[str, Any]) -> Any:
    """The schema with what its parameter or body says of it."""
    if not isinstance(schema, dict):
        schema = {} if schema is True else {"not": {}} if schema is False else schema
    if not isinstance(schema, dict):
        return schema
    added: dict[str, Any] = {"description": part["description"]} if part.get("description") else {}
    if part.get("deprecated") is True:
        added["deprecated"] = True
    if "examples" not in schema:
        named = part.get("examples")
        if isinstance(named, dict):
            added["examples"] = [
                item["value"]
                for item in named.values()
                if isinstance(item, dict) and "value" in item
            ]
        elif "example" in part:
            added["examples"] = [part["example"]]
    return {**schema, **added}


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
