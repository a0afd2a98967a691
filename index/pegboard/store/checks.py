"""Validation of what readers read from a board: JSON, release records and rows.

Checksums detect damage, not tampering. A problem is a sentence that says where it is and what is
expected; the caller raises StoreError.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pegboard.store.contract import (
    CONTRACT,
    INDEX_NAME,
    check_contract,
    json_value,
    release_tables,
    table_schema,
)
from pegboard.text.words import LANGUAGES

if TYPE_CHECKING:
    import pyarrow as pa

_TABLE_NAME = re.compile("[A-Za-z0-9_]{1,200}")
LONGEST = 1.001
"""Largest norm, and largest component, accepted for a unit vector: 1 plus rounding errors."""

Shape = Any
"""Describes a JSON value: a test with the expected value in words, a list with the shape of its
items, or a mapping with the shape of each member. `name?` may be missing or null; `*` is any name.
"""

TEXT = (lambda value: isinstance(value, str), "a text")
COUNT = (lambda value: type(value) is int and 0 <= value < 2**63, "a number of rows or tools")
NUMBER = (lambda value: _is_between(value, -1e9, 1e9), "a number of at most 1e9")
SHARE = (lambda value: _is_between(value, 0, 1), "a number from 0 to 1")
FLAG = (lambda value: isinstance(value, bool), "true or false")
NAME = (lambda value: _is_like(value, _TABLE_NAME), "letters, digits and _")
LANGUAGE = (lambda value: value in LANGUAGES, f"one of {', '.join(LANGUAGES)}")
SIZE = (lambda value: type(value) is int and 1 <= value <= 65_536, "a whole number up to 65536")

PINS = {
    "*": {
        "table": NAME,
        "version": COUNT,
        "rows": COUNT,
        "digest": TEXT,
        "checksum": TEXT,
        "search?": {"vector": TEXT, "text": TEXT, "nprobes?": SIZE},
        "columns?": {"*": COUNT},
    }
}
INDEX = {
    "encoder": TEXT,
    "fingerprint": TEXT,
    "dimensions": SIZE,
    "options": {},
    "parts": [TEXT],
    "shape": TEXT,
    "questions": COUNT,
    "language?": LANGUAGE,
    "understood?": SHARE,
    "ranker": {
        "weights": {"*": NUMBER},
        "slope": NUMBER,
        "bias": NUMBER,
        "thresholds": {"*": SHARE},
    },
}
MANIFEST = {
    "default_index": TEXT,
    "indexes": {"*": INDEX},
    "catalogs": {"*": dict.fromkeys(("tools", "agents", "rejected"), COUNT)},
    "counts": {"tools": COUNT, "agents": COUNT},
    "changes": {
        **dict.fromkeys(("new", "changed", "removed", "unchanged"), COUNT),
        "against?": TEXT,
    },
    "strategy?": {"name?": TEXT},
    "prompts?": {"*": TEXT},
    "context?": TEXT,
    "few_shots?": [{"query": TEXT, "tools": [TEXT]}],
    "glossary?": {"*": TEXT},
    "gate?": {
        **{"passed": FLAG, "at": TEXT, "queries": COUNT, "live?": TEXT},
        "rules": [{"rule": TEXT, "passed": (lambda value: value in (True, False, None), "a flag")}],
        "canaries": {"count": COUNT, "missed": COUNT},
        "chosen": {
            **dict.fromkeys(("measure", "strategy", "index"), TEXT),
            **dict.fromkeys(("value", "low", "high"), NUMBER),
        },
    },
    "suspicious?": {"*": [{}]},
}
TOOL = {
    "input_schema": {},
    "output_schema?": {},
    "annotations": {},
    "dependencies": (
        lambda value: all(
            isinstance(text, str)
            for dependency in value
            for text in (dependency.tool, dependency.type, dependency.parameter or "")
        ),
        "dependencies with texts",
    ),
}
ENRICHMENT = {
    "description?": TEXT,
    "avoid?": TEXT,
    "arguments?": {"*": TEXT},
    "questions?": [TEXT],
    "topics?": [TEXT],
}


def shape_problem(value: Any, shape: Shape, place: str) -> str | None:
    """Return the first difference of a JSON value from its shape; None if it fits.

    Args:
        place: the value's place, as named in the problem.
    """
    if isinstance(shape, tuple):
        fits, expected = cast("tuple[Any, str]", shape)
        return None if fits(value) else f"{place} is {value!r:.80}, expected {expected}"
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{place} is {value!r:.80}, expected a list"
        items = enumerate(cast("list[Any]", value))
        parts = [(item, shape[0], f"{place}[{number}]") for number, item in items]
    else:
        if not isinstance(value, Mapping):
            return f"{place} is {value!r:.80}, expected an object"
        members = cast("Mapping[str, Any]", value)
        member_shapes = _member_shapes(members, shape)
        if missing := member_shapes.keys() - members.keys():
            return f"{place} has no {', '.join(sorted(missing))}"
        parts = [
            (members[name], member_shape, f"{place}.{name:.80}")
            for name, member_shape in member_shapes.items()
        ]
    problems = (shape_problem(*part) for part in parts)
    return next((problem for problem in problems if problem), None)


def release_problem(row: Mapping[str, Any]) -> str | None:
    """Return the first problem of a row of `releases`; None if it is valid.

    Raises ContractMismatch for a release of another contract whose pins cannot be read.
    """
    try:
        tables = json_value(row["tables"])
        manifest = json_value(row["manifest"])
    except ValueError as error:
        return f"its JSON cannot be used: {error}"
    problem = shape_problem(tables, PINS, "tables") or shape_problem(manifest, {}, "manifest")
    if problem is None:
        problems = (shape_problem(name, NAME, "the name of a table") for name in tables)
        problem = next((problem for problem in problems if problem), None)
    if problem:
        check_contract(row["contract"], row["release"])
        return problem
    if row["contract"] != CONTRACT:
        return None
    if problem := shape_problem(manifest, MANIFEST, "manifest"):
        return problem
    indexes = manifest["indexes"]
    for name in (*indexes, manifest["default_index"]):
        if name not in indexes or not _is_like(name, INDEX_NAME):
            return f"manifest has the index {name!r:.80}, expected one that its tables have"
    missing = [name for name in release_tables(indexes) if name not in tables]
    return f"tables has no {', '.join(missing)}" if missing else None


def rows_problem(
    rows: "pa.Table", table: str, columns: Sequence[str] | None = None, dimensions: int = 0
) -> str | None:
    """Return the first difference of rows from the contract of their table; None if they fit.

    Args:
        table: the table's name in a release.
        columns: the columns that were read; None for all.
        dimensions: the number of dimensions of the table's vectors, if it has any.
    """
    import pyarrow as pa

    schema = table_schema(table, dimensions)
    for name in schema.names if columns is None else columns:
        if name not in rows.column_names:
            return f"it has no column {name}"
        field = schema.field(name)
        column = rows.column(name)
        if column.type != field.type:
            return f"its column {name} holds {column.type}, expected {field.type}"
        for values in column.chunks:
            has_nulls = values.null_count > 0 and not field.nullable
            if isinstance(values, pa.ListArray | pa.FixedSizeListArray):
                values = values.flatten()
                has_nulls = has_nulls or values.null_count > 0
            if has_nulls:
                return f"its column {name} has empty values"
            if pa.types.is_floating(values.type) and not _are_of_unit_vectors(values):
                return f"its column {name} has numbers that are not from -1 to 1"
    return None


def _member_shapes(value: Mapping[str, Any], shape: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return the shape of each member that an object must have, or may have and has."""
    shapes: dict[str, Shape] = {}
    for name, member_shape in shape.items():
        if name == "*":
            shapes |= dict.fromkeys(value, member_shape)
        elif not name.endswith("?") or value.get(name[:-1]) is not None:
            shapes[name.removesuffix("?")] = member_shape
    return shapes


def _is_between(value: Any, least: float, most: float) -> bool:
    return type(value) in (int, float) and least <= value <= most


def _is_like(value: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _are_of_unit_vectors(values: "pa.Array") -> bool:
    """Return whether all numbers are from -1 to 1, as in unit vectors; False for NaN."""
    numbers = values.to_numpy(zero_copy_only=False)
    return len(numbers) == 0 or bool(numbers.min() >= -LONGEST and numbers.max() <= LONGEST)
