"""`pegboard graph`, called as the console script calls it."""

import json
from xml.etree import ElementTree

import pytest

from pegboard.cli.main import main

DIRECT, PARAMETER = "tool-directly-depends-on", "parameter-directly-depends-on"
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
WIFI = {
    "name": "get_wifi_status",
    "dependence_type": "TOOL_DIRECTLY_DEPENDS_ON",
    "reason": "Connectivity.",
}
TICKER = {
    "name": "get_stock_ticker",
    "dependence_type": "PARAMETER_DIRECTLY_DEPENDS_ON",
    "parameter_name": "ticker",
    "reason": "To know the\x1b[31m symbol.",
}
STOCKS = [
    {
        "name": "get_stock_price",
        "description": "The price of a stock.",
        "depends_on": [TICKER, WIFI],
    },
    {"name": "get_stock_ticker", "description": "The symbol of a company.", "depends_on": [WIFI]},
    *(
        {"name": f"report_{one}", "description": f"Reports on {one}.", "depends_on": [WIFI]}
        for one in ("a", "b", "c")
    ),
    {"name": "status", "description": "Whether the market is open.", "depends_on": [WIFI]},
    {"name": "greet", "description": "Says hello.", "depends_on": []},
]
SYSTEM = [
    {
        "name": "get_wifi_status",
        "description": "Whether there is a network.",
        "depends_on": [{"name": "set_wifi"}],
    },
    {
        "name": "set_wifi",
        "description": "Turns the network on.",
        "depends_on": [{"name": "get_wifi_status"}],
    },
    {"name": "status", "description": "How the system is.", "depends_on": [{"name": "set_wifi"}]},
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory, workshop_type, hashing):
    workshop = workshop_type(tmp_path_factory.mktemp("graph"))
    workshop.write("stocks.json", STOCKS)
    workshop.write("system.json", SYSTEM)
    workshop.run(workshop.configure(catalogs=CATALOGS), encoder=hashing())
    return workshop.uri


@pytest.fixture(autouse=True)
def _no_board_in_the_environment(monkeypatch):
    monkeypatch.delenv("PEGBOARD_BOARD", raising=False)


@pytest.fixture
def ran(capsys, uri):
    """Runs an action on the board: its exit code, stdout and stderr."""

    def run(action, *arguments):
        code = main(["graph", action, *arguments, "--board", uri])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def ran_json(ran):
    def run(*arguments):
        code, out, err = ran(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


def test_show_gives_an_overview(ran):
    code, out, err = ran("show")

    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].endswith("10 dependencies of 9 tools")
    assert lines[1:3] == [
        "types: 9 tool-directly-depends-on, 1 parameter-directly-depends-on",
        "origins: 10 declared",
    ]
    assert lines[3:5] == ["core tools: 1", "  system/system/get_wifi_status"]
    assert "     7  system/system/get_wifi_status" in lines
    assert "     2  stocks/stocks/get_stock_price" in lines
    assert lines[-2:] == ["circles: 1", "  system/system/get_wifi_status, system/system/set_wifi"]


def test_the_overview_in_json_has_everything(ran_json):
    overview = ran_json("show")

    assert len(overview["release"]) == 12
    assert (overview["tools"], overview["edges"]) == (9, 10)
    assert overview["core"] == ["system/system/get_wifi_status"]
    assert next(iter(overview["most_needed"].items())) == ("system/system/get_wifi_status", 7)
    assert overview["cycles"] == [["system/system/get_wifi_status", "system/system/set_wifi"]]


def test_show_of_a_tool_says_what_it_needs_and_what_needs_it(ran):
    code, out, _ = ran("show", "get_stock_ticker")

    assert code == 0
    assert out == (
        "stocks/stocks/get_stock_ticker  (regular tool)\n"
        "needs:\n"
        "  -> system/system/get_wifi_status\n"
        "     tool-directly-depends-on: Connectivity.\n"
        "and through others: 1\n"
        "  system/system/set_wifi  (of system/system/get_wifi_status)\n"
        "needed by: 1\n"
        "  stocks/stocks/get_stock_price\n"
    )


def test_a_catalog_cannot_colour_the_terminal(ran, ran_json):
    _, out, _ = ran("show", "get_stock_price")

    assert "     parameter-directly-depends-on for ticker: To know the [31m symbol.\n" in out
    assert (
        ran_json("show", "get_stock_price")["needs"][0]["reason"] == "To know the\x1b[31m symbol."
    )


