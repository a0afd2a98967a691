import contextlib
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from catalogs.records.source import source
from catalogs.shared.listing import Listing, ListingBuilder
from pegboard.errors import SourceError
from pegboard.records import Dependency
from pegboard.schemas.loose import loose_object, loose_type

BENCHMARKS = Path(__file__).parents[3] / "shared" / "benchmarks"
needs_benchmarks = pytest.mark.skipif(
    not BENCHMARKS.is_dir(), reason="the benchmark files are not beside this checkout"
)


def listed(base: Path, toml: str) -> Listing:
    builder = ListingBuilder("table", base)
    source.read(builder, source.options.model_validate({"type": "records", **tomllib.loads(toml)}))
    return builder.build()


def listed_records(base: Path, records: Any, toml: str = "") -> Listing:
    (base / "t.json").write_text(json.dumps(records))
    return listed(base, f'path = "t.json"\n{toml}')


def kinds(listing: Listing) -> Counter[Any]:
    return Counter(
        item.get("type")
        for tool in listing.tools
        for item in tool.input_schema["properties"].values()
    )


@needs_benchmarks
def test_toollinkos_loads_whole_with_its_dependencies() -> None:
    listing = listed(
        BENCHMARKS,
        'path = "toollinkos/tools.json"\n'
        'columns = {parameters = "parameters", dependencies = "depends_on", annotations = '
        '["func_type"]}',
    )

    records = json.loads((BENCHMARKS / "toollinkos" / "tools.json").read_text())
    assert len(listing.tools) == len(records) == 573
    assert listing.rejected == ()
    assert sum(len(tool.dependencies) for tool in listing.tools) == 1496
    assert kinds(listing) == {
        "string": 868,
        "integer": 204,
        "number": 71,
        "boolean": 42,
        "array": 12,
        "object": 9,
        None: 1,
    }
    assert [listing.tools[index].name for index in (0, 286, 572)] == sorted(
        r["name"] for r in records
    )[::286]
    clock = next(tool for tool in listing.tools if tool.name == "get_current_time")
    assert clock.input_schema["properties"]["timezone"] == {
        "description": "The timezone to get the current time. Defaults to UTC.",
        "type": "string",
        "enum": ["UTC", "EST", "PST", "CST"],
        "default": "UTC",
    }
    assert clock.annotations == {"func_type": "core"}
    assert clock.dependencies == (
        Dependency(
            "get_system_timezone",
            "parameter-directly-depends-on",
            "timezone",
            "The system timezone can be used for the current time.",
        ),
    )


@needs_benchmarks
def test_seal_tools_loads_whole_with_its_responses() -> None:
    listing = listed(
        BENCHMARKS,
        """
        path = "seal-tools/tool.jsonl"
        [columns]
        name = "api_name"
        description = "api_description"
        parameters = "parameters"
        required = "required"
        output = "responses"
        tags = "field"
        """,
    )

    lines = (BENCHMARKS / "seal-tools" / "tool.jsonl").read_text().splitlines()
    names = sorted(json.loads(line)["api_name"] for line in lines)
    assert len(listing.tools) == len(names) == 4076
    assert listing.rejected == ()
    assert [listing.tools[index].name for index in (0, 2038, -1)] == [
        names[0],
        names[2038],
        names[-1],
    ]
    assert kinds(listing) == {"string": 7550, "integer": 1076, "number": 698, "boolean": 99}
    first = next(tool for tool in listing.tools if tool.name == "analyzeEvidence")
    assert first.input_schema["required"] == ["evidence_type", "method", "sample"]
    assert first.output_schema is not None
    assert list(first.output_schema["properties"]) == ["analysis_results", "conclusion"]
    assert first.tags == ("Chemical Engineering/Forensic engineering",)


@needs_benchmarks
def test_metatool_loads_whole_with_its_example_queries() -> None:
    listing = listed(
        BENCHMARKS,
        'path = "metatool/plugin_des.json"\nexamples = {path = "metatool/example_queries.jsonl"}',
    )

    descriptions = json.loads((BENCHMARKS / "metatool" / "plugin_des.json").read_text())
    assert {tool.name: tool.description for tool in listing.tools} == {
        n: d.strip() for n, d in descriptions.items()
    }
    assert len(listing.tools) == 199
    assert listing.rejected == ()
    assert sum(len(tool.examples) for tool in listing.tools) == 1990
    assert listing.tools[0].name == "ABCmouse"
    assert (
        listing.tools[0]
        .examples[0]
        .startswith("What are some interesting activities for my 8-year-old")
    )


