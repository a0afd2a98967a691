"""Source kind `records`: tables of tools in JSON, JSONL, CSV or Parquet, with configurable columns.

A JSON file is a list of records, or an object from names to records or descriptions. A column that
no record has is an error; an invalid record is rejected. See docs/how-to/sources.md."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions, files_of_path
from catalogs.shared.validity import is_text, member_text
from pegboard.errors import SourceError
from pegboard.foreign.files import (
    RepeatedNames,
    check_names,
    flaw_of,
    matching_files,
    parse_json,
    read_bytes,
    read_json,
    read_lines,
    read_text,
)
from pegboard.foreign.limits import MAX_RECORD, MAX_RECORDS
from pegboard.records import AgentKind, Dependency, DependencyType
from pegboard.schemas.loose import Unusable, loose_object, object_schema

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
"""Suffixes of the supported formats, in lower case."""
MAX_HEADER = 100_000
"""Characters of a table in which the separator is looked for."""
SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")
"""Matches the first line of a CSV file in which Excel declares the separator."""
DEPENDENCY_TYPES: Mapping[str, DependencyType] = {kind: kind for kind in get_args(DependencyType)}
"""Dependency types by name."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record and its place in the source. If `problem` is set, `value` is the raw content."""

    where: str
    value: Any
    problem: str = ""


class Columns(BaseModel):
    """The columns of each field of a tool; `annotations` are stored under their column names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = "name"
    description: str | None = "description"
    parameters: str | None = None
    required: str | None = None
    output: str | None = None
    tags: str | None = None
    agent: str | None = None
    examples: str | None = None
    dependencies: str | None = None
    annotations: tuple[str, ...] = ()


class RecordsOptions(SourceOptions):
    """The options of a catalog of type `records`; `agent` defaults to the catalog's name."""

    path: str
    at: str = ""
    agent: str | None = None
    agent_kind: AgentKind = "library"
    columns: Columns = Columns()


def read(listing: ListingBuilder, options: RecordsOptions) -> None:
    """List the records. Raises SourceError for a column that no record has."""
    rows = _rows(listing, options)
    leading_rows = _rows_with_columns(options.path, rows, options.columns)
    for row in chain(leading_rows, rows):
        with listing.record(row.where):
            _list_row(listing, options, row)


def _rows(listing: ListingBuilder, options: RecordsOptions) -> Iterator[Row]:
    for path in matching_files(listing.base, options.path):
        with listing.file(path):
            for number, row in enumerate(read_rows(path, options)):
                if number == MAX_RECORDS:
                    raise SourceError(f"{path} has more than {MAX_RECORDS:,} records. Split it.")
                yield row


def _rows_with_columns(path: str, rows: Iterator[Row], columns: Columns) -> list[Row]:
    """Return the leading rows, up to the one where every configured column has occurred.

    Raises SourceError for a column that no row has.
    """
    configured = columns.model_dump(exclude={"annotations"}, exclude_unset=True).values()
    expected = {*(value for value in configured if value), columns.name, *columns.annotations}
    leading_rows: list[Row] = []
    present: set[str] = set()
    for row in rows:
        leading_rows.append(row)
        if not row.problem:
            present |= row.value.keys()
        if expected <= present:
            return leading_rows
    if present:
        raise SourceError(
            f"No record of {path} has the columns {sorted(expected - present)}. It has "
            f"{sorted(present)}: configure the column, as in "
            f"columns = {{ name = '{min(present)}' }}."
        )
    return leading_rows


