"""Dependencies are inferred from names, schemas and descriptions, and near-misses make none."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from catalogs.records.source import source
from catalogs.shared.listing import ListingBuilder
from pegboard.records import Edge, Tool, tool_id
from tasks.dependencies.infer import MAX_EDGES, infer_edges

TOOLLINKOS = Path(__file__).parents[4] / "shared" / "benchmarks" / "toollinkos"


def a_tool(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    description: str = "",
    required: tuple[str, ...] | None = None,
    output: Mapping[str, Any] | None = None,
    agent: str = "shop/orders",
    **schema: Any,
) -> Tool:
    properties = {
        key: {"type": one} if isinstance(one, str) else one
        for key, one in (parameters or {}).items()
    }
    needed = list(properties) if required is None else list(required)
    return Tool(
        tool_id(agent, name),
        agent.partition("/")[0],
        agent,
        name,
        description,
        {"type": "object", "properties": properties, "required": needed, **schema},
        None if output is None else {"type": "object", "properties": output},
    )


def pairs(edges: list[Edge], least: float = 0.5) -> set[tuple[str, str | None, str]]:
    return {
        (edge.source.rpartition("/")[2], edge.parameter, edge.target.rpartition("/")[2])
        for edge in edges
        if edge.confidence >= least
    }


def test_an_order_service_knows_where_its_order_ids_come_from():
    tools = [
        a_tool(
            "search_orders",
            {"customer_name": "string"},
            description="Searches the orders of a customer.",
        ),
        a_tool("get_order", {"order_id": "string"}, description="Returns an order."),
        a_tool("cancel_order", {"id": "string"}, description="Cancels an order."),
        a_tool("track_shipment", {"shipment_id": "string"}, description="Tracks a shipment."),
    ]
    found = infer_edges(tools)

    assert pairs(found) == {
        ("get_order", "order_id", "search_orders"),
        ("cancel_order", "id", "search_orders"),
        ("cancel_order", None, "get_order"),
    }
    asked = [edge for edge in found if edge.parameter]
    assert {edge.type for edge in asked} == {"parameter-directly-depends-on"}
    assert all(
        edge.origin == "inferred" and edge.reason and "order id" in edge.evidence for edge in asked
    )


def test_a_calendar_takes_people_from_contacts_and_dates_from_the_clock():
    tools = [
        a_tool("search_contacts", {"name": "string"}, agent="office/contacts"),
        a_tool("get_current_date", agent="office/clock", description="Returns the current date."),
        a_tool(
            "create_event",
            {"title": "string", "start_date": "string", "contact_id": "string"},
            agent="office/contacts",
        ),
        a_tool("list_events", {"date": "string"}, required=(), agent="office/calendar"),
    ]

    assert pairs(infer_edges(tools)) == {
        ("create_event", "contact_id", "search_contacts"),
        ("create_event", "start_date", "get_current_date"),
        ("list_events", "date", "get_current_date"),
    }
    by_parameter = {(edge.source, edge.parameter): edge.type for edge in infer_edges(tools)}
    assert (
        by_parameter["office/contacts/create_event", "start_date"]
        == "parameter-indirectly-depends-on"
    )
    assert (
        by_parameter["office/contacts/create_event", "contact_id"]
        == "parameter-directly-depends-on"
    )


@pytest.mark.parametrize(
    ("asking", "other"),
    [
        (a_tool("rename_file", {"name": "string"}), a_tool("get_name")),
        (
            a_tool("get_robot", {"robot_id": "string"}),
            a_tool("get_robot_status", {"serial": "string"}),
        ),
        (a_tool("get_order", {"order_id": "string"}), a_tool("pay_order", {"order_id": "string"})),
        (
            a_tool("get_order", {"order_id": "string"}),
            a_tool("describe_order", {"order_id": "string"}),
        ),
        (a_tool("greet", {"birth_date": "string"}), a_tool("get_current_date")),
        (a_tool("enrol", {"date_of_birth": "string"}), a_tool("get_current_date")),
        (a_tool("wait", {"days": "integer"}), a_tool("get_current_date")),
        (
            a_tool("create_order", {"order_id": "string"}),
            a_tool("search_orders", {"text": "string"}),
        ),
        (
            a_tool("notify", {"email_notifications": "boolean"}),
            a_tool("validate_email", {"email": "string"}),
        ),
        (
            a_tool("log_in", {"password": "string"}),
            a_tool("validate_password", {"password": "string"}),
        ),
        (
            a_tool("set_colour", {"colour": {"enum": ["red", "blue"]}}),
            a_tool("search_colour", {"text": "string"}),
        ),
        (
            a_tool("get_issue", {"page": "integer"}),
            a_tool("search_page", {"text": "string"}, agent="wiki/pages"),
        ),
        (
            a_tool("buy", {"ticker": "string"}, agent="us/stocks"),
            a_tool("load_tickers", {"date": "string"}, agent="kr/stocks"),
        ),
        (
            a_tool("get_a_page", description="Use find_things instead if you search."),
            a_tool("find_things"),
        ),
    ],
    ids=lambda tool: tool.name,
)
def test_a_near_miss_makes_no_edge(asking, other):
    assert not [one for one in pairs(infer_edges([asking, other])) if one[0] == asking.name]


def test_the_same_service_is_preferred():
    tools = [
        a_tool("acme_get_recipe", {"title": "string"}),
        a_tool("zeta_get_recipe", {"title": "string"}),
        a_tool("zeta_get_ingredients", {"recipe_id": "string"}),
    ]

    assert pairs(infer_edges(tools)) == {("zeta_get_ingredients", "recipe_id", "zeta_get_recipe")}


def test_a_session_comes_from_the_login_of_the_same_service():
    tools = [
        a_tool("acme_login", {"email": "string"}),
        a_tool("login_to_zeta", {"email": "string"}),
        a_tool("acme_pay", {"session_id": "string"}),
        a_tool("call_zeta_taxi", {"street": "string"}),
        a_tool(
            "validate_email",
            {"email": "string"},
            description="Checks if a text is a valid email address.",
        ),
    ]

    assert pairs(infer_edges(tools)) == {
        ("acme_pay", "session_id", "acme_login"),
        ("call_zeta_taxi", None, "login_to_zeta"),
        ("acme_login", "email", "validate_email"),
        ("login_to_zeta", "email", "validate_email"),
    }


def test_an_authorisation_gives_tokens_and_names_no_service():
    tools = [
        a_tool("authorize_access", {"user": "string"}),
        a_tool("get_access_report"),
        a_tool("upload", {"auth_token": "string"}),
    ]

    assert pairs(infer_edges(tools)) == {("upload", "auth_token", "authorize_access")}


def test_a_switch_and_what_works_with_it():
    tools = [
        a_tool("get_bluetooth_status", description="Returns whether Bluetooth is on."),
        a_tool("set_bluetooth_status", {"on": "boolean"}),
        a_tool("list_bluetooth_devices"),
        a_tool("set_volume", {"level": "integer"}),
        a_tool("get_volume"),
    ]
    found = infer_edges(tools)

    assert pairs(found) == {
        ("set_bluetooth_status", None, "get_bluetooth_status"),
        ("get_bluetooth_status", None, "set_bluetooth_status"),
        ("list_bluetooth_devices", None, "get_bluetooth_status"),
        ("set_volume", None, "get_volume"),
    }


def test_only_an_agent_that_looks_after_a_connection_needs_one():
    device = [
        a_tool("get_wifi_status", agent="phone/assistant"),
        a_tool("set_wifi_status", {"on": "boolean"}, agent="phone/assistant"),
    ]
    news = a_tool("search_news", {"query": "string"}, agent="phone/assistant")
    elsewhere = a_tool("search_news", {"query": "string"}, agent="phone/browser")
    sums = a_tool("calculate_sum", {"numbers": "array"}, agent="phone/assistant")

    found = pairs(infer_edges([*device, news, elsewhere, sums]))
    assert ("search_news", None, "get_wifi_status") in found
    assert not [one for one in found if one[0] == "calculate_sum"]
    assert not infer_edges([device[0], news])  # told, but not switched
    assert {edge.source for edge in infer_edges([*device, news, elsewhere])} == {
        *(one.id for one in device),
        news.id,
    }


def test_a_description_that_names_another_tool_is_believed():
    parameter = {"type": "string", "description": "The page, as returned by `find-pages`."}
    tools = [
        a_tool("find-pages", {"text": "string"}),
        a_tool("list_pages"),
        a_tool("read", {"page_id": parameter}),
        a_tool("publish", description="Call find-pages first."),
    ]

    assert pairs(infer_edges(tools)) == {
        ("read", "page_id", "find-pages"),
        ("publish", None, "find-pages"),
    }


def test_output_schemas_provide_what_their_properties_say():
    output = {
        "orders": {
            "type": "array",
            "items": {"type": "object", "properties": {"id": {"type": "string"}}},
        }
    }
    tools = [
        a_tool(
            "customer_overview",
            {"customer": "string"},
            output=output,
            description="Returns an overview.",
        ),
        a_tool("refund_order", {"order_id": "string"}),
        a_tool("order_report", output={"order_id": {"type": "string"}}),
    ]

    assert ("refund_order", "order_id", "order_report") in pairs(infer_edges(tools))
    assert ("refund_order", "order_id", "customer_overview") in pairs(infer_edges(tools[:2]))


def test_schemas_with_references_alternatives_or_no_types_are_read():
    referred = a_tool(
        "refund", {"order_id": {"$ref": "#/$defs/Id"}}, **{"$defs": {"Id": {"type": "boolean"}}}
    )
    either = a_tool(
        "ship", {"order_id": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}
    )
    untyped = a_tool("pack", {"order_id": {}})
    circular = a_tool(
        "loop",
        {"order_id": {"$ref": "#/$defs/A"}},
        **{"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}},
    )
    broken = a_tool("bend", {"order_id": {"$ref": "#/nowhere"}})
    found = infer_edges(
        [a_tool("search_orders", {"text": "string"}), referred, either, untyped, circular, broken]
    )

    assert {edge.source.rpartition("/")[2]: edge.type for edge in found} == {
        "ship": "parameter-indirectly-depends-on",
        "pack": "parameter-directly-depends-on",
        "loop": "parameter-directly-depends-on",
        "bend": "parameter-directly-depends-on",
    }


def test_schemas_that_are_no_schemas_make_no_edge_and_no_error():
    schemas = (
        {},
        {"properties": []},
        {"properties": {"x": 3}, "required": "x"},
        {"anyOf": {}},
        {"required": [["x"]]},
    )
    odd = [Tool(f"a/b/t{at}", "a", "a/b", f"t{at}", "", one, one) for at, one in enumerate(schemas)]

    assert infer_edges(odd) == []
    assert infer_edges([]) == []


def test_names_in_other_scripts_match_and_do_not_fail():
    tools = [
        a_tool("查询订单", {"文本": "string"}),
        a_tool("取消订单", {"订单号": "string"}),
        a_tool("search_straße", {"text": "string"}),
        a_tool("räume_straße", {"straße_id": "string"}),
        a_tool("🙂", {"🙂": "string"}),
    ]

    assert ("räume_straße", "straße_id", "search_straße") in pairs(infer_edges(tools))


def test_what_every_tool_has_makes_no_edge():
    id_, name = {"id": {"type": "string"}}, {"name": {"type": "string"}}
    tools = [
        a_tool(f"process_{at}x", {"id": "string", "name": "string"}, output={**id_, **name})
        for at in range(2_000)
    ]
    tools += [a_tool(f"find_order_for_{at}x", {"text": "string"}) for at in range(4)]
    tools += [a_tool("refund", {"order_id": "string"})]

    assert infer_edges(tools) == []


def test_a_tool_has_a_handful_of_inferred_dependencies():
    things = [f"{kind}{number}" for kind in ("lamp", "desk", "door") for number in "abcd"]
    tools = [a_tool(f"search_{thing}", {"text": "string"}) for thing in things]
    tools.append(a_tool("furnish", {f"{thing}_id": "string" for thing in things}))

    assert len(things) > MAX_EDGES
    assert len(infer_edges(tools)) == MAX_EDGES


def test_tools_that_provide_each_other_the_same_way_make_one_edge():
    tools = [
        a_tool("get_gross_income", {"tax_rate": "number"}),
        a_tool("get_tax_rate", {"gross_income": "number"}),
    ]

    assert len(infer_edges(tools)) == 1


@pytest.mark.skipif(
    not TOOLLINKOS.is_dir(), reason="ToolLinkOS is not beside this checkout (shared/benchmarks)"
)
def test_more_than_half_of_what_toollinkos_declares_is_found_and_little_else():
    builder = ListingBuilder("os", TOOLLINKOS)
    columns = {"parameters": "parameters", "dependencies": "depends_on"}
    options = {"type": "records", "path": "tools.json", "columns": columns}
    source.read(builder, source.options.model_validate(options))
    tools = builder.build().tools
    declared = {
        (tool.id, tool_id(tool.agent, one.tool)) for tool in tools for one in tool.dependencies
    }
    found = [edge for edge in infer_edges(tools) if edge.confidence >= 0.5]
    right = [edge for edge in found if (edge.source, edge.target) in declared]
    asked = [edge for edge in found if edge.parameter]

    assert len(right) / len(found) > 0.8
    assert len({(edge.source, edge.target) for edge in right}) / len(declared) > 0.55
    assert sum((edge.source, edge.target) in declared for edge in asked) / len(asked) > 0.88
    assert json.dumps([edge.evidence for edge in found], ensure_ascii=True)