@needs_benchmarks
def test_ultratool_loads_whole_with_its_schemas() -> None:
    listing = listed(
        BENCHMARKS,
        'path = "ultratool/tools.json"\ncolumns = {parameters = "arguments", output = "results"}',
    )

    records = {
        r["name"]: r for r in json.loads((BENCHMARKS / "ultratool" / "tools.json").read_text())
    }
    assert len(listing.tools) == len(records) == 436
    assert listing.rejected == ()
    assert all(tool.output_schema for tool in listing.tools)
    changed = [
        tool.name for tool in listing.tools if tool.input_schema != records[tool.name]["arguments"]
    ]
    assert changed == [
        name for name in sorted(records) if '"example":' in json.dumps(records[name]["arguments"])
    ]
    assert [listing.tools[index].name for index in (0, 218, -1)] == [
        sorted(records)[index] for index in (0, 218, -1)
    ]


def test_records_are_a_list_lines_a_part_or_an_object_by_name(tmp_path: Path) -> None:
    records = [{"name": name, "description": f"The {name}."} for name in "abc"]
    (tmp_path / "list.json").write_text(json.dumps(records))
    (tmp_path / "lines.ndjson").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "part.json").write_text(json.dumps({"data": {"tools": records}}))
    (tmp_path / "texts.json").write_text(json.dumps({r["name"]: r["description"] for r in records}))
    (tmp_path / "objects.json").write_text(
        json.dumps({r["name"]: {"description": r["description"]} for r in records})
    )
    pl.DataFrame(records).write_csv(tmp_path / "table.csv")
    pl.DataFrame(records).write_csv(tmp_path / "table.tsv", separator="\t")
    pl.DataFrame(records).write_parquet(tmp_path / "table.parquet")

    for path in (
        "list.json",
        "lines.ndjson",
        "texts.json",
        "objects.json",
        "table.csv",
        "table.tsv",
        "table.parquet",
    ):
        listing = listed(tmp_path, f'path = "{path}"')
        assert [(t.name, t.description) for t in listing.tools] == [
            (r["name"], r["description"]) for r in records
        ], path
    assert len(listed(tmp_path, 'path = "part.json"\nat = "data.tools"').tools) == 3
    assert len(listed(tmp_path, 'path = "*.tsv"\nformat = "tsv"').tools) == 3


def test_broken_lines_are_rejected_one_by_one(tmp_path: Path) -> None:
    lines = [
        b'{"name": "a"}',
        b"",
        b'{"name": ',
        b'{"name": "\xff"}',
        b"[1]",
        b'{"name": "b"}',
        b'{"description": "no name"}',
        b'{"name": "a"}',
        b'{"name": "c", "parameters": {"type": "object", "properties": {"x": {"type": 5}}}}',
        b'{"name": "d", "parameters": [{"type": "string"}]}',
        b'{"name": "e", "parameters": "not json"}',
        b'{"name": "f", "parameters": 5}',
        b'{"name": "g", "parameters": [{"name": "x"}, {"name": "x"}]}',
        b'{"name": "h", "description": ' + json.dumps("x" * 10_000_000).encode() + b"}",
        b'{"name": "i"}',
    ]
    (tmp_path / "t.jsonl").write_bytes(b"\n".join(lines))

    listing = listed(tmp_path, 'path = "t.jsonl"\ncolumns = {parameters = "parameters"}')

    assert [tool.name for tool in listing.tools] == ["a", "b", "i"]
    whys = {row.where: row.why for row in listing.rejected}
    assert list(whys) == [
        f"t.jsonl line {number}" for number in (3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14)
    ]
    for number, why in {
        3: "not JSON",
        4: "UTF-8",
        5: "expected an object",
        7: "no name",
        8: "the same tool",
        9: "not valid JSON Schema",
        10: "parameter 0 has no name",
        11: "not JSON",
        12: "expected a JSON Schema",
        13: "stands twice",
        14: "10,000,000 characters",
    }.items():
        assert why in whys[f"t.jsonl line {number}"]


