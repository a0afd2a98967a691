"""The parameters and results of a tool, read from its JSON Schemas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pegboard.records import Tool

DEEPEST = 4
"""Levels of an output schema that are read, references included; below them nothing says what a
tool is for.
"""
MOST = 60
"""Properties of an output schema that are read."""

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_ELSEWHERE = frozenset(("$ref", *_ALTERNATIVES))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool. `needed`: required, and without a default. `types` is empty where
    the schema does not say.
    """

    name: str
    description: str
    needed: bool
    types: frozenset[str]
    choices: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One property of what a tool gives back: its name, and the name of the object or list that it
    is part of.
    """

    name: str
    within: str
    types: frozenset[str]


def parameters_of(tool: Tool) -> list[Parameter]:
    """The parameters of a tool, in the schema's order."""
    schema = tool.input_schema
    listed = schema.get("required")
    required = cast("list[Any]", listed) if isinstance(listed, list) else []
    found: list[Parameter] = []
    for name, raw in _properties(schema):
        whole = _whole(raw, schema)
        description = next(
            (one["description"] for one in whole if isinstance(one.get("description"), str)), ""
        )
        needed = name in required and not any("default" in one for one in whole)
        choices = any("enum" in one or "const" in one for one in whole)
        found.append(Parameter(name, description, needed, _types(whole), choices))
    return found


def results_of(tool: Tool) -> list[Result]:
    """The properties of what a tool gives back, outermost first; none without an output schema."""
    schema = tool.output_schema or {}
    found: list[Result] = []
    level: list[tuple[str, Mapping[str, Any]]] = [("", schema)]
    for _ in range(DEEPEST):
        below: list[tuple[str, Mapping[str, Any]]] = []
        for within, part in level:
            for one in _whole(part, schema):
                if isinstance(items := one.get("items"), Mapping):
                    below.append((within, cast("Mapping[str, Any]", items)))
                for name, raw in _properties(one):
                    found.append(Result(name, within, _types(_whole(raw, schema))))
                    below.append((name, raw))
        level = below[:MOST]
    return found[:MOST]


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, raw in cast("Mapping[str, Any]", properties).items():
            yield name, cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else {}


def _whole(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A subschema, what it refers to, and its alternatives, each once."""
    if _ELSEWHERE.isdisjoint(schema):
        return [schema]
    found: list[Mapping[str, Any]] = []
    open_ = [schema]
    while open_ and len(found) < MOST:
        one = open_.pop(0)
        if any(one is other for other in found):
            continue
        found.append(one)
        if (
            isinstance(reference := one.get("$ref"), str)
            and (named := _referred(reference, root)) is not None
        ):
            open_.append(named)
        for keyword in _ALTERNATIVES:
            parts = one.get(keyword)
            if isinstance(parts, list):
                open_ += [
                    cast("Mapping[str, Any]", part)
                    for part in cast("list[Any]", parts)
                    if isinstance(part, Mapping)
                ]
    return found


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a reference within the schema names, or None; a reference to elsewhere is not
    followed.
    """
    if not reference.startswith("#/"):
        return None
    at: Any = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        at = cast("Mapping[str, Any]", at).get(name) if isinstance(at, Mapping) else None
    return cast("Mapping[str, Any]", at) if isinstance(at, Mapping) else None


def _types(whole: list[Mapping[str, Any]]) -> frozenset[str]:
    types: set[str] = set()
    for one in whole:
        said = one.get("type")
        names = cast("list[Any]", said) if isinstance(said, list) else [said]
        types |= {name for name in names if isinstance(name, str)}
    return frozenset(types - {"null"})
