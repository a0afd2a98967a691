"""What schemas and paths say about a tool: its parameters, its results and its address."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from pegboard.records import Tool
from tasks.dependencies.language import (
    CHANGING,
    CREATING,
    GENERIC,
    first_verb,
    has_plural,
    noun_phrase,
    parse_name,
    words_of,
)

MAX_PARAMETERS = 200
"""Parameters of a tool that are looked at, in the schema's order."""
MAX_RESULTS = 60
"""Properties of an output schema that are read."""
MAX_SEGMENTS = 30
"""Segments of a path that are read."""

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_INDIRECT = frozenset(("$ref", *_ALTERNATIVES))
_USUAL_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "update", "DELETE": "delete"}

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool; `required` means without a default. `types` may be empty; those of
    an array's items are among them if they are objects.
    """

    name: str
    description: str
    required: bool
    types: frozenset[str]
    has_choices: bool

    @property
    def takes_values(self) -> bool:
        """Whether its value may come from another tool: neither a flag nor an object."""
        scalars = self.types & {"string", "integer", "number"}
        return bool(scalars) or self.types in (frozenset(), {"array"})


@dataclass(frozen=True, slots=True)
class Result:
    """A property of a tool's output, or of the things in a list that it returns.

    `owner` is the name of that list; empty where it says nothing, as `items` does.
    """

    name: str
    owner: str
    in_list: bool


@dataclass(frozen=True, slots=True)
class Address:
    """Method and path of an HTTP operation; both empty for other tools.

    Attributes:
        segments: of the path, `{}` for each that is a parameter.
        places: the position in `segments` of each parameter in the path.
        updates: whether the name or description says that it changes what exists.
    """

    method: str = ""
    segments: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    updates: bool = False

    @property
    def usual_verb(self) -> str:
        """The method's action on the path's resource; empty if unknown."""
        if self.method == "POST":
            if self.segments[-1:] == ("{}",):
                return "update"
            ends_in_plural = any(has_plural(self.segments[-1], noun) for noun in self.collection)
            return "create" if ends_in_plural else ""
        return _USUAL_VERBS.get(self.method, "")

    @property
    def collection(self) -> Sequence[tuple[str, ...]]:
        """The noun phrases for what the path ends in: `/teams/{team}/members` in a member."""
        for segment in reversed(self.segments):
            if segment == "{}":
                continue
            words = words_of(segment)
            if len(words) == 1 and has_plural(segment, words):  # of things called `shows`
                return [words]
            if phrase := parse_name(segment).phrase:
                return [phrase]
        return []

    def resource_before(self, parameter: str) -> tuple[str, ...] | None:
        """The noun phrase that stands before a parameter in the path; None if it is not in it."""
        place = self.places.get(parameter)
        if place is None:
            return None
        before = self.segments[place - 1] if place else "{}"
        return () if before == "{}" else noun_phrase(words_of(before))

    def puts(self, parameter: str) -> bool:
        """Whether a parameter names what is put into the collection before it.

        What is put there need not be in it yet.
        """
        last = self.places.get(parameter) == len(self.segments) - 1
        return last and self.method in {"PUT", "POST"} and not self.updates

    def prefix_of(self, parameter: str) -> tuple[str, ...]:
        """The path before a parameter; empty if it is not in the path."""
        return self.segments[: self.places.get(parameter, 0)]


def address_of(tool: Tool) -> Address:
    """Read `method` and `path` of a tool's annotations."""
    method, path = tool.annotations.get("method"), tool.annotations.get("path")
    if not isinstance(method, str) or not isinstance(path, str) or not path.startswith("/"):
        return Address()
    segments: list[str] = []
    places: dict[str, int] = {}
    for segment in path.split("/")[1 : MAX_SEGMENTS + 1]:
        if segment.startswith("{") and "}" in segment:
            name = segment[1 : segment.index("}")]
            places[name] = len(segments)
            segments.append("{}")
        elif segment:
            segments.append(segment)
    verbs = {parse_name(tool.name).verb, first_verb(tool.description)}
    updates = bool(verbs & (CHANGING - {"set"})) and not verbs & CREATING
    return Address(method.upper(), tuple(segments), places, updates)