def test_text_columns_of_a_csv_may_hold_json(tmp_path: Path) -> None:
    rows = [
        {
            "tool": "a",
            "parameters": '{"x": "int", "y": {"type": "str", "required": true}}',
            "required": "x",
            "tags": '["p", "q"]',
            "owner": "one",
        },
        {"tool": "b", "parameters": "", "required": "", "tags": "p, q", "owner": ""},
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")

    listing = listed(
        tmp_path,
        'path = "t.csv"\nagent = "rest"\nagent_kind = "api"\n'
        'columns = {name = "tool", parameters = "parameters", required = "required", tags = '
        '"tags", agent = "owner"}',
    )

    assert [tool.id for tool in listing.tools] == ["table/one/a", "table/rest/b"]
    first, second = listing.tools
    assert first.input_schema["properties"] == {"x": {"type": "integer"}, "y": {"type": "string"}}
    assert first.input_schema["required"] == ["y", "x"]
    assert (first.tags, second.tags) == (("p", "q"), ("p, q",))
    assert {agent.kind for agent in listing.agents} == {"api"}


def test_rows_of_a_csv_that_are_not_utf_8_are_rejected_and_ragged_ones_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_bytes(b"name,description\na,ok\nb,caf\xe9\nc,ok\n")
    listing = listed(tmp_path, 'path = "t.csv"')
    assert [tool.name for tool in listing.tools] == ["a", "c"]
    assert [row.where for row in listing.rejected] == ["t.csv row 2"]

    (tmp_path / "t.csv").write_text("name,description\na,ok\nb,too,many\n")
    with pytest.raises(SourceError, match=r"rows \[2\] have more fields"):
        listed(tmp_path, 'path = "t.csv"')


def test_parquet_fills_structs_with_nulls_and_these_are_no_parameters(tmp_path: Path) -> None:
    rows = [
        {
            "name": "a",
            "parameters": {"x": {"type": "int", "unit": None}},
            "score": 1.5,
            "when": None,
        },
        {
            "name": "b",
            "parameters": {"y": {"type": "str", "unit": "kg"}},
            "score": float("nan"),
            "when": None,
        },
        {"name": "c", "parameters": None, "score": None, "when": None},
    ]
    frame = pl.DataFrame(rows).with_columns(when=pl.date(2024, 1, 1))
    frame.write_parquet(tmp_path / "t.parquet")

    listing = listed(
        tmp_path,
        'path = "t.parquet"\ncolumns = {parameters = "parameters", annotations = ["when", '
        '"score"]}',
    )

    assert [tool.name for tool in listing.tools] == ["a", "c"]
    assert listing.tools[0].input_schema["properties"] == {"x": {"type": "integer"}}
    assert listing.tools[0].annotations == {"when": "2024-01-01", "score": 1.5}
    assert [row.where for row in listing.rejected] == ["t.parquet row 2"]  # NaN is no JSON


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.json", "t.jsonl"])
def test_files_that_are_nothing_fail_or_are_empty_and_never_crash(
    tmp_path: Path, name: str
) -> None:
    for content in (b"", b"\x00\xff\x00" * 100, b"3"):
        (tmp_path / name).write_bytes(content)
        with contextlib.suppress(SourceError):
            assert listed(tmp_path, f'path = "{name}"').tools == ()


def test_a_column_that_no_record_has_fails_and_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"has the columns \['argumnets', 'feild'\].*\['arguments', 'name'\]"
    ):
        listed_records(
            tmp_path,
            [{"name": "a", "arguments": []}],
            'columns = {parameters = "argumnets", tags = "feild"}',
        )


def test_dependencies_are_read_in_all_their_spellings(tmp_path: Path) -> None:
    depends_on = [
        "plain",
        {"name": "a", "dependence_type": "TOOL_INDIRECTLY_DEPENDS_ON"},
        {"tool": "b", "type": "parameter-directly-depends-on", "parameter": "x", "reason": "r"},
        {"name": "c", "dependence_type": "PARAMETER_DEPENDS_ON"},
        {"name": "d", "dependence_type": "WISHES_FOR"},
        {"reason": "nobody"},
        7,
    ]
    listing = listed_records(
        tmp_path,
        [{"name": "t", "depends_on": depends_on}, {"name": "u", "depends_on": None}],
        'columns = {dependencies = "depends_on"}',
    )

    assert listing.tools[0].dependencies == (
        Dependency("plain", "tool-directly-depends-on"),
        Dependency("a", "tool-indirectly-depends-on"),
        Dependency("b", "parameter-directly-depends-on", "x", "r"),
        Dependency("c", "parameter-directly-depends-on"),
    )
    assert [row.where for row in listing.rejected] == [
        f"t.json[0] depends_on[{index}]" for index in (4, 5, 6)
    ]


