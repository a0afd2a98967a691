"""Convert tool definitions to what model APIs accept; one invalid schema fails a whole request."""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_DESCRIPTION = 1_024
"""Maximum characters of a function's description for OpenAI; longer ones are an error."""
_REFUSED = ("allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$ref")
"""Keywords that OpenAI or Anthropic reject at the top level of an input schema."""


def cut_description(text: str, length: int = MAX_DESCRIPTION) -> str:
    """Return the text, cut at a word boundary to at most `length` characters."""
    if len(text) <= length:
        return text
    head, _, _ = text[: length - 1].rpartition(" ")
    return f"{head or text[: length - 2]} …"


def refused_keywords(schema: Mapping[str, Any]) -> list[str]:
    """Return the top-level keywords of an input schema that OpenAI or Anthropic reject."""
    return [keyword for keyword in _REFUSED if keyword in schema]


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's input schema as an object with properties.

    OpenAI and Anthropic reject alternatives at the top level. They are replaced by the properties
    of all alternatives; the tool itself checks what each alternative requires.
    """
    completed = {"type": "object", "properties": {}, **schema}
    if completed["type"] == "object" and not refused_keywords(completed):
        return completed
    properties, required = _parts(schema, schema, depth=4)
    merged = {name: value for name, value in completed.items() if name not in _REFUSED}
    merged |= {"type": "object", "properties": properties}
    merged.pop("required", None)
    if required:
        merged["required"] = list(dict.fromkeys(required))
    return merged


def _parts(schema: Any, root: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], list[str]]:
    """Return the properties of a schema and all its alternatives, and the always required names."""
    if not isinstance(schema, Mapping) or depth < 0:
        return {}, []
    declared: Any = schema.get("properties")
    properties: dict[str, Any] = dict(declared) if isinstance(declared, Mapping) else {}
    required = [name for name in _listed(schema.get("required")) if isinstance(name, str)]
    always = [*_listed(schema.get("allOf")), referenced(schema.get("$ref"), root)]
    for keyword, parts in (
        ("allOf", always),
        *((name, _listed(schema.get(name))) for name in ("anyOf", "oneOf")),
    ):
        for part in parts:
            inner, needed = _parts(part, root, depth - 1)
            properties = {**inner, **properties}
            required += needed if keyword == "allOf" else []
    return properties, required


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def referenced(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the target of a reference within the schema `root`; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    value: Any = root
    for key in reference[2:].split("/"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
