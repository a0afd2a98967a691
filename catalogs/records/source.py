"""Source kind `records`: a table of tools in JSON, JSONL, CSV or Parquet, with its columns named in
the configuration.

    [catalogs.seal]
    type = "records"
    path = "tool.jsonl"             # a file or a pattern; the format is the suffix, unless `format`
    says another

    [catalogs.seal.columns]
    name = "api_name"
    description = "api_description"
    parameters = "parameters"       # JSON Schema, a list of parameters, or a mapping of names: its
    shape tells required = "required"
    output = "responses"
    tags = "field"
    annotations = ["func_type"]

    [catalogs.seal.examples]        # example queries from another file: one row for each query and
    its tool path = "queries.jsonl"
    query = "query"
    tool = "tool"

A JSON file is a list of records, or an object whose keys are the names and whose values are the
records or the descriptions; `at = "data.tools"` names a part of it. Columns that no record has are
a mistake and fail; a broken record is rejected."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

from catalogs.records.files import Format, Row, read_rows, too_many
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from catalogs.shared.validity import is_text
from pegboard.errors import SourceError
from pegboard.foreign.files import flaw_of, matching_files, parse_json
from pegboard.foreign.limits import MAX_EXAMPLE, MAX_RECORDS
from pegboard.records import AgentKind, Dependency, DependencyType
from pegboard.schemas.loose import Unusable, loose_object, object_schema

MAX_PARTS = 20
"""Dependencies of a record that are rejected one by one."""
DEPENDENCY_TYPES: tuple[str, ...] = get_args(DependencyType)


class Columns(BaseModel):
    """Which column of a record holds what; `annotations` keep the columns' own names."""

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


class Examples(BaseModel):
    """A file of example queries: each row has a query and the name, or names, of its tools."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    format: Format | None = None
    query: str = "query"
    tool: str = "tool"


class RecordsOptions(SourceOptions):
    """The options of a catalog of type `records`; `agent` defaults to the catalog's name."""

    path: str
    format: Format | None = None
    at: str = ""
    agent: str | None = None
    agent_kind: AgentKind = "library"
    columns: Columns = Columns()
    examples: Examples | None = None


def read(listing: ListingBuilder, options: RecordsOptions) -> None:
    """List the records. Raises SourceError for a column that no record has."""
    columns, rows = options.columns, _rows(listing, options)
    first = _rows_with_columns(options.path, rows, columns)
    queries = _queries(listing, options) if options.examples else {}
    names = set[str]()
    for row in chain(first, rows):
        with listing.record(row.where, row.value):
            _list_row(listing, options, row, queries)
        if queries:
            names.add(_name(row, columns.name))
    for name in (name for name in queries if name not in names):
        listing.reject(
            options.examples.path if options.examples else "",
            f"{len(queries[name])} example queries are for the tool {name!r}, which no record "
            f"has; correct the name",
            queries[name][0],
        )


def _name(row: Row, column: str) -> str:
    name = None if row.problem else row.value.get(column)
    return name.strip() if isinstance(name, str) else ""


def _rows(listing: ListingBuilder, options: RecordsOptions) -> Iterator[Row]:
    for path in matching_files(listing.base, options.path):
        with listing.file(path):
            rows = read_rows(
                path,
                options.format,
                at=options.at,
                name=options.columns.name,
                text=options.columns.description,
                max_bytes=options.max_bytes,
            )
            for number, row in enumerate(rows):
                if number == MAX_RECORDS:
                    raise SourceError(too_many(path))
                yield row


def _rows_with_columns(path: str, rows: Iterator[Row], columns: Columns) -> list[Row]:
    """Return the first rows, until every column is in one. Raises SourceError if none has one."""
    named = columns.model_dump(exclude={"annotations"}, exclude_unset=True).values()
    missing = {*(value for value in named if value), columns.name, *columns.annotations}
    first, found = list[Row](), set[str]()
    for row in rows:
        first.append(row)
        found |= set() if row.problem else row.value.keys()
        if missing <= found:
            return first
    if found:
        raise SourceError(
            f"No record of {path} has the columns {sorted(missing - found)}, which the "
            f"configuration names. The columns are: {sorted(found)}."
        )
    return first


