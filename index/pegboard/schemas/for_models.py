"""Convert tool definitions to what model APIs accept; one invalid schema fails a whole request.

The tables keep the schema of the catalog. What a model is given is `model_schema` of it: valid JSON
Schema 2020-12, an object at the top, with names that every API takes. `original_arguments` leads
back from the names that a model was given to those of the tool.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from pegboard.schemas.repair import LISTED, NAMED, SINGLE, Schema, repaired, target_of

MAX_DESCRIPTION = 1_024
"""Maximum characters of a function's description for OpenAI; longer ones are an error."""
PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The names of properties that Anthropic accepts."""
MAX_NAME = 64
MAX_UNION_NOTE = 600
"""Maximum characters of the note on what each alternative takes."""
UNION_DEPTH = 4
"""Maximum depth of alternatives within alternatives at the top level."""
_REFUSED = ("allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$ref")
"""Keywords that OpenAI or Anthropic reject at the top level of an input schema."""
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d"})
_INVALID = re.compile(r"[^a-zA-Z0-9_.-]+")
_HASH = 8


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """An input schema as a model is given it.

    Attributes:
        names: the tool's own name of each property that has another one here, by that name.
        changes: what was changed and why, in sentences for people; empty if nothing was.
    """

    schema: Schema
    names: Mapping[str, str]
    changes: tuple[str, ...]


def cut_description(text: str, length: int = MAX_DESCRIPTION) -> str:
    """Return the text, cut at a word boundary to at most `length` characters."""
    if len(text) <= length:
        return text
    head, _, _ = text[: length - 1].rpartition(" ")
    return f"{head or text[: length - 2]} …"


def model_schema(schema: Mapping[str, Any]) -> ModelSchema:
    """Return an input schema that the APIs of OpenAI, Anthropic, Gemini and MCP accept; see
    `repaired` for what is mended. Beyond that, alternatives at the top level become one object with
    the properties of all, and a note says which belong together; names of properties that an API
    refuses are replaced. A schema that is accepted as it is comes back unchanged.
    """
    repair = repaired(schema)
    changes = list(repair.changes)
    result = _object(repair.schema, changes)
    names = _replacements(result)
    if names:
        shown = ", ".join(repr(name) for name in list(names)[:5])
        changes.append(f"Properties have names that model APIs refuse: {shown:.200}")
        result = cast("Schema", _renamed(result, names))
    originals = {new: name for name, new in names.items()}
    return ModelSchema(result, originals, tuple(changes))


def object_schema(schema: Mapping[str, Any]) -> Schema:
    """Return the schema of `model_schema`."""
    return model_schema(schema).schema


def named_for_models(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an input schema whose properties are those of `model_schema`, for formats that are no
    JSON Schema; the schema itself where those are its own, which is found faster.
    """
    is_object = schema.get("type", "object") == "object" and not refused_keywords(schema)
    if is_object and all(map(PROPERTY_NAME.fullmatch, _property_names(schema))):
        return schema
    return model_schema(schema).schema


def output_schema_for_clients(schema: Mapping[str, Any]) -> Schema:
    """Return an output schema that clients can validate results against: repaired, with its own
    names, since the tool answers with those.
    """
    return {"type": "object", **repaired(schema).schema}


