"""The records of a JSON, JSONL, CSV or Parquet file, each with its place; one that cannot be read
says why in its own row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from catalogs.shared.files import parse_json, read_json, read_lines
from pegboard.errors import SourceError

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
        return _lines(path)
    if kind == "json":
        return _json(path, at, name, text)
    return _parquet(path) if kind == "parquet" else _csv(path, "\t" if kind == "tsv" else ",")


def _row(where: str, value: Any) -> Row:
    return Row(
        where,
        value,
        "" if isinstance(value, dict) else f"it is {type(value).__name__}, expected an object",
    )


def _lines(path: Path) -> Iterator[Row]:
    for number, line in read_lines(path):
        where = f"{path.name} line {number}"
        try:
            yield _row(where, parse_json(line, "it"))
        except SourceError as error:
            yield Row(where, line, str(error))


def _json(path: Path, at: str, name: str, text: str | None) -> Iterator[Row]:
    value = read_json(path)
    for key in at.split(".") if at else ():
        if not isinstance(value, dict) or key not in value:
            raise SourceError(f"{path} has no '{key}' on the way to '{at}'. Correct `at`.")
        value = value[key]
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield _row(f"{path.name}[{index}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            item = {text: item} if isinstance(item, str) and text else item
            yield _row(
                f"{path.name}[{key!r}]", {name: key, **item} if isinstance(item, dict) else item
            )
    else:
        raise SourceError(
            f"{path} is {type(value).__name__}, expected a list of records or an object of them "
            f"by name."
        )


def _csv(path: Path, separator: str) -> Iterator[Row]:
    import polars

    try:
        content = path.read_bytes()
        try:
            content.decode()
            lossy = False
        except UnicodeDecodeError:
            lossy = True
        frame = polars.read_csv(
            content,
            separator=separator,
            infer_schema=False,
            encoding="utf8-lossy" if lossy else "utf8",
        )
    except polars.exceptions.NoDataError:
        return
    except (OSError, polars.exceptions.PolarsError) as error:
        raise SourceError(
            f"Cannot read {path} as CSV: {_csv_problem(path, separator) or error}. Correct the "
            f"file."
        ) from error
    for number, record in enumerate(frame.iter_rows(named=True), start=1):
        where = f"{path.name} row {number}"
        if lossy and any("\ufffd" in value for value in record.values() if value):
            yield Row(where, record, "it is not valid UTF-8 text; save the source as UTF-8")
        else:
            yield Row(where, record)


def _csv_problem(path: Path, separator: str) -> str:
    """The rows that have more fields than the header, which Polars does not name."""
    import csv

    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(file, delimiter=separator)
            width = len(next(rows, []))
            long = [number for number, row in enumerate(rows, start=1) if len(row) > width]
    except (OSError, csv.Error):
        return ""
    return (
        f"rows {long[:20]} have more fields than the header; quote the fields with a separator in "
        f"them"
        if long
        else ""
    )


def _parquet(path: Path) -> Iterator[Row]:
    import polars
    from pydantic_core import to_jsonable_python

    try:
        frame = polars.read_parquet(path)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise SourceError(
            f"Cannot read {path} as Parquet: {str(error).splitlines()[0]}. Write it again."
        ) from error
    for number, record in enumerate(frame.iter_rows(named=True), start=1):
        value = to_jsonable_python(record, fallback=str, bytes_mode="base64")
        yield Row(
            f"{path.name} row {number}",
            {column: _without_nulls(item) for column, item in value.items()},
        )


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