def _list_row(listing: ListingBuilder, options: RecordsOptions, row: Row) -> None:
    if problem := row.problem or flaw_of(row.value):
        raise SourceError(problem)
    columns = options.columns
    problems: list[str] = []
    record = {**row.value}
    structured = (columns.parameters, columns.required, columns.output, columns.tags)
    for column in (*structured, columns.examples, columns.dependencies):
        if column and column in record:
            record[column] = _decoded(record[column])

    def schema(label: str, column: str | None, required: Any = None) -> dict[str, Any] | None:
        try:
            return loose_object(record.get(column), required) if column else None
        except (Unusable, RecursionError) as error:
            problems.append(f"its {label} cannot be read: {error}")
            return None

    inputs = schema(
        "parameters", columns.parameters, record.get(columns.required) if columns.required else None
    )
    output = schema("output", columns.output)
    if problems:
        raise SourceError("; ".join(problems))
    owner = record.get(columns.agent) if columns.agent else None
    owner = owner if isinstance(owner, str) and owner.strip() else options.agent or listing.catalog
    dependencies, invalid = _dependencies(record, columns.dependencies)
    listed = listing.tool(
        listing.agent(owner, kind=options.agent_kind, source=options.path),
        record.get(columns.name),
        where=row.where,
        raw=record,
        description=record.get(columns.description) if columns.description else "",
        input_schema=inputs,
        output_schema=object_schema(output) if output else None,
        annotations={
            column: record[column]
            for column in columns.annotations
            if record.get(column) is not None
        },
        examples=_texts(record.get(columns.examples)) if columns.examples else (),
        dependencies=dependencies,
        tags=_texts(record.get(columns.tags)) if columns.tags else (),
    )
    if listed and invalid:
        why = (
            f"{len(invalid):,} of its dependencies are left out, because they have no tool name, "
            f"or a type other than {', '.join(DEPENDENCY_TYPES)}; correct them"
        )
        listing.notice("cut", f"{row.where} {columns.dependencies}", why)


def _dependencies(
    record: Mapping[str, Any], column: str | None
) -> tuple[list[Dependency], list[Any]]:
    """Return the dependencies of a record, and the invalid ones."""
    dependencies: list[Dependency] = []
    invalid: list[Any] = []
    value = record.get(column) if column else None
    if value in (None, ""):
        value = []
    for item in value if isinstance(value, list) else [value]:
        fields = {"name": item} if isinstance(item, str) else item
        tool = member_text(fields, "name")
        parameter = member_text(fields, "parameter_name")
        reason = member_text(fields, "reason")
        type_name = member_text(fields, "dependence_type") or "tool-depends-on"
        type_name = type_name.lower().replace("_", "-").replace(" ", "-")
        kind = DEPENDENCY_TYPES.get(type_name) or DEPENDENCY_TYPES.get(
            type_name.replace("-depends-on", "-directly-depends-on")
        )
        if not tool or kind is None:
            invalid.append(item)
        else:
            dependencies.append(Dependency(tool, kind, parameter or None, reason))
    return dependencies, invalid


