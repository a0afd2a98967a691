"""Tables of tools: every format, loose schemas, example queries, and the public benchmarks."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError

from catalogs.records.source import source
from pegboard.errors import SourceError
from pegboard.records import Dependency
from pegboard.schemas.loose import loose_object, loose_type

BENCHMARKS = Path(__file__).parents[3] / "shared" / "benchmarks"
SEAL_COLUMNS = {
    "name": "api_name",
    "description": "api_description",
    "parameters": "parameters",
    "required": "required",
    "output": "responses",
    "tags": "field",
}
TOOLLINKOS_COLUMNS = {
    "parameters": "parameters",
    "dependencies": "depends_on",
    "annotations": ["func_type"],
}


@pytest.fixture
def records(listed, tmp_path):
    """A function that lists records from a JSON file."""

    def listing_of(rows, **options):
        (tmp_path / "t.json").write_text(json.dumps(rows))
        return listed("records", path="t.json", **options)

    return listing_of


@pytest.mark.skipif(
    not BENCHMARKS.is_dir(), reason="the benchmark files are not beside this checkout"
)
@pytest.mark.parametrize(
    ("path", "options", "types", "counts", "names"),
    [
        (
            "toollinkos/tools.json",
            {"columns": TOOLLINKOS_COLUMNS},
            "string 868, integer 204, number 71, boolean 42, array 12, object 9, None 1",
            {"tools": 573, "dependencies": 1496, "examples": 0, "output_schema": 0},
            ["add_apple_calendar_reminder", "yummly_remove_from_favorites"],
        ),
        (
            "seal-tools/tool.jsonl",
            {"columns": SEAL_COLUMNS},
            "string 7550, integer 1076, number 698, boolean 99",
            {"tools": 4076, "dependencies": 0, "examples": 0, "output_schema": 4076},
            ["acquireCustomers", "writeBlog"],
        ),
        (
            "metatool/plugin_des.json",
            {"examples": {"path": "metatool/example_queries.jsonl"}},
            "",
            {"tools": 199, "dependencies": 0, "examples": 1990, "output_schema": 0},
            ["ABCmouse", "wpinteract"],
        ),
        (
            "ultratool/tools.json",
            {"columns": {"parameters": "arguments", "output": "results"}},
            "string 1567, integer 148, number 50, array 43, boolean 20, object 13",
            {"tools": 436, "dependencies": 0, "examples": 0, "output_schema": 436},
            ["account_balance_query", "wsj_article_search"],
        ),
    ],
    ids=["toollinkos", "seal-tools", "metatool", "ultratool"],
)
def test_a_public_benchmark_loads_whole(listed, path, options, types, counts, names):
    listing = listed("records", BENCHMARKS, path=path, **options)

    tools = listing.tools
    found = Counter(
        str(item.get("type")) for tool in tools for item in tool.input_schema["properties"].values()
    )
    assert listing.rejected == ()
    assert ", ".join(f"{name} {count}" for name, count in found.most_common()) == types
    assert {
        "tools": len(tools),
        "dependencies": sum(len(tool.dependencies) for tool in tools),
        "examples": sum(len(tool.examples) for tool in tools),
        "output_schema": sum(bool(tool.output_schema) for tool in tools),
    } == counts
    assert [tools[0].name, tools[-1].name] == names


ROWS = [{"name": name, "description": f"The {name}."} for name in "abc"]


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("list.json", {}),
        ("lines.ndjson", {}),
        ("texts.json", {}),
        ("objects.json", {}),
        ("table.csv", {}),
        ("table.tsv", {}),
        ("table.parquet", {}),
        ("part.json", {"at": "data.tools"}),
        ("*.tsv", {"format": "tsv"}),
    ],
)
def test_records_are_read_from_every_format_and_shape(listed, tmp_path, file, options):
    values = {
        "list": ROWS,
        "part": {"data": {"tools": ROWS}},
        "texts": {row["name"]: row["description"] for row in ROWS},
        "objects": {row["name"]: {"description": row["description"]} for row in ROWS},
    }
    for name, value in values.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "lines.ndjson").write_text("\n".join(map(json.dumps, ROWS)))
    pl.DataFrame(ROWS).write_csv(tmp_path / "table.csv")
    pl.DataFrame(ROWS).write_csv(tmp_path / "table.tsv", separator="\t")
    pl.DataFrame(ROWS).write_parquet(tmp_path / "table.parquet")

    listing = listed("records", path=file, **options)

    assert [{"name": tool.name, "description": tool.description} for tool in listing.tools] == ROWS


def test_broken_lines_are_rejected_one_by_one(listed, tmp_path):
    broken = {
        b'{"name": ': "not JSON",
        b'{"name": "\xff"}': "UTF-8",
        b"[1]": "expected an object",
        b'{"description": "no name"}': "no name",
        b'{"name": "a"}': "the same tool",
        b'{"name": "c", "parameters": {"type": "object", "properties": {"x": {"type": 5}}}}': (
            "not valid JSON Schema"
        ),
        b'{"name": "d", "parameters": [{"type": "string"}]}': "parameter 0 has no name",
        b'{"name": "e", "parameters": "not json"}': "not JSON",
        b'{"name": "f", "parameters": 5}': "expected a JSON Schema",
        b'{"name": "g", "parameters": [{"name": "x"}, {"name": "x"}]}': "the parameter 'x' twice",
        b'{"name": "h", "description": "%s"}'
        % (b"x" * 10_000_000): "more than 4,000,000 characters",
    }
    lines = [b'{"name": "a"}', b"", *broken, b'{"name": "i"}']
    (tmp_path / "t.jsonl").write_bytes(b"\n".join(lines))

    listing = listed("records", path="t.jsonl", columns={"parameters": "parameters"})

    assert [tool.name for tool in listing.tools] == ["a", "i"]
    assert [row.where for row in listing.rejected] == [
        f"t.jsonl line {number}" for number in range(3, 3 + len(broken))
    ]
    for row, why in zip(listing.rejected, broken.values(), strict=True):
        assert why in row.why


def test_text_columns_of_a_csv_may_hold_json(listed, tmp_path):
    (tmp_path / "t.csv").write_text(
        "tool,parameters,required,tags,owner\n"
        'a,"{""x"": ""int"", ""y"": {""type"": ""str"", ""required"": true}}",x,'
        '"[""p"", ""q""]",one\n'
        'b,,,"p, q",\n'
    )
    columns = {name: name for name in ("parameters", "required", "tags")}
    columns |= {"name": "tool", "agent": "owner"}

    listing = listed("records", path="t.csv", agent="rest", agent_kind="api", columns=columns)

    assert [tool.id for tool in listing.tools] == ["kit/one/a", "kit/rest/b"]
    first, second = listing.tools
    assert first.input_schema["properties"] == {"x": {"type": "integer"}, "y": {"type": "string"}}
    assert first.input_schema["required"] == ["x", "y"]
    assert (first.tags, second.tags) == (("p", "q"), ("p, q",))
    assert {agent.kind for agent in listing.agents} == {"api"}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_broken_rows_of_a_csv_are_rejected_one_by_one(listed, tmp_path, end):
    broken = {
        b"b,caf\xe9": "not valid UTF-8",
        b"c,too,many": "3 fields, and the header 2",
        b"d": "1 fields, and the header 2",
        b'e,"quoted" twice': "it is not CSV",
    }
    rows = [b"name,description", b"", b"a,ok", *broken, b'f,"two\nlines"']
    (tmp_path / "t.csv").write_bytes(end.join(rows))

    listing = listed("records", path="t.csv")

    assert {tool.name: tool.description for tool in listing.tools} == {"a": "ok", "f": "two\nlines"}
    for number, (row, why) in enumerate(zip(listing.rejected, broken.values(), strict=True), 2):
        assert row.where == f"t.csv row {number}"
        assert why in row.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('name,description\na,ok\nb,"open\nc,ok\n', "a quote in row 2, line 3, that is never"),
        ("name,name\na,b\n", r"columns \['name'\] twice"),
    ],
)
def test_a_csv_whose_rows_cannot_be_told_apart_is_unreadable(listed, tmp_path, text, why):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SourceError, match=why):
        listed("records", path="t.csv")


def test_parquet_fills_structs_with_nulls_and_these_are_no_parameters(listed, tmp_path):
    rows = [
        {"name": "a", "parameters": {"x": {"type": "int", "unit": None}}, "score": 1.5},
        {"name": "b", "parameters": {"y": {"type": "str", "unit": "kg"}}, "score": float("nan")},
        {"name": "c", "parameters": None, "score": None},
    ]
    frame = pl.DataFrame(rows).with_columns(when=pl.date(2024, 1, 1))
    frame.write_parquet(tmp_path / "t.parquet")
    columns = {"parameters": "parameters", "annotations": ["when", "score"]}

    listing = listed("records", path="t.parquet", columns=columns)

    assert [tool.name for tool in listing.tools] == ["a", "c"]
    assert listing.tools[0].input_schema["properties"] == {"x": {"type": "integer"}}
    assert listing.tools[0].annotations == {"when": "2024-01-01", "score": 1.5}
    assert [row.where for row in listing.rejected] == ["t.parquet row 2"]  # NaN is no JSON


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_file_of_too_many_records_is_unreadable(listed, tmp_path, monkeypatch, name):
    pl.DataFrame(ROWS).write_csv(tmp_path / "table.csv")
    pl.DataFrame(ROWS).write_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr("catalogs.records.source.MAX_RECORDS", 2)

    with pytest.raises(SourceError, match=r"has more than .* records"):
        listed("records", path=name)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.json", "t.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00" * 100, b"3"])
def test_a_file_without_records_fails_or_is_empty(listed, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    try:
        listing = listed("records", path=name)
    except SourceError:
        return
    assert listing.tools == ()


def test_a_column_that_no_record_has_fails_and_names_those_there_are(records):
    with pytest.raises(
        SourceError, match=r"has the columns \['argumnets', 'feild'\].*\['arguments', 'name'\]"
    ):
        records(
            [{"name": "a", "arguments": []}],
            columns={"parameters": "argumnets", "tags": "feild"},
        )


def test_dependencies_are_read_in_all_their_spellings(records):
    depends_on = [
        "plain",
        {"name": "a", "dependence_type": "TOOL_INDIRECTLY_DEPENDS_ON"},
        {"tool": "b", "type": "parameter-directly-depends-on", "parameter": "x", "reason": "r"},
        {"name": "c", "dependence_type": "PARAMETER_DEPENDS_ON"},
        {"name": "d", "dependence_type": "WISHES_FOR"},
        {"reason": "nobody"},
        7,
    ]
    rows = [{"name": "t", "depends_on": depends_on}, {"name": "u", "depends_on": None}]

    listing = records(rows, columns={"dependencies": "depends_on"})

    assert listing.tools[0].dependencies == (
        Dependency("plain", "tool-directly-depends-on"),
        Dependency("a", "tool-indirectly-depends-on"),
        Dependency("b", "parameter-directly-depends-on", "x", "r"),
        Dependency("c", "parameter-directly-depends-on"),
    )
    (row,) = listing.rejected
    assert (row.where, row.why.partition(",")[0]) == (
        "t.json[0] depends_on",
        "3 of its dependencies are left out",
    )


def test_example_queries_come_from_the_record_and_from_the_joined_file(records, tmp_path):
    (tmp_path / "q.csv").write_text(
        'query,tools\nfirst,a\nsecond,"[""a"", ""b""]"\nlost,nobody\n,a\n'
    )
    rows = [{"name": "a", "examples": ["own", 3, ""]}, {"name": "b", "examples": "single"}]
    joined = {"path": "q.csv", "tool": "tools"}

    listing = records(rows, columns={"examples": "examples"}, examples=joined)

    assert [tool.examples for tool in listing.tools] == [
        ("own", "first", "second"),
        ("single", "second"),
    ]
    assert [(row.where, row.why.partition(";")[0]) for row in listing.rejected] == [
        ("q.csv row 4", "it needs a 'query' and a 'tools', both text"),
        ("q.csv", "1 example queries are for the tool 'nobody', which no record has"),
    ]


@pytest.mark.parametrize(
    "options",
    [{"columns": {"nam": "x"}}, {"format": "xml"}, {"agent_kind": "robot"}, {"examples": {}}],
)
def test_wrong_options_are_refused(options):
    with pytest.raises(ValidationError):
        source.options.model_validate({"type": "records", "path": "x", **options})


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
        (f"list of{' ' * 900}int", {"type": "array", "items": {"type": "integer"}}),
        (f"a{' ' * 1_000_000}b", {"x-type": f"a{' ' * 1_000_000}b"}),
    ],
)
def test_loose_type_names_become_types_and_unknown_ones_are_kept(text, schema):
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
def test_the_shape_of_parameters_is_detected(value, properties):
    schema = loose_object(value)

    assert schema is not None
    assert schema["properties"] == properties