def parameters_of(tool: Tool) -> list[Parameter]:
    """List the parameters of a tool in the schema's order."""
    schema = tool.input_schema
    listed = schema.get("required")
    names = cast("list[Any]", listed) if isinstance(listed, list) else []
    required = {name for name in names if isinstance(name, str)}
    parameters: list[Parameter] = []
    for name, raw in islice(_properties(schema), MAX_PARAMETERS):
        parts = _parts(raw, schema)
        texts = (part["description"] for part in parts if isinstance(part.get("description"), str))
        parameters.append(
            Parameter(
                name=name,
                description=next(texts, ""),
                required=name in required and not any("default" in part for part in parts),
                types=_types(parts, schema),
                has_choices=any("enum" in part or "const" in part for part in parts),
            )
        )
    return parameters


def results_of(tool: Tool) -> list[Result]:
    """List the outermost properties of a tool's output, and those of the things in its lists."""
    return list(islice(_results(tool.output_schema or {}), MAX_RESULTS))


def _results(schema: Schema) -> Iterator[Result]:
    for part in _parts(schema, schema):
        yield from _results_in_list("", part, schema)
        for name, raw in _properties(part):
            yield Result(name, "", False)
            owner = "" if frozenset(words_of(name)) <= GENERIC else name
            for inner in _parts(raw, schema):
                yield from _results_in_list(owner, inner, schema)
                for below, nested in _properties(inner):
                    within = owner if frozenset(words_of(below)) <= GENERIC else below
                    for part_below in _parts(nested, schema):
                        yield from _results_in_list(within, part_below, schema)


def _results_in_list(owner: str, part: Schema, root: Schema) -> Iterator[Result]:
    items = part.get("items")
    if isinstance(items, Mapping):
        for inner in _parts(cast("Schema", items), root):
            for name, _ in _properties(inner):
                yield Result(name, owner, True)


def _properties(schema: Schema) -> Iterator[tuple[str, Schema]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, raw in cast("Schema", properties).items():
            yield name, cast("Schema", raw) if isinstance(raw, Mapping) else {}


def _parts(schema: Schema, root: Schema) -> list[Schema]:
    """Return a subschema, what it refers to, and its alternatives, each once."""
    if _INDIRECT.isdisjoint(schema):
        return [schema]
    parts: list[Schema] = []
    waiting = [schema]
    while waiting and len(parts) < MAX_RESULTS:
        part = waiting.pop(0)
        if any(part is other for other in parts):
            continue
        parts.append(part)
        if (target := _resolve(part.get("$ref"), root)) is not None:
            waiting.append(target)
        for keyword in _ALTERNATIVES:
            options = part.get(keyword)
            if isinstance(options, list):
                mappings = [
                    item for item in cast("list[Any]", options) if isinstance(item, Mapping)
                ]
                waiting += cast("list[Schema]", mappings)
    return parts


def _resolve(reference: Any, root: Schema) -> Schema | None:
    """Return the target of a reference within the schema, or None; others are not followed."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        target = cast("Schema", target).get(name) if isinstance(target, Mapping) else None
    return cast("Schema", target) if isinstance(target, Mapping) else None


def _types(parts: list[Schema], root: Schema) -> frozenset[str]:
    types: set[str] = set()
    for part in parts:
        value = part.get("type")
        names = cast("list[Any]", value) if isinstance(value, list) else [value]
        items = part.get("items")
        for item in _parts(cast("Schema", items), root) if isinstance(items, Mapping) else ():
            if "properties" in item or item.get("type") == "object":
                types.add("object")
        types |= {name for name in names if isinstance(name, str)}
    return frozenset(types - {"null"})
