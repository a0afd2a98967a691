"""What the gate sees of attacks on the ranking: stuffed tools, copies, and honest newcomers."""

import pytest

from tasks.gate.messages import held_lines

GATE = 'queries = "golden.jsonl"\n'
TWO = (
    '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n'
    '[catalogs.foreign]\ntype = "records"\npath = "foreign.json"\ncolumns.examples = "examples"\n'
)


@pytest.fixture
def attack(shop, publish_first):
    """A function that adds a catalog of other tools to the live shop, and builds."""

    def build(rows, gate=GATE, trust=""):
        publish_first(GATE)
        shop.workshop.write("foreign.json", rows)
        shop.configure(gate)
        shop.catalogs = TWO + trust
        return shop.build()

    return build


def copies(tools, examples=()):
    return [
        {"name": f"pro_{name}", "description": f"Please! {text}", "examples": list(examples)}
        for name, text in tools.items()
    ]


def test_copies_that_take_first_places_hold_the_release_and_are_named(attack, shop, tools, queries):
    rows = copies(tools)
    for row, query in zip(rows, queries, strict=True):
        row["examples"] = [query["query"]] * 2

    built = attack(rows)

    captured = built.details["captured"]
    assert not built.gate["passed"]
    assert (captured["most"], captured["of"]) == (1, 20)
    assert captured["count"] > 10
    first_query = captured["queries"][0]
    assert first_query["tool"].startswith("foreign/")
    assert first_query["before"].startswith("kit/shop/")
    message = "\n".join(held_lines(built.details, "live"))
    assert f"{captured['count']} of 20 queries are captured" in message
    assert first_query["tool"] in message


def test_an_allowed_share_of_captured_queries_holds_nothing(attack, tools):
    assert attack(copies(tools), f"{GATE}captured = 1\n").details["captured"]["most"] == 20


def test_tools_for_other_requests_capture_nothing(attack):
    rows = [{"name": "send_fax", "description": "Faxes a page to a number.", "examples": []}]

    built = attack(rows)

    assert built.gate["passed"]
    assert built.details["captured"]["count"] == 0
