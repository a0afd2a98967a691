"""Validation of a tool's texts, schemas and annotations."""

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs

from pegboard.canonical import canonical_json
from pegboard.foreign.limits import MAX_DESCRIPTION, MAX_NAME, MAX_RAW, MAX_SCHEMA

DIALECTS = {
    *(f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6, 7)),
    *(f"https://json-schema.org/draft/{year}/schema" for year in ("2019-09", "2020-12")),
}
"""The `$schema` values that the validator has at hand. It would ask the network for any other, and
the text is untrusted.
"""


def beside(raw: Any, parts: Iterable[Any]) -> list[Any]:
    """The parts of a tool that are not parts of its record as they stand there."""
    own = set(map(id, raw.values())) if isinstance(raw, Mapping) else set[int]()
    return [part for part in parts if id(part) not in own]


def text_problems(name: Any, description: Any) -> Iterable[str]:
    if not isinstance(name, str) or not name.strip():
        yield f"it has no name (got {short(name)}); add a name"
    elif len(name) > MAX_NAME:
        yield f"its name has {len(name):,} characters, more than {MAX_NAME}; shorten it"
    elif not is_text(name):
        yield "its name is not valid UTF-8 text; save the source as UTF-8"
    if description is not None and not isinstance(description, str):
        yield f"its description is {short(description)}, expected text"
    elif description and len(description) > MAX_DESCRIPTION:
        yield (
            f"its description has {len(description):,} characters, more than "
            f"{MAX_DESCRIPTION:,}; shorten it"
        )


def schema_problems(written: dict[str, str], parts: Mapping[str, Any]) -> Iterable[str]:
    """What is wrong with the schemas and annotations of a tool; on the way, `written` gets their
    canonical JSON.
    """
    annotations, input_schema = parts["annotations"], parts["input_schema"]
    if annotations is not None and not isinstance(annotations, Mapping):
        yield f"its annotations are {short(annotations)}, expected an object"
    elif annotations and (problem := _json_problem(annotations, written)):
        yield f"its annotations {problem}"
    for label in ("input", "output"):
        schema = parts[f"{label}_schema"]
        if schema is not None and (problem := _schema_problem(schema, label, written)):
            yield f"its {label} schema {problem}"
    # What a tool returns may be anything; what it takes are named arguments.
    if isinstance(input_schema, dict) and "object" not in str(input_schema.get("type", "object")):
        yield (
            f"its input schema has the type {short(input_schema['type'])}, expected an object "
            f"whose properties are the arguments"
        )


def _json_problem(value: Any, written: dict[str, str]) -> str | None:
    try:
        written["annotations"] = canonical_json(value)
    except (TypeError, ValueError) as error:
        return f"cannot be written as JSON: {short(str(error))}"
    return None


def _schema_problem(schema: Any, label: str, written: dict[str, str]) -> str | None:
    if not isinstance(schema, dict):
        return f"is {short(schema)}, expected a JSON Schema object"
    try:
        text = canonical_json(schema)
        size = len(text)
        if schema:  # an empty one is replaced by a default, or written at once
            written[f"{label}_schema"] = text
        if size > MAX_SCHEMA:
            return f"has {size:,} characters, more than {MAX_SCHEMA:,}; shorten it"
        known = str(schema.get("$schema", "")).removesuffix("#") in DIALECTS
        # Where no dialect is named it may be the oldest: `exclusiveMinimum: true` is common, and
        # only valid there.
        if not known and jsonschema_rs.meta.is_valid(
            {**schema, "$schema": "http://json-schema.org/draft-04/schema#"}
        ):
            return None
        jsonschema_rs.meta.validate(
            schema if known else {k: v for k, v in schema.items() if k != "$schema"}
        )
    except jsonschema_rs.ValidationError as error:
        path = "/".join(str(part) for part in error.instance_path)
        return f"is not valid JSON Schema: {short(error.message)}" + (f" at {path}" if path else "")
    except (TypeError, ValueError, jsonschema_rs.ReferencingError) as error:
        return f"is not valid JSON Schema: {short(str(error))}"
    return None


def encoding_problems(row: Mapping[str, Any]) -> list[str]:
    """What of a tool's row is not valid text."""
    return [
        f"its {column.replace('_', ' ')} is not valid UTF-8 text; save the source as UTF-8"
        for column, value in row.items()
        if not is_text(value if isinstance(value, str) else "".join(value or ()))
    ]


def member_text(record: Any, key: str) -> str:
    """Return a text of a record without blanks around it; empty if there is none."""
    value = record.get(key) if isinstance(record, Mapping) else None
    return value.strip() if isinstance(value, str) else ""


def texts_in(value: Any) -> list[str]:
    """Return the texts in a list; none of another value."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def is_text(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    return text.isascii() or valid_text(text) == text


def valid_text(text: str) -> str:
    """Return the text with what cannot be written as UTF-8 replaced, so that it can be stored."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}... ({len(text):,} characters)"


def short(value: Any) -> str:
    if isinstance(value, str):
        return cut(repr(value[:MAX_RAW]), 200) if len(value) <= MAX_RAW else cut(value, 200)
    try:
        return cut(reprlib.repr(value), 200)
    except Exception:
        return type(value).__name__