def test_example_queries_come_from_the_record_and_from_the_joined_file(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(
        'query,tools\nfirst,a\nsecond,"[""a"", ""b""]"\nlost,nobody\n,a\n'
    )

    listing = listed_records(
        tmp_path,
        [{"name": "a", "examples": ["own", 3, ""]}, {"name": "b", "examples": "single"}],
        'columns = {examples = "examples"}\nexamples = {path = "q.csv", tool = "tools"}',
    )

    assert [tool.examples for tool in listing.tools] == [
        ("own", "first", "second"),
        ("single", "second"),
    ]
    assert [(row.where, row.why.partition(";")[0]) for row in listing.rejected] == [
        ("q.csv row 4", "it needs a 'query' and a 'tools', both text"),
        ("q.csv", "1 example queries are for the tool 'nobody', which no record has"),
    ]


def test_the_order_of_keys_does_not_change_a_digest(tmp_path: Path) -> None:
    toml = 'columns = {parameters = "parameters", required = "required"}'
    one = {"name": "a", "parameters": {"x": "int", "y": "str"}, "required": ["x", "y"]}
    two = {"required": ["y", "x"], "parameters": {"y": "str", "x": "int"}, "name": "a"}

    assert (
        len({listed_records(tmp_path, [record], toml).tools[0].digest for record in (one, two)})
        == 1
    )


def test_wrong_options_are_refused() -> None:
    for given in (
        {"columns": {"nam": "x"}},
        {"format": "xml"},
        {"agent_kind": "robot"},
        {"examples": {}},
    ):
        with pytest.raises(ValidationError):
            source.options.model_validate({"type": "records", "path": "x", **given})


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("str", {"type": "string"}),
        ("Integer", {"type": "integer"}),
        ("float, optional", {"type": "number"}),
        ("List[str]", {"type": "array", "items": {"type": "string"}}),
        ("list of integers", {"type": "array", "items": {"type": "integer"}}),
        (
            "array<List[bool]>",
            {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}},
        ),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        ("Dict[str, int]", {"type": "object"}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("int | None", {"type": ["integer", "null"]}),
        ("str or float", {"type": ["string", "number"]}),
        ("datetime", {"type": "string", "format": "date-time"}),
        ("Any", {}),
        ("enum", {}),
        ("Currency", {"x-type": "Currency"}),
        ("List[" * 2000, {"x-type": "List[" * 2000}),
    ],
)
def test_loose_type_names_become_types_and_unknown_ones_are_kept(
    text: str, schema: dict[str, Any]
) -> None:
    assert loose_type(text) == schema


@pytest.mark.parametrize(
    ("value", "properties"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": {"type": "string"}}),
        (
            {"type": "dict", "properties": {"a": {"type": "float", "required": True}}},
            {"a": {"type": "number"}},
        ),
        (
            {"type": {"type": "str"}, "properties": {"type": "dict"}},
            {"type": {"type": "string"}, "properties": {"type": "object"}},
        ),
        (
            {"properties": {"type": "str", "description": "d"}},
            {"properties": {"type": "string", "description": "d"}},
        ),
        (
            {"city": "string", "day": "which day"},
            {"city": {"type": "string"}, "day": {"description": "which day"}},
        ),
        ({"type": "str"}, {"type": {"type": "string"}}),
        (["city", "day"], {"city": {}, "day": {}}),
        (
            [{"name": "a", "type": "str", "choices": ["x"], "example": "x"}],
            {"a": {"type": "string", "enum": ["x"], "examples": ["x"]}},
        ),
        ([{"name": "a", "type": "enum", "enum": "x, y"}], {"a": {"enum": ["x", "y"]}}),
        (
            [{"name": "a", "type": "list", "items": "str"}],
            {"a": {"type": "array", "items": {"type": "string"}}},
        ),
        ({}, {}),
        ('{"a": "int"}', {"a": {"type": "integer"}}),
    ],
)
def test_the_shape_of_parameters_is_found_out(value: Any, properties: dict[str, Any]) -> None:
    schema = loose_object(value)

    assert schema is not None
    assert schema["properties"] == properties
