"""Dependencies are inferred from names, schemas, paths and descriptions, and near-misses give
none."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pegboard.records import Edge, Tool
from tasks.dependencies.infer import Need
from tests.tasks.dependencies.made_tools import STRING, infer_edges, make_board, make_tool, triples

BOOLEAN = {"type": "boolean"}
DIRECT = "parameter-directly-depends-on"
INDIRECT = "parameter-indirectly-depends-on"

ORDERS = [
    make_tool("search_orders", "customer_name", description="Searches the orders of a customer."),
    make_tool("get_order", "order_id", description="Returns an order."),
    make_tool("cancel_order", "id", description="Cancels an order."),
    make_tool("track_shipment", "shipment_id", description="Tracks a shipment."),
]
CALENDAR = [
    make_tool("search_contacts", "name"),
    make_tool("get_current_date", description="Returns the current date."),
    make_tool("create_event", "title", "start_date", "contact_id"),
    make_tool("list_events", "date", required=[]),
]
RECIPES = [
    make_tool("acme_get_recipe", "title"),
    make_tool("zeta_get_recipe", "title"),
    make_tool("zeta_get_ingredients", "recipe_id"),
]
LOGINS = [
    make_tool("acme_login", "email"),
    make_tool("login_to_zeta", "email"),
    make_tool("acme_pay", "session_id"),
    make_tool("call_zeta_taxi", "street"),
    make_tool("validate_email", "email", description="Checks if a text is a valid email address."),
]
AUTHORISATION = [
    make_tool("authorize_access", "user"),
    make_tool("get_access_report"),
    make_tool("upload", "auth_token"),
]
SWITCH = [
    make_tool("get_bluetooth_status", description="Returns whether Bluetooth is on."),
    make_tool("set_bluetooth_status", properties={"on": BOOLEAN}),
    make_tool("list_bluetooth_devices"),
    make_tool("set_volume", properties={"level": {"type": "integer"}}),
    make_tool("get_volume"),
]
PAGES = [
    make_tool("find-pages", "text"),
    make_tool("list_pages"),
    make_tool(
        "read",
        properties={"page_id": {"description": "The page, as returned by `find-pages`."}},
    ),
    make_tool("publish", description="Call find-pages first."),
]


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (
            ORDERS,
            {
                ("get_order", "order_id", "search_orders"),
                ("cancel_order", "id", "search_orders"),
            },
        ),
        (
            CALENDAR,
            {
                ("create_event", "contact_id", "search_contacts"),
                ("create_event", "start_date", "get_current_date"),
                ("list_events", "date", "get_current_date"),
            },
        ),
        (RECIPES, {("zeta_get_ingredients", "recipe_id", "zeta_get_recipe")}),
        (
            LOGINS,
            {
                ("acme_pay", "session_id", "acme_login"),
                ("call_zeta_taxi", None, "login_to_zeta"),
                ("acme_login", "email", "validate_email"),
                ("login_to_zeta", "email", "validate_email"),
            },
        ),
        (AUTHORISATION, {("upload", "auth_token", "authorize_access")}),
        (
            SWITCH,
            {
                ("get_bluetooth_status", None, "set_bluetooth_status"),
                ("list_bluetooth_devices", None, "get_bluetooth_status"),
            },
        ),
        (PAGES, {("read", "page_id", "find-pages"), ("publish", None, "find-pages")}),
    ],
)
def test_edges_are_inferred_from_names_schemas_and_descriptions(tools, expected):
    edges = infer_edges(tools)

    assert triples(edges) == expected
    assert all(edge.origin == "inferred" and edge.reason and edge.evidence for edge in edges)


@pytest.mark.parametrize(
    ("asking", "other"),
    [
        (make_tool("rename_file", "name"), make_tool("get_name")),
        (make_tool("get_robot", "robot_id"), make_tool("get_robot_status", "serial")),
        (make_tool("get_order", "order_id"), make_tool("pay_order", "order_id")),
        (make_tool("get_order", "order_id"), make_tool("describe_order", "order_id")),
        (make_tool("greet", "birth_date"), make_tool("get_current_date")),
        (make_tool("delete_volume"), make_tool("get_volume")),
        (make_tool("invite", "username"), make_tool("list_users")),
        (make_tool("create_order", "order_id"), make_tool("search_orders", "text")),
        (
            make_tool("notify", properties={"email_news": BOOLEAN}),
            make_tool("validate_email", "email"),
        ),
        (
            make_tool("paint", properties={"hue": {"enum": ["red"]}}),
            make_tool("search_hue", "text"),
        ),
        (make_tool("read", "page"), make_tool("search_page", "text", agent="wiki/pages")),
        (make_tool("buy", "ticker", agent="us/a"), make_tool("load_tickers", "date", agent="kr/b")),
    ],
    ids=lambda tool: tool.name,
)
def test_a_near_miss_is_not_an_edge(asking, other):
    assert not [edge for edge in triples(infer_edges([asking, other])) if edge[0] == asking.name]


def test_only_an_agent_that_controls_a_connection_needs_one():
    phone = "phone/assistant"
    status = make_tool("get_wifi_status", agent=phone)
    switch = make_tool("set_wifi_status", properties={"on": BOOLEAN}, agent=phone)
    news = make_tool("search_news", "query", agent=phone)
    elsewhere = make_tool("search_news", "query", agent="phone/browser")
    sums = make_tool("calculate_sum", properties={"numbers": {"type": "array"}}, agent=phone)

    edges = infer_edges([status, switch, news, elsewhere, sums])

    assert ("search_news", None, "get_wifi_status") in triples(edges)
    assert {edge.source for edge in edges} == {status.id, news.id}
    assert not infer_edges([status, news])  # read, but not switched


def make_operation(method: str, path: str, *extra: str, **options: Any) -> Tool:
    """An HTTP operation, called by a number: only its path says what it is about."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    tool = make_tool(
        f"operation_{method}_{path.count('/')}_{hash_of(path)}", *names, *extra, **options
    )
    return replace(tool, annotations={"method": method, "path": path})


