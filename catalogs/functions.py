"""Source kind `functions`: files of function schemas as they are given to an LLM API.

    [catalogs.assistant]
    type = "functions"
    path = "tools/*.json"          # JSON (a list, one object, or {"tools": [...]}) or JSONL

The shapes are those of `pegboard.schemas.declarations`; they may stand mixed in one file.
"""

from pathlib import Path
from typing import Any

from catalogs.shared.files import matching_files, parse_json, read_json, read_lines
from catalogs.shared.listing import ListingBuilder, SourceKind, SourceOptions
from pegboard.errors import SourceError
from pegboard.schemas.declarations import SHAPES, function_records, read_function


class FunctionsOptions(SourceOptions):
    """Options of a catalog of type `functions`; `agent` defaults to the catalog's name."""

    path: str
    agent: str | None = None


def read(listing: ListingBuilder, options: FunctionsOptions) -> None:
    """List the functions of the files. Raises SourceError if one of them cannot be read."""
    agent = listing.agent(options.agent or listing.catalog, kind="library", source=options.path)
    for path in matching_files(listing.base, options.path):
        if path.suffix.lower() not in (".jsonl", ".ndjson"):
            _list(listing, agent, read_json(path), path.name)
            continue
        for number, line in read_lines(path):
            where = f"{path.name} line {number}"
            try:
                record = parse_json(line, "it")
            except SourceError as error:
                listing.reject(where, str(error), line)
                continue
            _list(listing, agent, record, where)


def _list(listing: ListingBuilder, agent: str, value: Any, where: str) -> None:
    for place, record, gemini in function_records(value, where):
        try:
            function = read_function(record, gemini)
        except RecursionError:
            listing.reject(place, "it is nested too deeply; flatten it", record)
            continue
        if function is None:
            got = (
                f"the keys {sorted(record)}" if isinstance(record, dict) else type(record).__name__
            )
            problem = f"its shape is unknown: it has {got}. The known shapes are {SHAPES}."
            listing.reject(place, problem, record)
            continue
        try:
            listing.tool(
                agent,
                function.name,
                where=place,
                raw=record,
                description=function.description,
                input_schema=function.input_schema,
                output_schema=function.output_schema,
                annotations=function.annotations,
            )
        except RecursionError:
            listing.reject(place, "it is nested too deeply; flatten it", record)


def inputs(base: Path, options: FunctionsOptions) -> list[Path]:
    """The files with the declarations."""
    return matching_files(base, options.path)


source = SourceKind(options=FunctionsOptions, read=read, inputs=inputs)