def test_show_of_a_tool_in_json(ran_json):
    shown = ran_json("show", "stocks/stocks/get_stock_price")

    assert (shown["tool"], shown["role"]) == ("stocks/stocks/get_stock_price", "regular")
    assert [edge["target"] for edge in shown["needs"]] == [
        "stocks/stocks/get_stock_ticker",
        "system/system/get_wifi_status",
    ]
    assert shown["needs"][0]["parameter"] == "ticker"
    assert [edge["target"] for edge in shown["needs_through_others"]] == ["system/system/set_wifi"]
    assert shown["needed_by"] == []


def test_a_tool_without_dependencies_is_shown_by_its_id(ran):
    code, out, _ = ran("show", "stocks/stocks/greet")

    assert (code, out) == (
        0, "stocks/stocks/greet  (regular tool)\nneeds: none\nand through others: none\nneeded "
        "by: none\n",
    )  # fmt: skip


def test_a_name_that_several_tools_have_lists_their_ids(ran):
    code, out, err = ran("show", "status")

    assert (code, out) == (2, "")
    assert (
        "2 tools are called 'status'; give the id of one: stocks/stocks/status, "
        "system/system/status." in err
    )


@pytest.mark.parametrize(
    ("given", "hint"), [("WIFI", "system/system/get_wifi_status, "), ("zzz", "`pegboard search")]
)
def test_a_tool_that_is_not_there_is_refused_with_a_hint(ran, given, hint):
    code, out, err = ran("show", given)

    assert (code, out) == (4, "")
    assert f"no tool with the id '{given}'" in err
    assert hint in err


def test_path_gives_the_reasons_step_by_step(ran, ran_json):
    code, out, _ = ran("path", "get_stock_ticker", "set_wifi")

    assert code == 0
    assert out == (
        "stocks/stocks/get_stock_ticker\n"
        "  -> system/system/get_wifi_status\n"
        "     tool-directly-depends-on: Connectivity.\n"
        "  -> system/system/set_wifi\n"
        "     tool-directly-depends-on\n"
    )
    found = ran_json("path", "get_stock_price", "get_stock_ticker")
    assert [[edge["type"] for edge in way] for way in found["paths"]] == [[PARAMETER]]


def test_path_says_so_if_there_is_none(ran, ran_json):
    code, out, _ = ran("path", "set_wifi", "get_stock_price")

    assert code == 0
    assert (
        out
        == "system/system/set_wifi does not need stocks/stocks/get_stock_price, not even through "
        "others.\n"
    )
    assert ran_json("path", "set_wifi", "get_stock_price")["paths"] == []


def test_export_prints_graphml_or_json(ran):
    code, out, _ = ran("export")

    assert code == 0
    assert (
        len(list(ElementTree.fromstring(out).iter("{http://graphml.graphdrawing.org/xmlns}edge")))
        == 10
    )
    value = json.loads(ran("export", "--format", "json")[1])
    assert (len(value["nodes"]), len(value["edges"])) == (9, 10)


def test_export_around_a_tool_is_written_to_a_file(ran, tmp_path):
    file = tmp_path / "ticker.json"

    code, out, _ = ran(
        "export", "--format", "json", "--tool", "get_stock_ticker", "--depth", "1", "-o", str(file)
    )  # fmt: skip

    assert (code, out) == (0, f"3 dependencies between 3 tools are in {file}\n")
    value = json.loads(file.read_text("utf-8"))
    assert {node["id"] for node in value["nodes"]} == {
        "stocks/stocks/get_stock_price", "stocks/stocks/get_stock_ticker",
        "system/system/get_wifi_status",
    }  # fmt: skip
    assert [node["role"] for node in value["nodes"]].count("core") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--depth", "2"], "beside a --tool"),
        (["--tool", "greet", "--depth", "-1"], "expected 0 or more"),
        (["-o", "/nowhere/at/all.graphml"], "could not be written"),
    ],
)
def test_export_refuses_what_cannot_be(ran, arguments, said):
    code, out, err = ran("export", *arguments)

    assert (code, out) == (2, "")
    assert said in err


def test_a_board_that_is_not_there_is_refused(capsys, tmp_path):
    assert main(["graph", "show", "--board", str(tmp_path / "none")]) == 4
    assert "pegboard graph: " in capsys.readouterr().err


@pytest.mark.parametrize("action", ["show", "path", "export"])
def test_help_has_examples(capsys, action):
    with pytest.raises(SystemExit):
        main(["graph", action, "--help"])

    assert f"pegboard graph {action}" in capsys.readouterr().out.partition("examples:")[2]
