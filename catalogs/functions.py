"""Source kind `functions`: files of function schemas in the formats of LLM APIs.

`pegboard.schemas.declarations` has the formats. One file may mix them. See
docs/how-to/sources.md.
"""

from typing import Any

from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions, files_of_path
from pegboard.errors import SourceError
from pegboard.foreign.files import (
    check_names,
    flaw_of,
    matching_files,
    parse_json,
    read_json,
    read_lines,
)
from pegboard.schemas.declarations import FORMATS, function_records, read_function


class FunctionsOptions(SourceOptions):
    """The options of a catalog of type `functions`; `agent` defaults to the catalog's name."""

    path: str
    agent: str | None = None


def read(listing: ListingBuilder, options: FunctionsOptions) -> None:
    """List the functions of the files. Raises SourceError if there is none."""
    agent = listing.agent(options.agent or listing.catalog, kind="library", source=options.path)
    for path in matching_files(listing.base, options.path):
        with listing.file(path):
            if path.suffix.lower() not in (".jsonl", ".ndjson"):
                document = read_json(path, options.max_bytes)
                check_names(document, str(path))
                _list(listing, agent, document, path.name)
                continue
            for number, line in read_lines(path, options.max_bytes):
                where = f"{path.name} line {number}"
                with listing.record(where):
                    if not _list(listing, agent, parse_json(line, "it"), where):
                        raise SourceError("it does not declare a function; remove it")


def _list(listing: ListingBuilder, agent: str, value: Any, where: str) -> bool:
    """List the functions in a value; return whether it has any."""
    records = list(function_records(value, where))
    for place, record, gemini in records:
        with listing.record(place):
            _list_function(listing, agent, record, gemini, place)
    return bool(records)


def _list_function(
    listing: ListingBuilder, agent: str, record: Any, gemini: bool, where: str
) -> None:
    if flaw := flaw_of(record):
        raise SourceError(flaw)
    function = read_function(record, gemini)
    if function is None:
        got = f"the keys {sorted(record)}" if isinstance(record, dict) else type(record).__name__
        raise SourceError(f"its format is unknown: it has {got}. Known formats: {FORMATS}.")
    listing.tool(
        agent,
        function.name,
        where=where,
        raw=record,
        description=function.description,
        input_schema=function.input_schema,
        output_schema=function.output_schema,
        annotations=function.annotations,
    )


source = SourceKind(options=FunctionsOptions, read=read, inputs=files_of_path)
