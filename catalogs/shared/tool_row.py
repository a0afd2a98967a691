"""A tool as a row of text: what the lake keeps of it, and its digest, with each part written as
canonical JSON only once.

Canonical JSON is most of what listing a large catalog costs, and the same text is measured,
checked, stored and hashed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pegboard.canonical import canonical_json
from pegboard.records import Dependency, Tool

_TEXT = json.JSONEncoder(ensure_ascii=False)


def tool_row(tool: Tool, written: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The columns of a tool but for its agent's kind. `digest` is the tool's own; see `row_digest`.

    Args:
        written: what is known already of the canonical JSON of `input_schema`, `output_schema` and
            `annotations`, by these names.
    """
    known = written or {}
    texts = {
        "input_schema": known.get("input_schema") or _json(tool.input_schema),
        "output_schema": known.get("output_schema") or _json(tool.output_schema),
        "annotations": known.get("annotations") or _json(tool.annotations),
        "examples": _json(list(tool.examples)),
        "tags": _json(sorted(set(tool.tags))),
    }
    edges = _json([[one.tool, one.type, one.parameter, one.reason] for one in tool.dependencies])
    said = [_TEXT.encode(tool.id), _TEXT.encode(tool.name), _TEXT.encode(tool.description)]
    said += [
        texts["input_schema"],
        texts["output_schema"],
        texts["annotations"],
        texts["examples"],
        edges,
        texts["tags"],
    ]
    return {
        "id": tool.id,
        "catalog": tool.catalog,
        "agent": tool.agent,
        "name": tool.name,
        "description": tool.description,
        "input_schema": texts["input_schema"],
        "output_schema": None if tool.output_schema is None else texts["output_schema"],
        "annotations": texts["annotations"],
        "dependencies": _json([asdict(one) for one in tool.dependencies]),
        "examples": list(tool.examples),
        "tags": list(tool.tags),
        "digest": hashlib.sha256(
            f"[{','.join(said)}]".encode("utf-8", "surrogatepass")
        ).hexdigest(),
    }


def tool_of(row: Mapping[str, Any]) -> Tool:
    """The tool of a row, also of one with more columns."""
    return Tool(
        **{name: row[name] for name in ("id", "catalog", "agent", "name", "description")},
        input_schema=json.loads(row["input_schema"]),
        output_schema=json.loads(row["output_schema"]) if row["output_schema"] else None,
        annotations=json.loads(row["annotations"]),
        examples=tuple(row["examples"]),
        dependencies=tuple(Dependency(**one) for one in json.loads(row["dependencies"])),
        tags=tuple(row["tags"]),
    )


def _json(value: Any) -> str:
    # Most tools have no output schema, annotations, examples, dependencies or tags.
    if value is None:
        return "null"
    return canonical_json(value) if value else "[]" if isinstance(value, list) else "{}"


def row_digest(tool_digest: str, kind: str) -> str:
    """The digest of a stored row: of what its catalog says of the tool, and of its agent's kind.

    Equal to `pegboard.canonical.digest(tool_digest, kind)`; neither has a character that JSON would
    escape."""
    return hashlib.sha256(f'["{tool_digest}","{kind}"]'.encode()).hexdigest()
