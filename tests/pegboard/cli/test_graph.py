"""`pegboard graph`, called as the console script calls it."""

import pytest

CATALOGS = """
[graph]
infer = false

[catalogs.kit]
type = "records"
path = "tools.json"
columns = { agent = "agent", dependencies = "depends_on" }
"""
PRICE, TICKER, WIFI, SET_WIFI = (
    f"kit/{name}" for name in ("stocks/price", "stocks/ticker", "system/wifi", "system/set_wifi")
)
NEEDS_WIFI = {
    "name": "wifi",
    "dependence_type": "TOOL_DIRECTLY_DEPENDS_ON",
    "reason": "Connectivity.",
}
NEEDS_TICKER = {
    "name": "ticker",
    "dependence_type": "PARAMETER_DIRECTLY_DEPENDS_ON",
    "parameter_name": "symbol",
}


def record(name, *needs):
    agent, _, name = name.partition("/")
    return {"agent": agent, "name": name, "description": f"Does {name}.", "depends_on": needs}


TOOLS = [
    record("stocks/price", NEEDS_TICKER, NEEDS_WIFI),
    record("stocks/ticker", NEEDS_WIFI),
    record("stocks/status"),
    record("system/wifi", {"name": "set_wifi"}),
    record("system/set_wifi", {"name": "wifi"}),
    record("system/status"),
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory, workshop_type, hashing):
    workshop = workshop_type(tmp_path_factory.mktemp("graph"))
    workshop.write("tools.json", TOOLS)
    workshop.run(workshop.configure(catalogs=CATALOGS), encoder=hashing())
    return workshop.uri


@pytest.fixture
def graph(run, uri):
    return lambda line: run(f"graph {line}", board=uri)


def test_show_of_a_tool_says_what_it_needs_and_what_needs_it(graph):
    shown = graph(f"show {PRICE} --json").json

    assert graph("show ticker").out == (
        f"{TICKER}\n"
        "needs: 1\n"
        f"  {WIFI}  tool-directly-depends-on: Connectivity.\n"
        "and through others: 1\n"
        f"  {SET_WIFI}  (of {WIFI})\n"
        "needed by: 1\n"
        f"  {PRICE}\n"
    )
    assert graph("show kit/stocks/status").out == (
        "kit/stocks/status\nneeds: none\nand through others: none\nneeded by: none\n"
    )
    assert (shown["tool"], shown["needed_by"]) == (PRICE, [])
    assert [edge["target"] for edge in shown["needs"]] == [TICKER, WIFI]
    assert shown["needs"][0]["parameter"] == "symbol"
    assert [edge["target"] for edge in shown["needs_through_others"]] == [SET_WIFI]


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("status", 2, "2 tools are called 'status'; give the id of one: kit/stocks/status, "),
        ("WIFI", 4, f"There are: {SET_WIFI}, {WIFI}"),
        ("zzz", 4, "`pegboard tools list`"),
    ],
)
def test_an_ambiguous_or_unknown_tool_is_refused_with_a_hint(graph, name, code, message):
    printed = graph(f"show {name}")

    assert (printed.code, printed.out) == (code, "")
    assert message in printed.err
