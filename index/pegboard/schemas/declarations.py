"""Function schemas of LLM APIs. The format is detected automatically:

{"type": "function", "function": {"name", "parameters"}}       OpenAI, chat completions
{"type": "function", "name", "parameters"}                     OpenAI, responses
{"name", "parameters"}                                         OpenAI before 2023-11
{"name", "input_schema"}                                       Anthropic
{"functionDeclarations": [{"name", "parameters"}]}             Gemini; also in snake case, and
                                                               with "parametersJsonSchema"
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pegboard.schemas.loose import object_schema
from pegboard.schemas.openapi import to_json_schema

LISTS = ("functionDeclarations", "function_declarations", "tools", "functions")
"""Keys of an object whose values are lists of declarations."""
FORMATS = (
    "OpenAI's (`type`: `function`, with `name` and `parameters`, in `function` or not), "
    "Anthropic's (`name`, `input_schema`) and Gemini's (`functionDeclarations`)"
)
"""The known formats, for error messages."""
INPUTS = ("input_schema", "parametersJsonSchema", "parameters_json_schema", "parameters")
"""Keys of the input schema, in order of preference."""
OUTPUTS = ("responseJsonSchema", "response_json_schema", "response")
"""Keys of the output schema in Gemini's format, in order of preference."""
GEMINI_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
"""Names of types in Gemini's schemas."""
COUNTS = {
    f"{limit}{what}" for limit in ("min", "max") for what in ("Items", "Length", "Properties")
}
"""Keywords that may be text in Gemini's schemas, as Protocol Buffers write 64-bit integers."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A tool as its source declares it, not validated."""

    name: Any
    description: Any = ""
    input_schema: Any = None
    output_schema: Any = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])


def function_records(
    value: Any, where: str, gemini: bool = False
) -> Iterator[tuple[str, Any, bool]]:
    """Yield each declaration in a value, its place, and whether its list has Gemini's format."""
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            place = f"{where}[{index}]"
            # An item without a declaration is yielded itself, so that the caller reports it.
            yield from list(function_records(item, place, gemini)) or [(place, item, gemini)]
        return
    record = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    lists = [key for key in LISTS if isinstance(record.get(key), list)]
    # Subclasses of `dict`, such as RepeatedNames, are left to the caller.
    if not lists or isinstance(record.get("name"), str) or type(record) is not dict:
        yield where, value, gemini
    for key in lists:
        in_gemini = gemini or (key.startswith("function") and key != "functions")
        yield from function_records(record[key], f"{where}.{key}", in_gemini)


def read_function(record: Any, gemini: bool = False) -> Declaration | None:
    """Return the declaration in a record; None if its format is unknown."""
    declared = _declared(record, gemini)
    if declared is None:
        return None
    outputs = OUTPUTS if gemini else ()
    output = _schema(declared, outputs, gemini)
    shape = {"type", "name", "description", *INPUTS, *outputs}
    return Declaration(
        name=declared.get("name"),
        description=declared.get("description"),
        input_schema=_schema(declared, INPUTS, gemini),
        output_schema=object_schema(output) if isinstance(output, dict) and output else None,
        annotations={
            key: value for key, value in declared.items() if key not in shape and value is not None
        },
    )


def _declared(record: Any, gemini: bool) -> Mapping[str, Any] | None:
    """Return the part of a record with name and schema; None if its format is unknown."""
    if not isinstance(record, dict):
        return None
    outer = cast("dict[str, Any]", record)
    inner = outer.get("function")
    if isinstance(inner, dict) and outer.get("type", "function") == "function":
        function = cast("dict[str, Any]", inner)
        siblings = {
            key: value for key, value in outer.items() if key not in ("type", "function", *function)
        }
        return function | siblings
    if gemini or outer.get("type") == "function" or any(key in outer for key in INPUTS):
        return outer
    return None


def _schema(declared: Mapping[str, Any], keys: tuple[str, ...], gemini: bool) -> Any:
    key = next((key for key in keys if declared.get(key) is not None), None)
    if key is None:
        return None
    schema = declared[key]
    in_dialect = key in ("parameters", "response") and isinstance(schema, dict)
    if in_dialect and (gemini or schema.get("type") in GEMINI_TYPES):
        return _from_gemini(schema)
    return schema


def _from_gemini(schema: Any) -> Any:
    """Convert Gemini's schema, a subset of OpenAPI 3.0 with types in capitals, to JSON Schema."""
    if not isinstance(schema, dict):
        return schema
    converted = {
        key: value
        for key, value in cast("dict[str, Any]", schema).items()
        if key not in ("propertyOrdering", "property_ordering")
    }
    kind = converted.get("type")
    if kind == "TYPE_UNSPECIFIED":
        del converted["type"]
    elif isinstance(kind, str) and kind in GEMINI_TYPES:
        converted["type"] = kind.lower()
    for key in COUNTS & converted.keys():
        if isinstance(converted[key], str) and converted[key].isdecimal():
            converted[key] = int(converted[key])
    return to_json_schema(converted, _from_gemini)
