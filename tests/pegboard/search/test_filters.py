"""Filters: typed, compared and never interpreted, and the same whether NumPy or Lance applies
them.
"""

import lancedb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.errors import QueryError
from pegboard.search.filters import Filter

HOSTILE = [
    "x' OR 1=1 --",
    "x') OR (1=1",
    "' OR 'a'='a",
    "''",
    "'",
    '"',
    "\\'",
    "a\\",
    "o'brien",
    "天気",
    "🙂",
    "a\nb",
    "%",
    "_",
    "${x}",
    "?",
    "NULL",
    "true",
    "]",
    "",
    " ",
]
ROWS = [
    {
        "agent": value,
        "catalog": f"c{number % 3}",
        "kind": "library",
        "tags": [value, f"t{number % 2}"],
    }
    for number, value in enumerate(HOSTILE)
] + [{"agent": "plain", "catalog": "c0", "kind": "api", "tags": []}]
SCHEMA = pa.schema(
    [
        ("agent", pa.string()),
        ("catalog", pa.string()),
        ("kind", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    # A column for the number, since Lance gives rows in no promised order.
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA).append_column(
        "number", pa.array(range(len(ROWS)))
    )
    return table, lancedb.connect(tmp_path_factory.mktemp("rows")).create_table("rows", table)


def found(rows, where):
    """The numbers of the rows that pass, found both ways."""
    table, stored = rows
    chosen = Filter.parse(where)
    in_memory = [number for number, passed in enumerate(chosen.mask(table).tolist()) if passed]
    by_lance = sorted(stored.search().where(chosen.sql()).to_arrow().column("number").to_pylist())
    assert in_memory == by_lance
    return in_memory


@pytest.mark.parametrize("field", ["agent", "tags"])
@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_finds_exactly_the_rows_that_have_it(rows, field, value):
    assert found(rows, {field: value}) == [HOSTILE.index(value)]


@pytest.mark.parametrize("field", ["agent", "catalog", "kind", "tags"])
@pytest.mark.parametrize(
    "value",
    ["x' OR 1=1 --", "plain' OR agent != '", "c0') OR true --", "library'; DROP TABLE rows"],
)
def test_an_injection_finds_nothing_more_than_its_own_text(rows, field, value):
    assert found(rows, {field: value}) == [
        number
        for number, row in enumerate(ROWS)
        if value == row[field] or value in row["tags"] * (field == "tags")
    ]


def test_one_field_takes_any_of_its_values_and_all_fields_must_pass(rows):
    assert found(rows, {"agent": ["plain", "🙂", "unknown"]}) == [HOSTILE.index("🙂"), len(HOSTILE)]
    assert found(rows, {"agent": ("plain", "🙂"), "kind": "api"}) == [len(HOSTILE)]
    assert found(rows, {"catalog": "c0", "tags": ["t1"]}) == [
        number for number in range(len(HOSTILE)) if number % 3 == 0 and number % 2 == 1
    ]


@pytest.mark.parametrize("field", ["agent", "catalog", "kind", "tags"])
def test_an_empty_list_finds_nothing(rows, field):
    assert found(rows, {field: []}) == []


@given(value=st.text(), field=st.sampled_from(["agent", "tags"]))
@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_any_text_is_compared_alike_in_memory_and_by_lance(rows, value, field):
    wanted = {value, "plain"}

    assert found(rows, {field: sorted(wanted)}) == [
        number
        for number, row in enumerate(ROWS)
        if wanted & {*(row["tags"] if field == "tags" else [row["agent"]])}
    ]


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_filter_is_none(nothing):
    assert Filter.parse(nothing) is None


def test_all_problems_of_a_filter_are_in_one_message():
    with pytest.raises(QueryError) as error:
        Filter.parse({"owner": "git", "kind": 5, "tags": ["a", None], "agent": "fine"})

    message = str(error.value)
    assert "there is no field 'owner'" in message
    assert "'kind' is 5, expected a text or a list of texts" in message
    assert "'tags' is ['a', None]" in message
    assert "Fields: agent, catalog, kind, tags" in message
    assert "fine" not in message


def test_agents_may_be_named_and_an_unknown_name_finds_nothing(rows):
    chosen = Filter.parse({"agent": ["git", "nobody"]}).with_agents(
        {"git": ("kit/git", "other/git")}
    )

    assert chosen.allowed == {"agent": ("kit/git", "other/git", "nobody")}
    assert Filter.parse({"kind": "api"}).with_agents({"git": ("kit/git",)}).allowed == {
        "kind": ("api",)
    }
