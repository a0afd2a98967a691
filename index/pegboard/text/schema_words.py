"""What an input schema says below its top level: nested arguments, and the values that arguments
may have. A person asks for "the day of the vaccination", whatever object it stands in.

Catalogs are untrusted: the walk is bounded in depth, in arguments and in values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 6
"""Maximum number of objects, lists and references around an argument."""
MAX_ARGUMENTS = 100
"""Maximum number of nested arguments of a tool."""
MAX_VALUES = 30
"""Maximum number of values of an argument; longer lists are codes and not words."""
MAX_VALUE = 60
"""Maximum characters of a value."""
_UNIONS = ("allOf", "anyOf", "oneOf")
_INNER = ("items", "additionalProperties")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool.

    Attributes:
        name: as the schema writes it.
        depth: 0 for an argument of the tool itself, 1 for a member of one, and so on.
        description: empty if it has none.
        values: the texts that it may have, as far as the schema lists them; none for long lists.
    """

    name: str
    depth: int
    description: str
    values: tuple[str, ...]


def arguments_of(schema: Mapping[str, Any]) -> list[Argument]:
    """Return the arguments of an input schema, nested ones and those of alternatives included, in
    the order in which they stand; each name once at each place.
    """
    arguments: list[Argument] = []
    for argument in _members(schema, schema, 0, MAX_DEPTH, set()):
        arguments.append(argument)
        if len(arguments) == MAX_ARGUMENTS:
            break
    return arguments


def _members(
    spec: Any, root: Mapping[str, Any], depth: int, steps: int, seen: set[str]
) -> Iterator[Argument]:
    """Yield the members of a schema and, behind each, its own.

    Args:
        steps: how many schemas below this one are read.
        seen: the references above this one.
    """
    if not isinstance(spec, Mapping) or steps < 0:
        return
    properties = spec.get("properties")
    for name, member in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(name, str):
            continue
        target = _resolved(member, root, seen)
        yield Argument(name, depth, _description(member) or _description(target), _values(target))
        yield from _members(target, root, depth + 1, steps - 1, seen | _reference(member))
    for part in _parts(spec):
        yield from _members(part, root, depth, steps - 1, seen)
    reference = _reference(spec)
    if reference and not reference & seen:
        yield from _members(_resolved(spec, root, seen), root, depth, steps - 1, seen | reference)


def _parts(spec: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas whose members are members of a schema, too."""
    for keyword in _UNIONS:
        parts = spec.get(keyword)
        yield from parts if isinstance(parts, list) else ()
    for keyword in _INNER:
        if isinstance(spec.get(keyword), Mapping):
            yield spec[keyword]


def _reference(spec: Any) -> set[str]:
    reference = spec.get("$ref") if isinstance(spec, Mapping) else None
    return {reference} if isinstance(reference, str) else set()


def _resolved(spec: Any, root: Mapping[str, Any], seen: set[str]) -> Any:
    """Return the schema that a reference leads to; the schema itself without one."""
    for reference in _reference(spec):
        if reference in seen or not reference.startswith("#/"):
            return None
        value: Any = root
        for key in reference[2:].split("/"):
            key = key.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, Mapping) else None
        return value
    return spec


def _description(spec: Any) -> str:
    text = spec.get("description") if isinstance(spec, Mapping) else None
    return text if isinstance(text, str) else ""


def _values(spec: Any) -> tuple[str, ...]:
    """Return the texts that an argument may have, those of its alternatives and items included."""
    values: list[str] = []
    for schema in _alternatives(spec, 2):
        listed = schema.get("enum")
        constant = schema.get("const")
        every = [*(listed if isinstance(listed, list) else ()), constant]
        values += [value for value in every if isinstance(value, str) and value.strip()]
    values = list(dict.fromkeys(values))
    if len(values) > MAX_VALUES:
        return ()
    return tuple(value for value in values if len(value) <= MAX_VALUE)


def _alternatives(spec: Any, steps: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(spec, Mapping) or steps < 0:
        return
    yield spec
    for part in _parts(spec):
        yield from _alternatives(part, steps - 1)
