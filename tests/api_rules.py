"""The published rules for the tools of a request, as checks: what an API would refuse.

- OpenAI, function calling (platform.openai.com/docs/guides/function-calling, API reference of
  `tools`), without `strict`: read November 2026.
- Anthropic, "Define tools" and the errors of the Messages API: input schemas are JSON Schema
  2020-12 without alternatives at the top, property names match ^[a-zA-Z0-9_.-]{1,64}$.
- Gemini, `FunctionDeclaration.parametersJsonSchema` (ai.google.dev/api/caching).
- MCP 2025-11-25, "Tools": `inputSchema` and `outputSchema` are objects of JSON Schema 2020-12.
"""

import json
import re

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

TOP_LEVEL = ("allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "$ref")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
UNIONS = ("allOf", "anyOf", "oneOf", "prefixItems")
SCHEMAS = ("items", "additionalProperties", "not", "contains", "if", "then", "else")


def refusals(schema):
    """Return what the four APIs would refuse of an input schema."""
    problems = json_schema_problems(schema)
    if schema.get("type") != "object":
        problems.append("the top level is no object")
    problems += [f"{key} at the top level" for key in TOP_LEVEL if key in schema]
    for part in every_schema(schema):
        if isinstance(part, bool):
            continue
        kinds = part.get("type")
        is_array = "array" in (kinds if isinstance(kinds, list) else [kinds])
        if is_array and "items" not in part and "prefixItems" not in part:
            problems.append("an array without items")
        problems += [
            f"the property name {name!r}"
            for name in part.get("properties", {})
            if not PROPERTY.fullmatch(name)
        ]
        problems += [
            "a boolean as the schema of a property"
            for member in part.get("properties", {}).values()
            if isinstance(member, bool)
        ]
        problems += ["an empty enum"] if part.get("enum") == [] else []
    return problems


def json_schema_problems(schema):
    """Return what makes a schema invalid JSON Schema 2020-12, or leaves a reference open."""
    meta = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    problems = [error.message for error in meta.iter_errors(schema)]
    resolver = Registry().with_resource("", Resource(schema, DRAFT202012)).resolver()
    for part in every_schema(schema):
        if isinstance(part, dict) and "$ref" in part:
            try:
                resolver.lookup(part["$ref"])
            except Exception as error:  # referencing has an error for each kind of reference
                problems.append(f"{part['$ref']} leads nowhere: {error!r:.80}")
    json.dumps(schema, allow_nan=False)
    return problems


def every_schema(schema):
    """Yield a schema and all schemas in it."""
    yield schema
    if isinstance(schema, bool):
        return
    for key in ("properties", "patternProperties", "$defs", "dependentSchemas"):
        for member in schema.get(key, {}).values():
            yield from every_schema(member)
    for key in UNIONS:
        for member in schema.get(key, []):
            yield from every_schema(member)
    for key in SCHEMAS:
        if key in schema:
            yield from every_schema(schema[key])