def original_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the names of the tool's own schema, from those that `model_schema` gave
    to a model. Arguments under their own names stay as they are.

    Args:
        schema: the input schema of the catalog.
    """
    names = _original_names(json.dumps(schema, sort_keys=True, default=str))
    if not names:
        return dict(arguments)
    return cast("dict[str, Any]", _restored(arguments, [schema], schema, names))


@lru_cache(maxsize=256)
def _original_names(schema: str) -> Mapping[str, str]:
    """Return `ModelSchema.names` of a schema, cached by its JSON: each call reads its tool anew."""
    return model_schema(json.loads(schema)).names


def refused_keywords(schema: Mapping[str, Any]) -> list[str]:
    """Return the top-level keywords of an input schema that OpenAI or Anthropic reject."""
    return [keyword for keyword in _REFUSED if keyword in schema]


def referenced(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the target of a reference within the schema `root`; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    return target_of(reference, root)


def _object(schema: Schema, changes: list[str]) -> Schema:
    """Return a schema as an object without alternatives at the top level."""
    completed: Schema = {"type": "object", "properties": {}, **schema}
    if completed["type"] == "object" and not refused_keywords(completed):
        return completed
    if refused := refused_keywords(schema):
        changes.append(f"The top level has {', '.join(f'`{name}`' for name in refused)}")
    elif schema.get("type", "object") != "object":
        changes.append(f"The top level is {schema.get('type')!r:.60}, not an object")
    properties, required = _parts(schema, schema, UNION_DEPTH)
    merged = {name: value for name, value in completed.items() if name not in _REFUSED}
    merged |= {"type": "object", "properties": properties}
    merged.pop("required", None)
    if required:
        merged["required"] = list(dict.fromkeys(required))
    if note := _alternatives_note(schema):
        merged["description"] = " ".join(filter(None, (schema.get("description"), note)))
    return merged


def _parts(schema: Any, root: Mapping[str, Any], depth: int) -> tuple[Schema, list[str]]:
    """Return the properties of a schema and all its alternatives, and the always required names."""
    if not isinstance(schema, Mapping) or depth < 0:
        return {}, []
    declared: Any = schema.get("properties")
    properties: Schema = dict(declared) if isinstance(declared, Mapping) else {}
    required = [name for name in _listed(schema.get("required")) if isinstance(name, str)]
    always = [*_listed(schema.get("allOf")), referenced(schema.get("$ref"), root)]
    conditional = [schema.get(name) for name in ("if", "then", "else")]
    for is_required, parts in (
        (True, always),
        (False, _listed(schema.get("anyOf"))),
        (False, _listed(schema.get("oneOf"))),
        (False, conditional),
    ):
        found: dict[str, list[Any]] = {}
        for part in parts:
            inner, needed = _parts(part, root, depth - 1)
            for name, spec in inner.items():
                found.setdefault(name, []).append(spec)
            required += needed if is_required else []
        for name, specs in found.items():
            if name not in properties:
                properties[name] = _any_of(specs)
    return properties, required


def _any_of(specs: Sequence[Any]) -> Any:
    """Return the schema of a property that alternatives declare, each in its own way."""
    distinct: list[Any] = []
    for spec in specs:
        if spec not in distinct:
            distinct.append(spec)
    if len(distinct) == 1:
        return distinct[0]
    values = [_constants(spec) for spec in distinct]
    if all(values):
        first = {key: value for key, value in distinct[0].items() if key not in ("const", "enum")}
        return {**first, "enum": list(dict.fromkeys(value for part in values for value in part))}
    return {"anyOf": distinct}


def _constants(spec: Any) -> list[Any]:
    """Return the texts and numbers that a schema allows, if it lists them."""
    if not isinstance(spec, Mapping):
        return []
    values = [spec["const"]] if "const" in spec else _listed(spec.get("enum"))
    return list(values) if all(isinstance(value, str | int) for value in values) else []


def _alternatives_note(schema: Mapping[str, Any]) -> str:
    """Return which arguments belong together, of a schema that is one of several."""
    for keyword in ("oneOf", "anyOf"):
        lines: list[str] = []
        for part in _listed(schema.get(keyword)):
            properties, required = _parts(part, schema, UNION_DEPTH - 1)
            names = [
                f"{name}{_fixed(spec)}{'' if name in required else '?'}"
                for name, spec in properties.items()
            ] or required
            if names:
                lines.append(", ".join(names))
        if len(set(lines)) > 1:
            note = f"One of these sets of arguments (? is optional): {' | '.join(lines)}"
            return note if len(note) <= MAX_UNION_NOTE else f"{note[: MAX_UNION_NOTE - 2]} …"
    return ""


def _fixed(spec: Any) -> str:
    values = _constants(spec)
    return f"={json.dumps(values[0], ensure_ascii=False)}" if len(values) == 1 else ""


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _replacements(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return a name for each property of a schema whose own an API refuses. No two properties of
    the schema get one name, wherever they stand, so that the way back is one.
    """
    every = list(dict.fromkeys(_property_names(schema)))
    taken = {name for name in every if PROPERTY_NAME.fullmatch(name)}
    names: dict[str, str] = {}
    for name in every:
        if name not in taken and not PROPERTY_NAME.fullmatch(name):
            names[name] = _accepted_name(name, taken | set(names.values()))
    return names


