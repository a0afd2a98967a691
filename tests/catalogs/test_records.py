"""Tables of tools: every format, loose schemas and example queries."""

import json

import polars as pl
import pytest

from catalogs.records.source import RecordsOptions, read_rows
from pegboard.errors import SourceError
from pegboard.records import Dependency
from pegboard.schemas.loose import loose_object, loose_type
from tests.linear import grows_too_fast


@pytest.fixture
def records(listed, tmp_path):
    """A function that lists records from a JSON file."""

    def listing_of(rows, **options):
        (tmp_path / "t.json").write_text(json.dumps(rows))
        return listed("records", path="t.json", **options)

    return listing_of


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
    ],
)
def test_records_are_read_from_every_format(listed, tmp_path, file, options):
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


def test_each_invalid_line_is_rejected_alone(listed, tmp_path):
    broken = {
        b'{"name": ': "not JSON",
        b'{"name": "\xff"}': "UTF-8",
        b"[1]": "expected an object",
        b'{"description": "no name"}': "no name",
        b'{"name": "a"}': "the same tool",
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
    a, b = listing.tools
    assert a.input_schema["properties"] == {"x": {"type": "integer"}, "y": {"type": "string"}}
    assert a.input_schema["required"] == ["x", "y"]
    assert (a.tags, b.tags) == (("p", "q"), ("p, q",))
    assert {agent.kind for agent in listing.agents} == {"api"}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_invalid_row_of_a_csv_is_rejected_alone(listed, tmp_path, end):
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


def test_the_columns_of_a_csv_are_compared_in_linear_time(tmp_path):
    file = tmp_path / "t.csv"

    def read(header):
        file.write_text(f"{header}\n", "utf-8")
        list(read_rows(file, RecordsOptions(type="records", path="t.csv")))

    assert not grows_too_fast(read, lambda length: ",".join(f"c{n}" for n in range(length)))


SEPARATED = {
    "semicolons.csv": "name;description\nadd;Adds, at once\n",
    "tabs.csv": "name\tdescription\nadd\tAdds, at once\n",
    "bars.csv": "name|description\nadd|Adds, at once\n",
    "quoted.csv": '"name";"description"\r\n"add";"Adds, at once"\r\n',
    "declared.csv": "sep=;\r\nname;description\r\nadd;Adds, at once\r\n",
    "commas.tsv": 'name,description\nadd,"Adds, at once"\n',
    "commas.csv": 'name,description;\nadd,"Adds, at once"\n',
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("file", SEPARATED)
def test_a_table_is_read_with_the_separator_of_its_header(listed, tmp_path, file, encoding):
    (tmp_path / file).write_bytes(SEPARATED[file].encode(encoding))
    columns = {"description": "description;"} if file == "commas.csv" else {}

    (tool,) = listed("records", path=file, columns=columns).tools

    assert (tool.name, tool.description) == ("add", "Adds, at once")


def test_a_table_of_one_column_needs_no_separator(listed, tmp_path):
    (tmp_path / "t.csv").write_text("name\nadd\nsub\n")

    assert [tool.name for tool in listed("records", path="t.csv").tools] == ["add", "sub"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('name,description\na,ok\nb,"open\nc,ok\n', "a quote in row 2, line 3, that is never"),
        ("name,name\na,b\n", r"columns \['name'\] twice"),
    ],
)
def test_a_csv_whose_rows_cannot_be_separated_is_unreadable(listed, tmp_path, text, why):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SourceError, match=why):
        listed("records", path="t.csv")


def test_nulls_that_parquet_adds_to_structs_do_not_become_parameters(listed, tmp_path):
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
    assert [row.where for row in listing.rejected] == ["t.parquet row 2"]  # NaN is not JSON


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_file_of_too_many_records_is_unreadable(listed, tmp_path, monkeypatch, name):
    pl.DataFrame(ROWS).write_csv(tmp_path / "table.csv")
    pl.DataFrame(ROWS).write_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr("catalogs.records.source.MAX_RECORDS", 2)

    with pytest.raises(SourceError, match=r"has more than .* records"):
        listed("records", path=name)


def test_a_column_that_no_record_has_is_an_error_that_lists_the_existing_columns(records):
    with pytest.raises(
        SourceError, match=r"columns \['argumnets', 'feild'\].*\['arguments', 'name'\].* columns = "
    ):
        records(
            [{"name": "a", "arguments": []}],
            columns={"parameters": "argumnets", "tags": "feild"},
        )


def test_dependencies_are_names_or_objects_with_a_type(records):
    depends_on = [
        "plain",
        {"name": "a", "dependence_type": "TOOL_INDIRECTLY_DEPENDS_ON"},
        {
            "name": "b",
            "dependence_type": "parameter-directly-depends-on",
            "parameter_name": "x",
            "reason": "r",
        },
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
    (row,) = listing.notices
    assert (row.kind, row.where, row.why.partition(",")[0]) == (
        "cut",
        "t.json[0] depends_on",
        "3 of its dependencies are left out",
    )


def test_examples_of_a_record_are_its_non_blank_texts(records):
    rows = [{"name": "a", "examples": ["own", 3, ""]}, {"name": "b", "examples": "single"}]

    listing = records(rows, columns={"examples": "examples"})

    assert [tool.examples for tool in listing.tools] == [("own",), ("single",)]


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("str", {"type": "string"}),
        ("float, optional", {"type": "number"}),
        ("list of integers", {"type": "array", "items": {"type": "integer"}}),
        (
            "array<List[bool]>",
            {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}},
        ),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("int | None", {"type": ["integer", "null"]}),
        ("str or float", {"type": ["string", "number"]}),
        ("datetime", {"type": "string", "format": "date-time"}),
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
def test_the_format_of_parameters_is_detected(value, properties):
    schema = loose_object(value)

    assert schema is not None
    assert schema["properties"] == properties
