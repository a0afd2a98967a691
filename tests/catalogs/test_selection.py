"""`include` and `exclude` of a catalog list what the user wants, and count the rest."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from catalogs.shared.kinds import source_kind
from pegboard.errors import ConfigurationError, SourceError
from tasks.settings.configuration import check_configuration

CASES = Path(__file__).parents[3] / "shared" / "cases" / "ingest"


def operation(name, **members):
    return {"operationId": name, "summary": name, "responses": {"200": {}}, **members}


SHOP = {
    "openapi": "3.0.3",
    "info": {"title": "Shop"},
    "paths": {
        "/orders": {
            "get": operation("listOrders", tags=["orders"]),
            "post": operation("placeOrder", tags=["orders"], **{"x-audience": ["shop", "staff"]}),
        },
        "/orders/{id}": {
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "string"}}],
            "delete": operation("cancelOrder", tags=["orders", "staff only"]),
        },
        "/admin/cache": {
            "x-team": {"name": "platform", "rank": 1},
            "post": operation("flushCache", tags=["admin"]),
        },
        "/v1/orders": {"get": operation("listOrdersOnce", tags=["orders"], deprecated=True)},
    },
}
NAMES = {"listOrders", "placeOrder", "cancelOrder", "flushCache", "listOrdersOnce"}


@pytest.fixture
def shop(listed, tmp_path):
    """A function that lists the shop with conditions."""
    (tmp_path / "shop.json").write_text(json.dumps(SHOP))
    return lambda **options: listed("openapi", path="shop.json", **options)


def names(listing):
    return {tool.name for tool in listing.tools}


@pytest.mark.parametrize(
    ("conditions", "left_out"),
    [
        ({"tags": ["admin"]}, {"flushCache"}),
        ({"tags": "staff only"}, {"cancelOrder"}),
        ({"paths": ["/admin/*", "/v?/*"]}, {"flushCache", "listOrdersOnce"}),
        ({"paths": ["/orders/{id}"]}, {"cancelOrder"}),
        ({"methods": ["delete", "POST"]}, {"cancelOrder", "placeOrder", "flushCache"}),
        ({"names": ["list*", "cancelOrder"]}, {"listOrders", "listOrdersOnce", "cancelOrder"}),
        ({"extensions": ["x-audience"]}, {"placeOrder"}),
        ({"extensions": {"x-audience": "staff"}}, {"placeOrder"}),
        ({"extensions": {"x-team": {"name": "plat*"}}}, {"flushCache"}),
        ({"extensions": {"x-team": {"rank": 1}}}, {"flushCache"}),
        ({"annotations": ["deprecated"]}, {"listOrdersOnce"}),
        ({"annotations": {"destructiveHint": True}}, {"cancelOrder"}),
        ({"tags": ["admin"], "methods": ["DELETE"]}, {"flushCache", "cancelOrder"}),
    ],
)
def test_what_any_condition_of_exclude_matches_is_left_out(shop, conditions, left_out):
    listing = shop(exclude=conditions)

    assert names(listing) == NAMES - left_out


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"tags": ["orders"], "methods": ["GET"]}, {"listOrders", "listOrdersOnce"}),
        ({"annotations": {"readOnlyHint": True}}, {"listOrders", "listOrdersOnce"}),
        ({"extensions": {"x-audience": ["shop", "partner"]}}, {"placeOrder"}),
        ({"names": ["listOrders"]}, {"listOrders"}),
    ],
)
def test_only_what_every_condition_of_include_matches_is_listed(shop, conditions, expected):
    listing = shop(include=conditions)

    assert names(listing) == expected


def test_what_is_left_out_is_counted_by_condition(shop):
    listing = shop(include={"paths": "/*orders*"}, exclude={"methods": ["DELETE"]})

    assert [(row.kind, row.where, row.why) for row in listing.notices] == [
        (
            "skipped",
            "kit",
            "1 tool left out by `exclude.methods` ('DELETE'), the first is "
            "shop.json DELETE /orders/{id}",
        ),
        (
            "skipped",
            "kit",
            "1 tool left out by `include.paths` ('/*orders*'), the first is "
            "shop.json POST /admin/cache",
        ),
    ]


def test_an_operation_that_is_left_out_is_not_rejected_for_its_faults(listed_document, listed):
    document = json.loads(json.dumps(SHOP))
    document["paths"]["/admin/cache"]["post"]["parameters"] = [{"$ref": "#/nowhere"}]
    assert [row.where for row in listed_document(document).rejected] == [
        "api.json POST /admin/cache"
    ]

    listing = listed("openapi", path="api.json", exclude={"tags": ["admin"]})

    assert not listing.rejected
    assert [row.where for row in listing.notices] == ["kit"]


def test_a_pattern_that_matches_nothing_names_what_there_is(shop):
    with pytest.raises(SourceError) as raised:
        shop(exclude={"tags": ["admni", "orders"], "extensions": ["x-teams"]})

    assert str(raised.value) == (
        "`exclude.tags` has 'admni', which matches no tool; there are 'admin', 'staff only', "
        "'orders'; `exclude.extensions` has 'x-teams', which matches no tool; there are 'x-team', "
        "'x-audience'. Correct these patterns, or remove them; until then the catalog keeps its "
        "last good tools."
    )


def test_internal_operations_count_as_matched_and_are_left_out_once(listed):
    if not CASES.is_dir():
        pytest.skip("the inputs from public reports are not here")
    path = str(CASES / "oa" / "o10.yaml")

    listing = listed("openapi", path=path, exclude={"paths": ["/debug/*"]})

    assert names(listing) == {"listOrders", "listOrdersV1"}
    assert [row.why for row in listing.notices] == [
        f"1 tool left out by `exclude.paths` ('/debug/*'), the first is {path} POST /debug/flush"
    ]


def test_tools_of_a_dump_are_chosen_by_annotation_name_and_record(listed, tmp_path):
    tools = [
        {"name": "read", "annotations": {"readOnlyHint": True}},
        {"name": "write", "_meta": {"audience": "staff"}},
        {"name": "drop", "annotations": {"destructiveHint": True}},
    ]
    (tmp_path / "dump.json").write_text(json.dumps({"tools": tools}))

    def names_with(**options):
        return names(listed("mcp-dump", path="dump.json", **options))

    assert names_with(include={"annotations": {"readOnlyHint": True}}) == {"read"}
    assert names_with(exclude={"annotations": ["destructiveHint"]}) == {"read", "write"}
    assert names_with(exclude={"extensions": {"_meta": {"audience": "staff"}}}) == {"read", "drop"}


def test_rows_of_a_table_are_chosen_by_tag_but_not_by_that_of_the_catalog(listed, tmp_path):
    rows = [{"name": "a", "group": ["x"]}, {"name": "b", "group": ["y"]}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    options = {"path": "rows.json", "columns": {"tags": "group"}, "tags": ["all"]}

    assert names(listed("records", **options, exclude={"tags": ["x"]})) == {"b"}
    with pytest.raises(SourceError, match="'all', which matches no tool"):
        listed("records", **options, exclude={"tags": ["all"]})
    with pytest.raises(
        SourceError, match="'/a\\*', which matches no tool; the tools have no paths"
    ):
        listed("records", **options, include={"paths": ["/a*"]})


def test_a_file_that_cannot_be_read_does_not_make_a_pattern_wrong(listed, tmp_path):
    (tmp_path / "a.json").write_text('{"tools": [{"name": "a"}]}')
    (tmp_path / "b.json").write_text("{")

    listing = listed("mcp-dump", path="*.json", exclude={"names": ["b"]})

    assert names(listing) == {"a"}
    assert len(listing.unreadable) == 1


def test_a_list_in_include_of_live_servers_still_says_what_else_to_list():
    options = source_kind("mcp").options
    servers = {"type": "mcp", "servers": {}}

    earlier = options.model_validate(servers | {"include": ["prompts"]})
    both = options.model_validate(
        servers | {"others": ["prompts"], "include": {"names": ["search*"]}}
    )

    assert earlier.others == both.others == ("prompts",)
    assert earlier.include is None
    assert both.include.names == ("search*",)
    # What a build passes to the process that lists the source.
    again = options.model_validate(both.model_dump(mode="json", exclude_unset=True))
    assert again == both


@pytest.mark.parametrize(
    ("kind", "conditions", "message"),
    [
        ("openapi", {"methods": ["GETT"]}, "'GETT' is not one of CONNECT, DELETE"),
        ("openapi", {"paths": ["admin"]}, "begin it with / or \\*"),
        ("openapi", {"tags": [" "]}, "at least 1 character"),
        ("functions", {"path": ["/a"]}, "Extra inputs"),
    ],
)
def test_conditions_that_can_never_match_are_refused(kind, conditions, message):
    for option in ("include", "exclude"):
        with pytest.raises(ValidationError, match=message):
            source_kind(kind).options.model_validate(
                {"type": kind, "path": "a", option: conditions}
            )


def test_a_wrong_condition_is_reported_with_its_place():
    catalog = {"type": "openapi", "path": "a", "exclude": {"path": ["/a"], "methods": ["GETT"]}}
    tables = {"board": {"uri": "board"}, "catalogs": {"shop": catalog}}

    with pytest.raises(ConfigurationError) as raised:
        check_configuration("pegboard.toml", tables)

    assert "catalogs.shop.exclude.methods: 'GETT' is not one of CONNECT, DELETE" in str(
        raised.value
    )
    assert "catalogs.shop.exclude.path: no such setting" in str(raised.value)
