"""Hostile sources of every kind, each with good tools between the hostile records."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.catalogs.mcp_servers import raw
from tests.fuzz.hostile import damaged, encode, hostile, mutated, plain


@dataclass(frozen=True, slots=True)
class Hostile:
    """A hostile source.

    Attributes:
        options: the catalog's table in pegboard.toml.
        good: names of the undamaged tools, all of which must be listed.
        records: how many records were written; each must be listed or rejected. 0 where the damage
            is to a file, so that its records cannot be counted.
        unreadable: a file or server among the good ones may be reported as such.
    """

    options: dict[str, Any]
    good: frozenset[str] = field(default_factory=frozenset[str])
    records: int = 0
    unreadable: bool = False


def good_record(number: int) -> dict[str, Any]:
    return {
        "name": f"good_{number}",
        "description": f"Files the report {number} of a department.",
        "parameters": {
            "type": "object",
            "properties": {"month": {"type": "string", "description": "which month"}},
            "required": ["month"],
        },
        "required": ["month"],
        "tags": ["reports"],
        "examples": ["file last month's report"],
        "dependencies": [{"name": "good_0", "reason": "needs the report"}],
        "web": "https://example.org/reports",
    }


def _mixed(
    rng: Random, count: int, good: Callable[[int], dict[str, Any]]
) -> tuple[list[Any], frozenset[str]]:
    """Return good and mutated records in random order, and the names of the good ones."""
    kept = max(1, count // 10)
    goods = [good(number) for number in range(kept)]
    bad = [mutated(rng, {**good(number), "name": f"bad_{number}"}) for number in range(kept, count)]
    records = [*goods, *bad]
    rng.shuffle(records)
    return records, frozenset(record["name"] for record in goods)


COLUMNS = {
    "parameters": "parameters",
    "required": "required",
    "tags": "tags",
    "examples": "examples",
    "dependencies": "dependencies",
    "annotations": ["web"],
}


def _content(suffix: str, records: list[Any]) -> bytes:
    """Return a file with the records; tables hold what is no text as JSON."""
    if suffix == "json":
        return encode(records)
    if suffix == "jsonl":
        return b"\n".join(map(encode, records))
    import polars

    names = list(good_record(0))
    rows = [row if isinstance(row := plain(one), dict) else {"name": row} for one in records]
    cells = [{name: _cell(row[name]) if name in row else None for name in names} for row in rows]
    frame = polars.DataFrame(cells, schema=dict.fromkeys(names, polars.String))
    out = io.BytesIO()
    frame.write_parquet(out) if suffix == "parquet" else frame.write_csv(out)
    return out.getvalue()


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _records_in(suffix: str) -> "Generator":
    def records(rng: Random, folder: Path, count: int) -> Hostile:
        rows, good = _mixed(rng, count, good_record)
        (folder / f"tools.{suffix}").write_bytes(_content(suffix, rows))
        options = {"type": "records", "path": f"tools.{suffix}", "columns": COLUMNS}
        return Hostile(options, good, 0 if suffix == "csv" else count)

    records.__name__ = f"records_{suffix}"
    return records


def good_function(number: int) -> dict[str, Any]:
    record = good_record(number)
    return {key: record[key] for key in ("name", "description", "parameters")}


def functions(rng: Random, folder: Path, count: int) -> Hostile:
    shapes: list[Callable[[int], dict[str, Any]]] = [
        good_function,
        lambda number: {"type": "function", **good_function(number)},
        lambda number: {**good_function(number), "input_schema": {"type": "object"}},
    ]
    records, good = _mixed(rng, count, rng.choice(shapes))
    (folder / "tools.json").write_bytes(encode(records))
    return Hostile({"type": "functions", "path": "tools.json"}, good, count)


def good_mcp_tool(number: int) -> dict[str, Any]:
    record = good_record(number)
    return {
        "name": record["name"],
        "description": record["description"],
        "inputSchema": record["parameters"],
        "annotations": {"title": "Report", "readOnlyHint": True},
    }


def mcp_dump(rng: Random, folder: Path, count: int) -> Hostile:
    records, good = _mixed(rng, count, good_mcp_tool)
    (folder / "server.json").write_bytes(encode({"tools": records}))
    return Hostile({"type": "mcp-dump", "path": "*.json"}, good, count)


def mcp_dump_servers(rng: Random, folder: Path, count: int) -> Hostile:
    """Many servers in one file; what is hostile are the servers themselves."""
    good = {"name": "reports", "web": "https://example.org", "tools": {}}
    good["tools"] = {"tools": [good_mcp_tool(number) for number in range(3)]}
    servers = [mutated(rng, {**good, "name": f"server_{number}"}) for number in range(count // 4)]
    (folder / "servers.json").write_bytes(encode([good, *servers]))
    return Hostile({"type": "mcp-dump", "path": "*.json"}, frozenset(f"good_{n}" for n in range(3)))


def mcp_live(rng: Random, folder: Path, count: int) -> Hostile:
    """A server that lists hostile tools between good ones, over stdio."""
    records, good = _mixed(rng, count, good_mcp_tool)
    (folder / "tools.raw").write_bytes(encode(records))
    server = raw("file", str(folder / "tools.raw"))
    return Hostile({"type": "mcp", "servers": {"raw": server}, "timeout": 300}, good, count)


def _operation(number: int) -> dict[str, Any]:
    record = good_record(number)
    return {
        "operationId": record["name"],
        "summary": record["description"],
        "tags": ["reports"],
        "parameters": [
            {"name": "month", "in": "query", "required": True, "schema": {"type": "string"}},
            {"$ref": "#/components/parameters/page"},
        ],
        "requestBody": {
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Report"}}}
        },
        "responses": {"200": {"description": "The report."}},
        "security": [{"key": []}],
    }


def _document(operations: dict[str, Any]) -> dict[str, Any]:
    report = {"type": "object", "properties": {"title": {"type": "string"}}}
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    page = {"name": "page", "in": "query", "schema": {"type": "integer"}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Reports", "version": "1"},
        "servers": [{"url": "https://example.org/api"}],
        "paths": operations,
        "components": {
            "schemas": {"Report": report, "Node": node},
            "parameters": {"page": page},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        },
    }


def openapi(rng: Random, folder: Path, count: int) -> Hostile:
    """An API whose operations are hostile, each under a path of its own."""
    paths: dict[str, Any] = {}
    for number in range(count):
        good = number % 10 == 0
        operation = _operation(number)
        if not good:
            operation = mutated(rng, {**operation, "operationId": f"bad_{number}"})
        path = f"/reports/{number}"
        if not good and rng.random() < 0.2:
            path += "/" + str(plain(hostile(rng)))[:2_000]
        paths[path] = {"get": operation}
    text = encode(_document(paths))
    (folder / "api.json").write_bytes(text)
    good_names = frozenset(f"good_{number}" for number in range(0, count, 10))
    return Hostile({"type": "openapi", "path": "api.json"}, good_names, count)


def openapi_document(rng: Random, folder: Path, count: int) -> Hostile:
    """A document that is hostile anywhere, so that nothing of it need be listed."""
    document = _document({f"/r/{n}": {"get": _operation(n)} for n in range(3)})
    (folder / "api.json").write_bytes(encode(mutated(rng, document, times=3)))
    return Hostile({"type": "openapi", "path": "api.json"}, unreadable=True)


def openapi_yaml(rng: Random, folder: Path, count: int) -> Hostile:
    """A YAML document with aliases, tags and damage."""
    document = json.dumps(_document({f"/r/{n}": {"get": _operation(n)} for n in range(3)}))
    extras = (
        "&a [" + "*a, " * 10 + "]",
        "!!python/object/apply:os.system ['true']",
        "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 1}]" for n in range(12)),
        "- [" * 2_000,
        "? [key]\n: value",
        "x: 2024-01-01\ny: 0o17\nz: .inf\nw: " + "9" * 5_000,
        "\x00",
    )
    text = rng.choice((f"{document}\n{rng.choice(extras)}", rng.choice(extras), document))
    content = text.encode()
    (folder / "api.yaml").write_bytes(damaged(rng, content) if rng.random() < 0.5 else content)
    return Hostile({"type": "openapi", "path": "api.yaml"}, unreadable=True)


def damaged_file(rng: Random, folder: Path, count: int) -> Hostile:
    """A damaged file beside a good one: the good one's tools are listed, the damage reported."""
    kind, suffix, good = rng.choice(
        (
            ("records", "json", good_record),
            ("records", "jsonl", good_record),
            ("records", "csv", good_record),
            ("records", "parquet", good_record),
            ("functions", "json", good_function),
            ("functions", "jsonl", good_function),
            ("mcp-dump", "json", good_mcp_tool),
        )
    )
    records = [good(number) for number in range(10)]
    others = [{**record, "name": f"other_{n}"} for n, record in enumerate(records)]
    own, other = (
        encode({"tools": rows}) if kind == "mcp-dump" else _content(suffix, rows)
        for rows in (records, others)
    )
    (folder / f"a.{suffix}").write_bytes(own)
    (folder / f"b.{suffix}").write_bytes(damaged(rng, other))
    options: dict[str, Any] = {"type": kind, "path": f"*.{suffix}"}
    options |= {"columns": COLUMNS} if kind == "records" else {}
    return Hostile(options, frozenset(record["name"] for record in records), unreadable=True)


Generator = Callable[[Random, Path, int], Hostile]
RECORDS: tuple[Generator, ...] = (
    *map(_records_in, ("json", "jsonl", "csv", "parquet")),
    functions,
    mcp_dump,
    mcp_dump_servers,
    openapi,
    mcp_live,
)
"""Sources of many hostile records."""
DOCUMENTS: tuple[Generator, ...] = (openapi_document, openapi_yaml, damaged_file)
"""Sources that are hostile as a whole; one counts as one record."""
