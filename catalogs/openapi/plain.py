"""Texts and flags of OpenAPI operations that were written as another type, as YAML invites to:
`summary: 404`, `operationId: 12`, `tags: users`, `required: "true"`."""

import json
from typing import Any

from pegboard.foreign.files import RepeatedNames

TEXTS = ("operationId", "summary", "description", "name")
"""Members of operations, parameters and bodies that are text."""
TRUE = ("true", "yes", "required")
"""Texts that mean a true flag, in lower case."""


def as_text(value: Any) -> Any:
    """Return a number or boolean as text, and any other value unchanged."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def plain(part: Any) -> Any:
    """Return an operation, parameter or body with its texts, tags and flags as OpenAPI has them.

    A description that is no text, such as a reference to a file, is left out. What repeats a name
    stays as it is, to be rejected.
    """
    if not isinstance(part, dict) or isinstance(part, RepeatedNames):
        return part
    out = part | {key: as_text(part[key]) for key in TEXTS if key in part}
    if not isinstance(out.get("description", ""), str):
        del out["description"]
    if "tags" in out:
        tags = out["tags"] if isinstance(out["tags"], list) else [out["tags"]]
        out["tags"] = [as_text(tag) for tag in tags]
    if isinstance(out.get("required"), str):
        out["required"] = out["required"].strip().lower() in TRUE
    return out