def _decoded(value: Any) -> Any:
    """Parse a cell with a list or object as JSON text; return other values unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return parse_json(value, "it")
        except SourceError:
            return value
    return value


def _texts(value: Any) -> list[str]:
    """Return the non-blank texts of a list, or of a single value."""
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str) and item.strip()]


def read_rows(path: Path, options: RecordsOptions | None = None) -> Iterator[Row]:
    """Return the rows of a file in order; the suffix determines the format.

    Args:
        options: options of the catalog; None means the defaults.

    Raises SourceError if the file as a whole cannot be read.
    """
    options = options or RecordsOptions(type="records", path=str(path))
    match path.suffix.lower():
        case ".json":
            return _json(path, options)
        case ".jsonl" | ".ndjson":
            return _lines(path, options.max_bytes)
        case ".csv":
            return _csv(path, options.max_bytes, ",;\t|")
        case ".tsv":
            return _csv(path, options.max_bytes, "\t,;|")
        case ".parquet":
            return _parquet(path, options.max_bytes)
        case _:
            raise SourceError(
                f"The format of {path} is unknown. Expected a suffix of {', '.join(SUFFIXES)}. "
                f"Rename it."
            )


def _row(where: str, value: Any) -> Row:
    is_record = isinstance(value, dict)
    return Row(
        where, value, "" if is_record else f"it is {type(value).__name__}, expected an object"
    )


def _lines(path: Path, max_bytes: int) -> Iterator[Row]:
    for number, line in read_lines(path, max_bytes):
        where = f"{path.name} line {number}"
        try:
            yield _row(where, parse_json(line, "it"))
        except SourceError as error:
            yield Row(where, line, str(error))


def _json(path: Path, options: RecordsOptions) -> Iterator[Row]:
    """Yield the records of a list, or of an object from names to records."""
    value = read_json(path, options.max_bytes)
    description_column = options.columns.description
    for key in options.at.split(".") if options.at else ():
        if not isinstance(value, dict) or key not in value:
            raise SourceError(
                f"{path} has no '{key}', which is part of '{options.at}'. Correct `at`."
            )
        check_names(value, str(path))
        value = value[key]
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield _row(f"{path.name}[{index}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            where = f"{path.name}[{key!r}]"
            if isinstance(item, str) and description_column:
                item = {description_column: item}
            if isinstance(value, RepeatedNames) and key in value.repeated:
                yield Row(where, item, "its name is repeated in the object; remove one")
            elif isinstance(item, dict):
                item.setdefault(options.columns.name, key)
                yield _row(where, item)
            else:
                yield _row(where, item)
    else:
        raise SourceError(
            f"{path} is {type(value).__name__}, expected a list of records, or an object from "
            f"names to records."
        )


def _csv(path: Path, max_bytes: int, separators: str) -> Iterator[Row]:
    """Yield the records of a table.

    Args:
        separators: of fields; the first one that the header has is used.
    """
    # Not Polars, which accepts open quotes, short rows and files without line feeds.
    csv.field_size_limit(MAX_RECORD)
    content = read_text(path, max_bytes)
    separator = next((sign for sign in separators if _has_columns(content, sign)), separators[0])
    text = io.StringIO(content, newline="")
    declared = SEPARATOR_LINE.match(content)
    reader = csv.reader(text, delimiter=declared[1] if declared else separator, strict=True)
    if declared:
        next(reader)
    header = next(reader, [])
    if repeated := [name for name, count in Counter(header).items() if count > 1]:
        raise SourceError(f"{path} has the columns {repeated} twice. Rename or remove one of each.")
    number = 0
    while True:
        number += 1
        where = f"{path.name} row {number}"
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error):
                raise SourceError(
                    f"{path} has a quote in row {number}, line {line}, that is never closed. Close "
                    f"it."
                ) from error
            yield Row(where, "", f"it is not CSV: {error}; quote the field that contains a quote")
            continue
        if fields:
            yield _csv_row(where, header, fields)
        else:
            number -= 1


def _has_columns(content: str, separator: str) -> bool:
    """Return whether the first row of a table has several fields."""
    beginning = io.StringIO(content[:MAX_HEADER], newline="")
    try:
        return len(next(csv.reader(beginning, delimiter=separator), [])) > 1
    except csv.Error:
        return False


def _csv_row(where: str, header: list[str], fields: list[str]) -> Row:
    problem = ""
    if len(fields) != len(header):
        problem = (
            f"it has {len(fields)} fields, and the header {len(header)}; quote fields that contain "
            f"a separator, and write a separator for empty fields"
        )
    elif not is_text("".join(fields)):
        problem = "it is not valid UTF-8 text; save the source as UTF-8"
    cells = dict(zip(header, (field or None for field in fields), strict=False))
    return Row(where, cells, problem)


def _parquet(path: Path, max_bytes: int) -> Iterator[Row]:
    import polars

    content = read_bytes(path, max_bytes)
    try:
        # A few bytes of Parquet may encode any number of rows.
        frame = polars.read_parquet(content, n_rows=MAX_RECORDS + 1)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise SourceError(
            f"Cannot read {path} as Parquet: {str(error).splitlines()[0]}. Write it again."
        ) from error
    for number, record in enumerate(frame.iter_rows(named=True), start=1):
        where = f"{path.name} row {number}"
        try:
            yield Row(where, _plain_record(record))
        except (TypeError, ValueError, RecursionError) as error:
            yield Row(where, None, f"it cannot be written as JSON: {error}")


def _plain_record(record: dict[str, Any]) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    value = to_jsonable_python(record, fallback=str, bytes_mode="base64")
    return {column: _without_nulls(item) for column, item in value.items()}


def _without_nulls(value: Any) -> Any:
    """Return a value without the null members that Parquet adds to structs."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


source = SourceKind(options=RecordsOptions, read=read, inputs=files_of_path)