def _list_row(
    listing: ListingBuilder, options: RecordsOptions, row: Row, queries: Mapping[str, list[str]]
) -> None:
    problem = row.problem or flaw_of(row.value)
    if problem:
        listing.reject(row.where, problem, row.value)
        return
    columns, problems = options.columns, list[str]()
    record = {**row.value}
    for column in (columns.parameters, columns.required, columns.output, columns.tags):
        record |= _decoded_cell(record, column)
    for column in (columns.examples, columns.dependencies):
        record |= _decoded_cell(record, column)

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
    name = record.get(columns.name)
    given = _texts(record.get(columns.examples)) if columns.examples else []
    if problems:
        listing.reject(row.where, "; ".join(problems), record)
        return
    owner = record.get(columns.agent) if columns.agent else None
    owner = owner if isinstance(owner, str) and owner.strip() else options.agent or listing.catalog
    tool = listing.tool(
        listing.agent(owner, kind=options.agent_kind, source=options.path),
        name,
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
        examples=[*given, *(queries.get(name.strip(), []) if isinstance(name, str) else [])],
        dependencies=(dependencies := _dependencies(record, columns.dependencies)).kept,
        tags=_texts(record.get(columns.tags)) if columns.tags else (),
    )
    rejected = list(dependencies.rejected.items()) if tool else []
    for index, (why, raw) in rejected[:MAX_PARTS]:
        listing.reject(f"{row.where} {columns.dependencies}[{index}]", why, raw)
    if more := len(rejected[MAX_PARTS:]):
        listing.reject(row.where, f"{more:,} more of its dependencies are left out; correct them")


@dataclass(frozen=True, slots=True)
class _Dependencies:
    """The dependencies of a record, and by their place the ones that say too little."""

    kept: list[Dependency] = field(default_factory=list[Dependency])
    rejected: dict[int, tuple[str, Any]] = field(default_factory=dict[int, tuple[str, Any]])


def _dependencies(record: Mapping[str, Any], column: str | None) -> _Dependencies:
    out = _Dependencies()
    value = record.get(column) if column else None
    for index, item in enumerate(
        value if isinstance(value, list) else [] if value in (None, "") else [value]
    ):
        item = {"name": item} if isinstance(item, str) else item
        tool = _first(item, "name", "tool", "function")
        parameter = _first(item, "parameter_name", "parameter")
        kind = _dependency_type(_first(item, "dependence_type", "dependency_type", "type"))
        if tool is None:
            out.rejected[index] = (
                "the dependency names no tool; the tool is listed without it",
                item,
            )
        elif kind is None:
            known = ", ".join(DEPENDENCY_TYPES)
            out.rejected[index] = (
                f"the dependency has an unknown type, expected one of {known}; it is left out",
                item,
            )
        else:
            out.kept.append(Dependency(tool, kind, parameter, _first(item, "reason") or ""))
    return out


def _dependency_type(text: str | None) -> DependencyType | None:
    """Normalise a type such as `TOOL_DIRECTLY_DEPENDS_ON`; without a word for it, it is direct."""
    name = (text or "tool-depends-on").strip().lower().replace("_", "-").replace(" ", "-")
    kinds: dict[str, DependencyType] = {kind: kind for kind in get_args(DependencyType)}
    return kinds.get(name) or kinds.get(name.replace("-depends-on", "-directly-depends-on"))


def _first(item: Any, *keys: str) -> str | None:
    for key in keys:
        value = item.get(key) if isinstance(item, Mapping) else None
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def _queries(listing: ListingBuilder, options: RecordsOptions) -> dict[str, list[str]]:
    """The example queries of each tool, in the order of the file."""
    join = options.examples
    assert join is not None
    out: dict[str, list[str]] = {}
    rows = [
        row
        for path in matching_files(listing.base, join.path)
        for row in read_rows(path, join.format, max_bytes=options.max_bytes)
    ]
    _rows_with_columns(join.path, iter(rows), Columns(name=join.query, description=join.tool))
    for row in rows:
        problem = row.problem or flaw_of(row.value)
        query: Any = None if problem else row.value.get(join.query)
        tools = [] if problem else _texts(_decoded(row.value.get(join.tool)))
        if problem := problem or _query_problem(query, tools, join):
            listing.reject(row.where, problem, row.value)
            continue
        for tool in tools:
            out.setdefault(tool.strip(), []).append(query)
    return out


def _query_problem(query: Any, tools: list[str], join: Examples) -> str:
    if not isinstance(query, str) or not query.strip() or not tools:
        return f"it needs a {join.query!r} and a {join.tool!r}, both text"
    if len(query) > MAX_EXAMPLE:
        return f"its query has {len(query):,} characters, more than {MAX_EXAMPLE:,}; shorten it"
    if not all(map(is_text, (query, *tools))):
        return "it is not valid UTF-8 text; save the source as UTF-8"
    return ""


def _decoded_cell(record: Mapping[str, Any], column: str | None) -> dict[str, Any]:
    return {column: _decoded(record[column])} if column in record and column else {}


def _decoded(value: Any) -> Any:
    """A list or object that stands as JSON text in a cell; other values as they are."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return parse_json(value, "it")
        except SourceError:
            return value
    return value


def _texts(value: Any) -> list[str]:
    """A list of texts, from one or from a list."""
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str) and item.strip()]


def inputs(base: Path, options: RecordsOptions) -> list[Path]:
    """The files with the records, and those with example queries."""
    queries = matching_files(base, options.examples.path) if options.examples else []
    return [*matching_files(base, options.path), *queries]


source = SourceKind(options=RecordsOptions, read=read, inputs=inputs)
