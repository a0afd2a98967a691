"""A tool as a row of the lake: the columns of `CATALOG_TOOL` and `digest`, as one line of JSON.

Writing canonical JSON is most of the cost of listing a large catalog. So each part is written once,
when the tool is listed, and the same text is measured, validated, stored and hashed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pegboard.canonical import canonical_json, digest, digest_of_json
from pegboard.records import Tool
from pegboard.store.contract import CATALOG_TOOL, tool_fields

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_ONCE = 10_000
"""Number of rows that are parsed at once."""


def tool_row(tool: Tool, kind: str, written: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the row of a tool. Its digest covers the tool and the kind of its agent, and equals
    `pegboard.canonical.digest(tool.digest, kind)`.

    Args:
        kind: the kind of the tool's agent.
        written: canonical JSON of `input_schema`, `output_schema` and `annotations`, by these
            names, as far as it has been written already.
    """
    parts = tool.catalog_json(written)
    return {
        "id": tool.id,
        "catalog": tool.catalog,
        "agent": tool.agent,
        "kind": kind,
        "name": tool.name,
        "description": tool.description,
        "input_schema": parts["input_schema"],
        "output_schema": None if tool.output_schema is None else parts["output_schema"],
        "annotations": parts["annotations"],
        "examples": tool.examples,
        "dependencies": canonical_json([asdict(dependency) for dependency in tool.dependencies]),
        "tags": tool.tags,
        "digest": digest(digest_of_json(parts.values()), kind),
    }


def row_frame(lines: Sequence[bytes]) -> "pl.DataFrame":
    """Return a table of rows that are lines of JSON. Raises ValueError for invalid lines."""
    import polars as pl

    schema = {
        column.name: pl.List(pl.String) if column.kind == "texts" else pl.String()
        for column in CATALOG_TOOL
    }
    schema["digest"] = pl.String()
    frames = [pl.DataFrame(schema=schema)]
    for start in range(0, len(lines), ROWS_AT_ONCE):
        chunk = b"\n".join(lines[start : start + ROWS_AT_ONCE])
        try:
            frames.append(pl.read_ndjson(chunk, schema=schema))
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"these are not rows of tools: {error}") from error
    return pl.concat(frames)


def tool_of(row: Mapping[str, Any]) -> Tool:
    """Return the tool of a row; additional columns are ignored."""
    return Tool(**tool_fields(row))
