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
"""Values of `$schema` that the validator has built in. It would fetch any other from the network,
and the text is untrusted."""


def beside(raw: Any, parts: Iterable[Any]) -> list[Any]:
    """Return the parts of a tool that are not the same objects as members of its record."""
    members = {id(value) for value in raw.values()} if isinstance(raw, Mapping) else set[int]()
    return [part for part in parts if id(part) not in members]


def text_problems(name: Any, description: Any) -> Iterable[str]:
    """Yield the problems of a tool's name and description."""
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
    """Yield the problems of a tool's schemas and annotations.

    Args:
        written: gets the canonical JSON of each part.
    """
    annotations = parts["annotations"]
    input_schema = parts["input_schema"]
    if annotations is not None and not isinstance(annotations, Mapping):
        yield f"its annotations are {short(annotations)}, expected an object"
    elif annotations and (problem := _json_problem(annotations, written)):
        yield f"its annotations {problem}"
    for label in ("input", "output"):
        schema = parts[f"{label}_schema"]
        if schema is not None and (problem := _schema_problem(schema, label, written)):
            yield f"its {label} schema {problem}"
    # A tool may return anything, but its input must be named arguments.
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
        if schema:  # an empty schema is replaced by a default later
            written[f"{label}_schema"] = text
        if size > MAX_SCHEMA:
            return f"has {size:,} characters, more than {MAX_SCHEMA:,}; shorten it"
        if str(schema.get("$schema", "")).removesuffix("#") in DIALECTS:
            jsonschema_rs.meta.validate(schema)
            return None
        # Without a dialect, draft 4 is accepted, too: `exclusiveMinimum: true` is common and valid
        # only there.
        draft_4 = {**schema, "$schema": "http://json-schema.org/draft-04/schema#"}
        if not jsonschema_rs.meta.is_valid(draft_4):
            newest = {key: value for key, value in schema.items() if key != "$schema"}
            jsonschema_rs.meta.validate(newest)
    except jsonschema_rs.ValidationError as error:
        path = "/".join(str(part) for part in error.instance_path)
        return f"is not valid JSON Schema: {short(error.message)}" + (f" at {path}" if path else "")
    except (TypeError, ValueError, jsonschema_rs.ReferencingError) as error:
        return f"is not valid JSON Schema: {short(str(error))}"
    return None


def encoding_problems(row: Mapping[str, Any]) -> list[str]:
    """Return a problem for each column of a tool's row that is not valid text."""
    return [
        f"its {column.replace('_', ' ')} is not valid UTF-8 text; save the source as UTF-8"
        for column, value in row.items()
        if not is_text(value if isinstance(value, str) else "".join(value or ()))
    ]


def member_text(record: Any, key: str) -> str:
    """Return a member of a record as stripped text; empty if it is not text."""
    value = record.get(key) if isinstance(record, Mapping) else None
    return value.strip() if isinstance(value, str) else ""


def texts_in(value: Any) -> list[str]:
    """Return the texts in a list; an empty list for any other value."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def is_text(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    return text.isascii() or valid_text(text) == text


def valid_text(text: str) -> str:
    """Return the text with characters that UTF-8 cannot encode replaced."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def cut(text: str, length: int) -> str:
    """Return the text; if it is longer than `length` characters, only its beginning and length."""
    return text if len(text) <= length else f"{text[:length]}... ({len(text):,} characters)"


def short(value: Any) -> str:
    """Return a value in at most about 200 characters, for a message."""
    if isinstance(value, str):
        return cut(repr(value[:MAX_RAW]), 200) if len(value) <= MAX_RAW else cut(value, 200)
    try:
        return cut(reprlib.repr(value), 200)
    except Exception:
        return type(value).__name__
