"""A tool's definition as model APIs take it: they refuse a whole request for one tool's schema."""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_DESCRIPTION = 1_024
"""Characters of a function's description for OpenAI; a longer one is an error."""
_REFUSED = ("allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else", "$ref")


def cut_description(text: str, length: int = MAX_DESCRIPTION) -> str:
    """Return the text, cut at a word to the length that OpenAI takes."""
    if len(text) <= length:
        return text
    head, _, _ = text[: length - 1].rpartition(" ")
    return f"{head or text[: length - 2]} …"


def refused_keywords(schema: Mapping[str, Any]) -> list[str]:
    """Return the keywords at the top of an input schema that OpenAI and Anthropic refuse."""
    return [keyword for keyword in _REFUSED if keyword in schema]


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's input schema as an object with properties.

    OpenAI and Anthropic refuse alternatives at its top level. The properties of all of them are
    offered instead; what each requires is left to the tool to check.
    """
    whole = {"type": "object", "properties": {}, **schema}
    if whole["type"] == "object" and not refused_keywords(whole):
        return whole
    properties, required = _parts(schema, schema, depth=4)
    kept = {name: value for name, value in whole.items() if name not in _REFUSED}
    kept |= {"type": "object", "properties": properties}
    kept.pop("required", None)
    if required:
        kept["required"] = list(dict.fromkeys(required))
    return kept


def _parts(schema: Any, root: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], list[str]]:
    """The properties of a schema and all its alternatives, and those that it always requires."""
    if not isinstance(schema, Mapping) or depth < 0:
        return {}, []
    own: Any = schema.get("properties")
    properties: dict[str, Any] = dict(own) if isinstance(own, Mapping) else {}
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
    """Return what a reference within the schema `root` means; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    value: Any = root
    for key in reference[2:].split("/"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
