"""Conversion of rows of a board's tables to records."""

from collections.abc import Mapping
from typing import Any

from pegboard.errors import StoreError
from pegboard.records import Agent, Edge, Enrichment, Tool
from pegboard.store.checks import ENRICHMENT, TOOL, shape_problem
from pegboard.store.contract import json_value, tool_fields


def agent_from_row(row: Mapping[str, Any]) -> Agent:
    """The agent of a row of the `agents` table."""
    fields = {
        name: row[name] for name in ("id", "catalog", "name", "description", "kind", "source")
    }
    return Agent(**fields, enrichment=_enrichment("agents", row))


def tool_from_row(row: Mapping[str, Any]) -> Tool:
    """Return the tool of a row of the `tools` table. Raises StoreError if its JSON is invalid."""
    try:
        fields = tool_fields(row)
        problem = shape_problem(fields, TOOL, "it")
    except (TypeError, ValueError) as error:
        raise unusable_row("tools", row["id"], str(error)) from None
    if problem:
        raise unusable_row("tools", row["id"], problem)
    return Tool(**fields, enrichment=_enrichment("tools", row), flags=tuple(row["flags"]))


def edge_from_row(row: Mapping[str, Any]) -> Edge:
    """Return the dependency of a row of the `edges` table."""
    names = ("source", "target", "type", "parameter", "reason", "origin", "confidence", "evidence")
    return Edge(**{name: row[name] for name in names})


def _enrichment(table: str, row: Mapping[str, Any]) -> Enrichment | None:
    text = row["enrichment"]
    if not text:
        return None
    try:
        values = json_value(text)
    except ValueError as error:
        raise unusable_row(table, row["id"], str(error)) from None
    if problem := shape_problem(values, ENRICHMENT, "its enrichment"):
        raise unusable_row(table, row["id"], problem)
    return Enrichment.from_dict(values)


def unusable_row(table: str, key: str, problem: str) -> StoreError:
    return StoreError(
        f"The row {key!r:.200} of table '{table}' cannot be used: {problem}. `pegboard build` "
        f"writes it again, and `pegboard rollback` returns to the release before."
    )