def hash_of(path: str) -> str:
    return "".join(f"{ord(letter):x}" for letter in path if letter.isalpha())


def paths(edges: Sequence[Edge], tools: Sequence[Tool]) -> set[tuple[str, str | None, str]]:
    """(path, parameter, path) of edges."""
    by_id = {tool.id: str(tool.annotations["path"]) for tool in tools}
    return {(by_id[edge.source], edge.parameter, by_id[edge.target]) for edge in edges}


def test_the_operation_at_the_path_before_a_parameter_provides_it():
    tools = [
        make_operation("GET", "/shops"),
        make_operation("POST", "/shops"),
        make_operation("GET", "/shops/{shop}/orders"),
        make_operation("GET", "/shops/{shop}/orders/{number}"),
        make_operation("PUT", "/shops/{shop}/tags/{tag}"),
        make_operation("GET", "/shops/{shop}/tags"),
        make_operation("GET", "/albums", "ids"),
        make_operation("GET", "/albums/{id}"),
    ]

    found = paths(infer_edges(tools), tools)

    assert found == {
        ("/shops/{shop}/orders", "shop", "/shops"),
        ("/shops/{shop}/orders/{number}", "shop", "/shops"),
        ("/shops/{shop}/orders/{number}", "number", "/shops/{shop}/orders"),
        ("/shops/{shop}/tags", "shop", "/shops"),
        ("/shops/{shop}/tags/{tag}", "shop", "/shops"),
        ("/shops/{shop}/tags/{tag}", "tag", "/shops/{shop}/tags"),
    }  # and `/albums?ids=` tells no id that its caller lacks


def test_a_tool_that_lists_a_resource_provides_its_id_and_one_that_mentions_it_does_not():
    owner = {"type": "object", "properties": {"id": STRING}}
    issue = {"number": {"type": "integer"}, "reviewer": owner}
    tools = [
        make_operation("GET", "/rooms/{room_id}/lessons", output={"result": {"type": "array"}}),
        make_operation("GET", "/lessons/{lesson_id}"),
        make_operation(
            "GET", "/issues", output={"result": {"type": "array", "items": {"properties": issue}}}
        ),
        make_operation("GET", "/reviewers/{reviewer_id}"),
    ]

    found = paths(infer_edges(tools), tools)

    assert found == {("/lessons/{lesson_id}", "lesson_id", "/rooms/{room_id}/lessons")}


def test_a_parameter_of_most_tools_of_an_agent_gets_no_edge():
    def tools(count: int, other: int) -> list[Tool]:
        sharing = [make_tool(f"paint_{at}x", "repo_id") for at in range(count)]
        return [
            make_tool("list_repos"),
            *sharing,
            *(make_tool(f"dig_{at}x") for at in range(other)),
        ]

    assert infer_edges(tools(20, 5)) == []
    assert {edge.parameter for edge in infer_edges(tools(20, 100))} == {"repo_id"}  # a minority
    assert {edge.parameter for edge in infer_edges(tools(5, 0))} == {"repo_id"}  # a small server


def test_providers_are_ranked_by_arguments_and_listing_ranks_before_creating():
    asking = make_tool("pay_order", "order_id")
    creating = make_tool("create_order", "title")
    listing = make_tool("list_orders")
    within = make_tool("list_orders_of_warehouse", "warehouse_ref")

    def targets(*tools: Tool) -> set[str]:
        return {target for _, _, target in triples(infer_edges([asking, *tools]))}

    assert targets(creating) == {"create_order"}
    assert targets(creating, within) == {"list_orders_of_warehouse"}
    assert targets(creating, within, listing) == {"list_orders"}


def test_an_output_schema_names_the_items_of_a_list():
    listed = {"type": "array", "items": {"type": "object", "properties": {"id": STRING}}}
    overview = make_tool("list_customers", output={"orders": listed})
    refund = make_tool("refund_order", "order_id")

    assert triples(infer_edges([overview, refund])) == {
        ("refund_order", "order_id", "list_customers")
    }


def test_schemas_with_references_alternatives_or_no_types_are_read():
    def asking(name: str, schema: Mapping[str, Any], **definitions: Any) -> Tool:
        return make_tool(name, properties={"order_id": schema}, **{"$defs": definitions})

    optional = {"anyOf": [STRING, {"type": "null"}], "default": None}
    circular = {"anyOf": [{"$ref": "#/$defs/A"}]}
    tools = [
        make_tool("search_orders", "text"),
        asking("refund", {"$ref": "#/$defs/Id"}, Id={"type": "boolean"}),
        asking("ship", optional),
        asking("pack", {}),
        asking("loop", {"$ref": "#/$defs/A"}, A=circular),
        asking("bend", {"$ref": "#/nowhere"}),
    ]

    assert {edge.source.rpartition("/")[2]: edge.type for edge in infer_edges(tools)} == {
        "ship": INDIRECT,
        "pack": DIRECT,
        "loop": DIRECT,
        "bend": DIRECT,
    }


def test_inference_is_linear_in_the_number_of_tools(monkeypatch):
    compare = Need.fit
    counts = Counter()

    def counted(need, provided):
        counts[size] += 1
        return compare(need, provided)

    monkeypatch.setattr(Need, "fit", counted)
    for size in (2_000, 4_000):
        assert infer_edges(make_board(size, 1))

    assert counts[4_000] < 2.5 * counts[2_000]
    assert counts[4_000] / 4_000 < 500
