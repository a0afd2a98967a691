"""The records of a JSON, JSONL, CSV or Parquet file, each with its place; one that cannot be read
says why in its own row.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from catalogs.shared.validity import is_text
from pegboard.errors import SourceError
from pegboard.foreign.files import (
    RepeatedNames,
    check_names,
    parse_json,
    read_bytes,
    read_json,
    read_lines,
    read_text,
)
from pegboard.foreign.limits import MAX_BYTES, MAX_RECORD, MAX_RECORDS

Format = Literal["json", "jsonl", "csv", "tsv", "parquet"]
SUFFIXES: dict[str, Format] = {
    **{f".{name}": name for name in get_args(Format)},
    ".ndjson": "jsonl",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A record and its place in the source; with a `problem`, `value` is the raw content."""

    where: str
    value: Any
    problem: str = ""


def read_rows(
    path: Path,
    kind: Format | None = None,
    *,
    at: str = "",
    name: str = "name",
    text: str | None = "description",
    max_bytes: int = MAX_BYTES,
) -> Iterator[Row]:
    """The rows of a file in its order.

    Args:
        kind: the format; None to tell it by the suffix.
        at: the keys, joined by points, under which the records stand in a JSON file.
        name: the column for the keys of a JSON object of records.
        text: the column for its values, if these are texts.

    Raises SourceError if the file as a whole cannot be read.
    """
    kind = kind or SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise SourceError(
            f"The format of {path} is not known by its suffix. Give `format`, one of "
            f"{', '.join(get_args(Format))}."
        )
    if kind == "jsonl":
        return _lines(path, max_bytes)
    if kind == "json":
        return _json(path, max_bytes, at, name, text)
    if kind == "parquet":
        return _parquet(path, max_bytes)
    return _csv(path, max_bytes, "\t" if kind == "tsv" else ",")


def too_many(path: Path) -> str:
    """Return the message for a file with too many records."""
    return f"{path} has more than {MAX_RECORDS:,} records. Split it."


def _row(where: str, value: Any) -> Row:
    return Row(
        where,
        value,
        "" if isinstance(value, dict) else f"it is {type(value).__name__}, expected an object",
    )


def _lines(path: Path, max_bytes: int) -> Iterator[Row]:
    for number, line in read_lines(path, max_bytes):
        where = f"{path.name} line {number}"
        try:
            yield _row(where, parse_json(line, "it"))
        except SourceError as error:
            yield Row(where, line, str(error))


def _json(path: Path, max_bytes: int, at: str, name: str, text: str | None) -> Iterator[Row]:
    value = read_json(path, max_bytes)
    for key in at.split(".") if at else ():
        if not isinstance(value, dict) or key not in value:
            raise SourceError(f"{path} has no '{key}' on the way to '{at}'. Correct `at`.")
        check_names(value, str(path))
        value = value[key]
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield _row(f"{path.name}[{index}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            where = f"{path.name}[{key!r}]"
            item = {text: item} if isinstance(item, str) and text else item
            if isinstance(value, RepeatedNames) and key in value.repeated:
                yield Row(where, item, "its name stands twice in the object; remove one")
            elif isinstance(item, dict):
                item.setdefault(name, key)
                yield _row(where, item)
            else:
                yield _row(where, item)
    else:
        raise SourceError(
            f"{path} is {type(value).__name__}, expected a list of records or an object of them "
            f"by name."
        )


def _csv(path: Path, max_bytes: int, separator: str) -> Iterator[Row]:
    # Not by Polars, which takes an open quote, short rows and a file without line feeds as they
    # come.
    csv.field_size_limit(MAX_RECORD)
    text = io.StringIO(read_text(path, max_bytes), newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    header = next(reader, [])
    if repeated := [name for name in dict.fromkeys(header) if header.count(name) > 1]:
        raise SourceError(f"{path} has the columns {repeated} twice. Rename or remove one of each.")
    number = 0
    while True:
        number += 1
        where, line = f"{path.name} row {number}", reader.line_num + 1
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
            yield Row(where, "", f"it is not CSV: {error}; quote the field that has a quote in it")
            continue
        if fields:
            yield _csv_row(where, header, fields)
        else:
            number -= 1


def _csv_row(where: str, header: list[str], fields: list[str]) -> Row:
    problem = ""
    if len(fields) != len(header):
        problem = (
            f"it has {len(fields)} fields, and the header {len(header)}; quote a field with a "
            f"separator in it, and write a separator for an empty one"
        )
    elif not is_text("".join(fields)):
        problem = "it is not valid UTF-8 text; save the source as UTF-8"
    cells = dict(zip(header, (field or None for field in fields), strict=False))
    return Row(where, cells, problem)


def _parquet(path: Path, max_bytes: int) -> Iterator[Row]:
    import polars

    content = read_bytes(path, max_bytes)
    try:
        # A few bytes may stand for any number of rows.
        if polars.scan_parquet(io.BytesIO(content)).select(polars.len()).collect().item() > (
            MAX_RECORDS
        ):
            raise SourceError(too_many(path))
        frame = polars.read_parquet(content)
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
    """Return a value without the nulls of structs that Parquet adds, and with maps as objects."""
    if isinstance(value, list):
        if value and all(
            isinstance(item, dict) and item.keys() == {"key", "value"} for item in value
        ):
            return {
                item["key"]: _without_nulls(item["value"])
                for item in value
                if isinstance(item["key"], str)
            }
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value
