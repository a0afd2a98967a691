"""OpenAPI documents of public reports: what a user expects. See `shared/cases/README.md`."""

from pathlib import Path

import pytest

from pegboard.errors import SourceError

CASES = Path(__file__).parents[3] / "shared" / "cases" / "ingest"


@pytest.fixture
def reported(listed):
    """A function that lists a reported document, by its path in the folder of the cases."""
    if not CASES.is_dir():
        pytest.skip(f"the reported cases are not at {CASES}")
    return lambda path, **options: listed("openapi", CASES, path=path, **options)


def tools(listing):
    assert (listing.rejected, listing.failures, listing.unreadable) == ((), (), ())
    return {tool.name: tool for tool in listing.tools}


def test_operations_of_one_id_have_names_of_their_own_and_it_is_said_once(reported):
    listing = reported("oa/o1.json")

    assert set(tools(listing)) == {
        *(f"{method}_relay_by_endpoint" for method in ("get", "post", "delete")),
        *("get_jobs_search", "get_flows_search"),
    }
    assert [notice.kind for notice in listing.notices] == ["renamed"]


@pytest.mark.parametrize(
    ("path", "expected", "count"),
    [
        ("oa/o10.yaml", {"listOrders", "listOrdersV1"}, 1),
        ("oa2/hidden.yaml", set(), 3),
    ],
)
def test_internal_operations_are_left_out_and_counted(reported, path, expected, count):
    listing = reported(path)

    assert set(tools(listing)) == expected
    assert [(notice.kind, notice.count) for notice in listing.notices] == [("skipped", count)]
    assert len(tools(reported(path, internal=True))) == len(expected) + count


def test_operations_are_left_out_by_tag_path_and_extension(reported):
    def names(**exclude):
        return set(tools(reported("oa/o10.yaml", exclude=exclude, internal=True)))

    assert names(tags=["admin"]) == {"listOrders", "listOrdersV1"}
    assert names(paths=["/v1/*"]) == {"listOrders", "flushCaches"}
    assert names(extensions=["x-internal"]) == {"listOrders", "listOrdersV1"}


def test_numbers_and_booleans_of_yaml_are_text_where_text_is_meant(reported):
    listed = tools(reported("oa/o13.yaml"))

    assert set(listed) == {"a", "b", "c", "d", "12"}
    assert listed["a"].description == "404"
    assert listed["b"].tags == ("2024", "v1")
    assert listed["c"].input_schema["required"] == ["q"]
    assert list(listed["d"].input_schema["properties"]) == ["7"]


def test_loosely_written_yaml_costs_no_operation(reported):
    listing = reported("oa2/yaml.yaml")

    listed = tools(listing)
    assert set(listed) == set("abcdefgh")
    assert listed["b"].tags == ("users",)
    assert listed["f"].input_schema["required"] == ["q"]
    assert listed["g"].input_schema["required"] == ["id"]
    assert [notice.kind for notice in listing.notices] == ["repaired"]


def test_files_and_nulls_of_swagger_2_are_kept(reported):
    listed = tools(reported("oa/o15.json"))

    upload = listed["upload"].input_schema
    assert upload["required"] == ["one"]
    assert upload["properties"]["docs"]["items"] == {"type": "string", "format": "binary"}
    note = listed["setNote"].input_schema["properties"]
    assert note["text"] == {"type": ["string", "null"]}


def test_values_and_variables_of_servers_are_kept(reported):
    listed = tools(reported("oa/o16.json"))

    status = listed["listSubscriptions"].input_schema["properties"]["status"]
    assert status["enum"] == ["active", "past_due", "on_hold", "canceled"]
    assert listed["listSubscriptions"].annotations["baseUrl"] == "https://eu.big.example/v3"


def test_a_document_of_webhooks_alone_says_what_is_missing(reported):
    with pytest.raises(SourceError, match="has no `paths`, so it offers no operations"):
        reported("oa/o19.yaml")
