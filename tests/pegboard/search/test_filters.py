"""Filters: no value can inject a condition, and NumPy and Lance apply them equally."""

import lancedb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard.errors import QueryError
from pegboard.search.filters import FIELDS, Filter

HOSTILE = [
    *("x' OR 1=1 --", "x') OR (1=1", "' OR 'a'='a", "plain' OR agent != '", "c0') OR true --"),
    *("''", "'", '"', "\\'", "a\\", "o'brien", "天気", "🙂", "a\nb", "%", "_", "${x}", "?"),
    *("NULL", "true", "]", "", " ", "library'; DROP TABLE rows"),
]
ROWS = [
    {
        "agent": value,
        "catalog": f"c{number % 3}",
        "kind": "library",
        "tags": [value, f"t{number % 2}"],
        "tool": f"{value}/{number}",
    }
    for number, value in enumerate(HOSTILE)
] + [{"agent": "plain", "catalog": "c0", "kind": "api", "tags": [], "tool": "plain/plain"}]
SCHEMA = pa.schema(
    [
        ("agent", pa.string()),
        ("catalog", pa.string()),
        ("kind", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("tool", pa.string()),
    ]
)


@pytest.fixture(scope="module")
def passing(tmp_path_factory):
    """Returns the numbers of the rows that pass a filter, in memory and in Lance."""
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    numbered = table.append_column("number", pa.array(range(len(ROWS))))  # Lance keeps no order
    stored = lancedb.connect(tmp_path_factory.mktemp("rows")).create_table("rows", numbered)

    def numbers(where):
        parsed = Filter.parse(where)
        in_memory = [number for number, passes in enumerate(parsed.mask(table)) if passes]
        by_lance = stored.search().where(parsed.sql()).to_arrow().column("number").to_pylist()
        assert in_memory == sorted(by_lance)
        return in_memory

    return numbers


def expected(field, values):
    if field == "tags":
        return [number for number, row in enumerate(ROWS) if {*values} & {*row["tags"]}]
    return [number for number, row in enumerate(ROWS) if row[field] in values]


@pytest.mark.parametrize("field", FIELDS)
def test_a_filter_matches_exactly_the_rows_with_its_value(passing, field):
    for value in HOSTILE:
        assert expected("agent", [value])
        assert passing({field: value}) == expected(field, [value]), value


@given(value=st.text(), field=st.sampled_from(["agent", "tags"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_filters_the_same_rows_in_memory_and_in_lance(passing, value, field):
    assert passing({field: sorted({value, "plain"})}) == expected(field, [value, "plain"])


def test_a_row_passes_with_any_value_of_every_field(passing):
    smile = HOSTILE.index("🙂")

    assert passing({"agent": ["plain", "🙂", "unknown"]}) == [smile, len(HOSTILE)]
    assert passing({"agent": ("plain", "🙂"), "kind": "api"}) == [len(HOSTILE)]
    assert passing({"catalog": "c0", "tags": ["t1"]}) == [*range(3, len(HOSTILE), 6)]
    assert [passing({field: []}) for field in FIELDS] == [[]] * len(FIELDS)
    assert Filter.parse(None) is Filter.parse({}) is None


def test_all_problems_of_a_filter_are_in_one_message():
    with pytest.raises(QueryError) as error:
        Filter.parse({"owner": "git", "kind": 5, "tags": ["a", None], "agent": "fine"})

    for problem in (
        "there is no field 'owner'",
        "'kind' is 5, expected a text or a list of texts",
        "'tags' is ['a', None]",
        "Fields: agent, catalog, kind, tags, tool",
    ):
        assert problem in str(error.value)
    assert "fine" not in str(error.value)


def test_agents_are_found_by_name_and_unknown_names_match_nothing():
    ids = {"git": ("kit/git", "other/git")}
    parsed = Filter.parse({"agent": ["git", "nobody"]}).with_agents(ids)

    assert parsed.allowed == {"agent": ("kit/git", "other/git", "nobody")}
    assert Filter.parse({"kind": "api"}).with_agents(ids).allowed == {"kind": ("api",)}
