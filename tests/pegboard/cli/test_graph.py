"""`pegboard graph`, called as the console script calls it."""

import pytest

CATALOGS = """
[graph]
infer = false

[catalogs.stocks]
type = "records"
path = "stocks.json"
agent = "stocks"
columns = { dependencies = "depends_on" }

[catalogs.system]
type = "records"
path = "system.json"
agent = "system"
columns = { dependencies = "depends_on" }
"""
PRICE, TICKER = "stocks/stocks/get_stock_price", "stocks/stocks/get_stock_ticker"
WIFI, SET_WIFI = "system/system/get_wifi_status", "system/system/set_wifi"
NEEDS_WIFI = {
    "name": "get_wifi_status",
    "dependence_type": "TOOL_DIRECTLY_DEPENDS_ON",
    "reason": "Connectivity.",
}
NEEDS_TICKER = {
    "name": "get_stock_ticker",
    "dependence_type": "PARAMETER_DIRECTLY_DEPENDS_ON",
    "parameter_name": "ticker",
    "reason": "To know the\x1b[31m symbol.",
}


def record(name, *needs):
    return {"name": name, "description": f"What {name} does.", "depends_on": needs}


STOCKS = [
    record("get_stock_price", NEEDS_TICKER, NEEDS_WIFI),
    *(
        record(name, NEEDS_WIFI)
        for name in ("get_stock_ticker", "report_a", "report_b", "report_c", "status")
    ),
    record("greet"),
]
SYSTEM = [
    record("get_wifi_status", {"name": "set_wifi"}),
    record("set_wifi", {"name": "get_wifi_status"}),
    record("status", {"name": "set_wifi"}),
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory, workshop_type, hashing):
    workshop = workshop_type(tmp_path_factory.mktemp("graph"))
    workshop.write("stocks.json", STOCKS)
    workshop.write("system.json", SYSTEM)
    workshop.run(workshop.configure(catalogs=CATALOGS), encoder=hashing())
    return workshop.uri


@pytest.fixture
def graph(run, uri):
    return lambda line: run(f"graph {line}", board=uri)


def test_show_of_a_tool_says_what_it_needs_and_what_needs_it(graph):
    shown = graph(f"show {PRICE} --json").json

    assert graph("show get_stock_ticker").out == (
        f"{TICKER}\n"
        "needs: 1\n"
        f"  {WIFI}  tool-directly-depends-on: Connectivity.\n"
        "and through others: 1\n"
        f"  {SET_WIFI}  (of {WIFI})\n"
        "needed by: 1\n"
        f"  {PRICE}\n"
    )
    assert graph("show stocks/stocks/greet").out == (
        "stocks/stocks/greet\nneeds: none\nand through others: none\nneeded by: none\n"
    )
    assert (shown["tool"], shown["needed_by"]) == (PRICE, [])
    assert [edge["target"] for edge in shown["needs"]] == [TICKER, WIFI]
    assert shown["needs"][0]["parameter"] == "ticker"
    assert [edge["target"] for edge in shown["needs_through_others"]] == [SET_WIFI]


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("status", 2, "2 tools are called 'status'; give the id of one: stocks/stocks/status, "),
        ("WIFI", 4, f"There are: {WIFI}, "),
        ("zzz", 4, "`pegboard tools list`"),
    ],
)
def test_an_ambiguous_or_unknown_tool_is_refused_with_a_hint(graph, name, code, message):
    printed = graph(f"show {name}")

    assert (printed.code, printed.out) == (code, "")
    assert message in printed.err
