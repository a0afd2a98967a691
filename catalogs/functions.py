"""Source kind `functions`: files of function schemas as they are given to an LLM API. Their shape
tells whose they are.

    [catalogs.assistant]
    type = "functions"
    path = "tools/*.json"          # JSON (a list, one object, or {"tools": [...]}) or JSONL

| shape                                                              | of
|
|--------------------------------------------------------------------|--------------------------------|
| {"type": "function", "function": {"name", "parameters"}}           | OpenAI, chat completions       |
| {"type": "function", "name", "parameters"}                         | OpenAI, responses              |
| {"name", "parameters"}                                             | OpenAI before 2023-11          |
| {"name", "input_schema"}                                           | Anthropic                      |
| {"functionDeclarations": [{"name", "parameters" or "parametersJsonSchema"}]} | Gemini (or in snake case) |

All of them may stand mixed in one file.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from catalogs.openapi.schema import to_json_schema
from catalogs.shared.files import matching_files, parse_json, read_json, read_lines
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.loose_schema import object_schema
from pegboard.errors import SourceError

LISTS = ("functionDeclarations", "function_declarations", "tools", "functions")
"""The keys under which an object holds a list of declarations."""
SHAPES = (
    "OpenAI's (`type`: `function`, with `name` and `parameters`, in `function` or not), "
    "Anthropic's (`name`, `input_schema`) "
    "and Gemini's (`functionDeclarations`)"
)
SCHEMAS = ("input_schema", "parametersJsonSchema", "parameters_json_schema", "parameters")
OUTPUTS = ("responseJsonSchema", "response_json_schema", "response")
GEMINI_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
COUNTS = {
    f"{limit}{what}" for limit in ("min", "max") for what in ("Items", "Length", "Properties")
}
"""Keywords that Gemini's schemas may hold as text, because they are 64-bit integers in Protocol
Buffers.
"""


class FunctionsOptions(SourceOptions):
    """The options of a catalog of type `functions`. `agent` owns the functions; it defaults to the
    catalog's name.
    """

    path: str
    agent: str | None = None


def read(listing: ListingBuilder, options: FunctionsOptions) -> None:
    """List the functions of the files. Raises SourceError if one of them cannot be read."""
    agent = listing.agent(options.agent or listing.catalog, kind="library", source=options.path)
    for path in matching_files(listing.base, options.path):
        if path.suffix.lower() not in (".jsonl", ".ndjson"):
            _list(listing, agent, read_json(path), path.name)
            continue
        for number, line in read_lines(path):
            where = f"{path.name} line {number}"
            try:
                record = parse_json(line, "it")
            except SourceError as error:
                listing.reject(where, str(error), line)
                continue
            _list(listing, agent, record, where)


def _list(listing: ListingBuilder, agent: str, value: Any, where: str) -> None:
    for place, record, gemini in _records(value, where):
        declaration = _declaration(record, gemini)
        if declaration is None:
            got = (
                f"the keys {sorted(record)}" if isinstance(record, dict) else type(record).__name__
            )
            listing.reject(
                place, f"its shape is unknown: it has {got}. The known shapes are {SHAPES}.", record
            )
            continue
        try:
            _list_function(listing, agent, declaration, gemini, place, record)
        except RecursionError:
            listing.reject(place, "it is nested too deeply; flatten it", record)


def _list_function(
    listing: ListingBuilder,
    agent: str,
    declaration: Mapping[str, Any],
    gemini: bool,
    where: str,
    record: Any,
) -> None:
    output = _schema(declaration, OUTPUTS, gemini) if gemini else None
    known = {"type", "name", "description", *SCHEMAS, *(OUTPUTS if gemini else ())}
    listing.tool(
        agent,
        declaration.get("name"),
        where=where,
        raw=record,
        description=declaration.get("description"),
        input_schema=_schema(declaration, SCHEMAS, gemini),
        output_schema=object_schema(output) if isinstance(output, dict) and output else None,
        annotations={
            key: value
            for key, value in declaration.items()
            if key not in known and value is not None
        },
    )


def _records(value: Any, where: str, gemini: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Each declaration with its place, and whether it stands in a list of Gemini's."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _records(item, f"{where}[{index}]", gemini)
        return
    lists = [key for key in LISTS if isinstance(value, dict) and isinstance(value.get(key), list)]
    if not lists or (isinstance(value, dict) and isinstance(value.get("name"), str)):
        yield where, value, gemini
    for key in lists:
        yield from _records(
            value[key],
            f"{where}.{key}",
            gemini or (key.startswith("function") and key != "functions"),
        )


def _declaration(record: Any, gemini: bool) -> Mapping[str, Any] | None:
    """The part of a record that has name and schema; None if its shape is not known."""
    if not isinstance(record, dict):
        return None
    if isinstance(record.get("function"), dict) and record.get("type", "function") == "function":
        inner = record["function"]
        return inner | {
            key: value for key, value in record.items() if key not in ("type", "function", *inner)
        }
    if gemini or record.get("type") == "function" or any(key in record for key in SCHEMAS):
        return record
    return None


def _schema(declaration: Mapping[str, Any], keys: tuple[str, ...], gemini: bool) -> Any:
    key = next((key for key in keys if declaration.get(key) is not None), None)
    if key is None:
        return None
    schema = declaration[key]
    own_dialect = key in ("parameters", "response") and isinstance(schema, dict)
    return (
        _from_gemini(schema)
        if own_dialect and (gemini or schema.get("type") in GEMINI_TYPES)
        else schema
    )


def _from_gemini(schema: Any) -> Any:
    """JSON Schema of Gemini's schema, which is a part of OpenAPI 3.0's with types in capitals."""
    if not isinstance(schema, dict):
        return schema
    out = {
        key: value
        for key, value in schema.items()
        if key not in ("propertyOrdering", "property_ordering")
    }
    kind = out.get("type")
    if kind == "TYPE_UNSPECIFIED":
        del out["type"]
    elif isinstance(kind, str) and kind in GEMINI_TYPES:
        out["type"] = kind.lower()
    for key in COUNTS & out.keys():
        if isinstance(out[key], str) and out[key].isdecimal():
            out[key] = int(out[key])
    return to_json_schema(out, _from_gemini)


def inputs(base: Path, options: FunctionsOptions) -> list[Path]:
    """The files with the declarations."""
    return matching_files(base, options.path)


source = SourceKind(options=FunctionsOptions, read=read, inputs=inputs)