def _property_names(schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    yield from properties if isinstance(properties, Mapping) else ()
    for part in _schemas_in(schema):
        yield from _property_names(part)


def _schemas_in(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas directly within a schema."""
    for key in NAMED:
        members = schema.get(key)
        yield from members.values() if isinstance(members, Mapping) else ()
    for key in LISTED:
        yield from _listed(schema.get(key))
    for key in SINGLE:
        yield schema.get(key)


def _accepted_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that APIs accept, as like to the given one as they allow."""
    decomposed = unicodedata.normalize("NFKD", name.translate(_LETTERS))
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = _INVALID.sub("_", plain).strip("_") or "argument"
    if len(words) > MAX_NAME:
        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
        words = f"{words[: MAX_NAME - _HASH - 1]}_{digest}"
    taken = set(taken)
    candidate = words
    number = 2
    while candidate in taken:
        candidate = f"{words[: MAX_NAME - 6]}_{number}"
        number += 1
    return candidate


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """Return a schema with other names of properties, whose descriptions have the names that they
    stand for.
    """
    if not isinstance(schema, Mapping):
        return schema
    out: Schema = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            out[key] = {
                names.get(name, name): _described(_renamed(part, names), name, names)
                for name, part in value.items()
            }
        elif key in NAMED and isinstance(value, Mapping):
            is_by_name = key == "dependentSchemas"
            out[key] = {
                names.get(name, name) if is_by_name else name: _renamed(part, names)
                for name, part in value.items()
            }
        elif key in LISTED:
            out[key] = [_renamed(part, names) for part in _listed(value)]
        elif key in SINGLE:
            out[key] = _renamed(value, names)
        elif key == "required":
            out[key] = [names.get(name, name) for name in _listed(value)]
        elif key == "dependentRequired" and isinstance(value, Mapping):
            out[key] = {
                names.get(name, name): [names.get(other, other) for other in _listed(others)]
                for name, others in value.items()
            }
        else:
            out[key] = value
    return out


def _described(spec: Any, name: str, names: Mapping[str, str]) -> Any:
    """Return the schema of a property, with its own name where it has another one."""
    if name not in names or not isinstance(spec, Mapping):
        return spec
    declared = spec.get("description")
    return {**spec, "description": f"{name}: {declared}" if declared else name}


def _restored(value: Any, schemas: Sequence[Any], root: Any, names: Mapping[str, str]) -> Any:
    """Return a value with the tool's own names.

    Args:
        schemas: of the value, as far as they are known.
    """
    if isinstance(value, Mapping):
        declared = _declared(schemas, root)
        out: dict[str, Any] = {}
        for key, member in value.items():
            name = names.get(key, key) if names.get(key) in declared else key
            out[name] = _restored(member, declared.get(name, ()), root, names)
        return out
    if isinstance(value, list):
        items = [part for schema in _all_parts(schemas, root) for part in _items(schema)]
        return [_restored(member, items, root, names) for member in value]
    return value


def _items(schema: Mapping[str, Any]) -> Iterator[Any]:
    items = schema.get("items")
    yield from items if isinstance(items, list) else (items,)
    yield from _listed(schema.get("prefixItems"))


def _declared(schemas: Sequence[Any], root: Any) -> dict[str, list[Any]]:
    """Return the schemas of each property that schemas of an object declare."""
    declared: dict[str, list[Any]] = {}
    for schema in _all_parts(schemas, root):
        properties = schema.get("properties")
        for name, part in properties.items() if isinstance(properties, Mapping) else ():
            declared.setdefault(name, []).append(part)
    return declared


def _all_parts(schemas: Sequence[Any], root: Any) -> list[Mapping[str, Any]]:
    """Return schemas, what they refer to and their alternatives, each once."""
    parts: list[Mapping[str, Any]] = []
    seen: set[int] = set()
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        parts.append(schema)
        waiting.append(target_of(schema.get("$ref"), root))
        for key in ("allOf", "anyOf", "oneOf"):
            waiting += _listed(schema.get(key))
        waiting += [schema.get(key) for key in ("if", "then", "else")]
    return parts
