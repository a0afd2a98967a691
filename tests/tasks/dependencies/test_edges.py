"""The edges of a release: declared before judged before inferred, in one order."""

import random
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from pegboard.records import Dependency, Tool
from tasks.dependencies.edges import EDGES_VERSION, edges_of


def a_tool(name: str, *parameters: str, dependencies: tuple[Dependency, ...] = ()) -> Tool:
    schema = {
        "type": "object",
        "properties": {one: {"type": "string"} for one in parameters},
        "required": [*parameters],
    }
    return Tool(
        f"shop/orders/{name}", "shop", "shop/orders", name, "", schema, dependencies=dependencies
    )


SEARCH = a_tool("search_orders", "text")
CANCEL = a_tool("cancel_order", "order_id")
REFUND = a_tool("refund", "order_id", "stock_ticker")
TICKER = a_tool("get_stock_ticker", "company")


def test_what_a_catalog_declares_wins_over_what_is_inferred():
    declared = Dependency(
        "search_orders", "parameter-directly-depends-on", "order_id", "We say so."
    )
    (edge,) = edges_of([SEARCH, replace(CANCEL, dependencies=(declared,))])

    assert (edge.origin, edge.confidence, edge.reason, edge.evidence) == (
        "declared",
        1.0,
        "We say so.",
        "",
    )


def test_nothing_is_inferred_about_tools_of_which_a_catalog_speaks():
    declared = Dependency("search_orders", "tool-indirectly-depends-on")
    (edge,) = edges_of([SEARCH, replace(CANCEL, dependencies=(declared,))])

    assert (edge.origin, edge.type, edge.parameter) == (
        "declared",
        "tool-indirectly-depends-on",
        None,
    )


def test_nothing_is_inferred_unless_it_is_wanted():
    declared = Dependency("get_stock_ticker", "tool-directly-depends-on")
    tools = [SEARCH, TICKER, CANCEL, a_tool("ship", "order_id", dependencies=(declared,))]

    assert [edge.target for edge in edges_of(tools, infer=False)] == [TICKER.id]
    assert [edge.target for edge in edges_of(tools)] == [SEARCH.id, TICKER.id]


def test_weak_edges_are_left_out_and_declared_ones_never():
    declared = Dependency("cancel_order", "tool-directly-depends-on")
    tools = [SEARCH, CANCEL, TICKER, REFUND, a_tool("ship", "order_id", dependencies=(declared,))]
    by_least = {least: edges_of(tools, min_confidence=least) for least in (0.0, 0.5, 0.7, 1.0)}

    assert {least: len(edges) for least, edges in by_least.items()} == {
        0.0: 4,
        0.5: 4,
        0.7: 3,
        1.0: 1,
    }
    assert all(edge.confidence >= least for least, edges in by_least.items() for edge in edges)


def test_the_order_of_the_tools_changes_nothing():
    tools = [
        SEARCH,
        CANCEL,
        TICKER,
        REFUND,
        *(a_tool(f"search_{thing}", "text") for thing in "abcdefgh"),
    ]
    expected = edges_of(tools)
    shuffled = random.Random(7)
    for _ in range(5):
        shuffled.shuffle(tools)
        assert edges_of(tools) == expected
    assert [(e.source, e.target) for e in expected] == sorted(
        (e.source, e.target) for e in expected
    )


@pytest.mark.parametrize("seed", ["1", "2"])
def test_another_process_finds_the_same(seed):
    code = (
        "from tests.tasks.dependencies.test_edges import *\n"
        "print(edges_of([SEARCH, CANCEL, TICKER, REFUND]), EDGES_VERSION)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        cwd=".",
    )

    assert done.stdout.strip() == f"{edges_of([SEARCH, CANCEL, TICKER, REFUND])} {EDGES_VERSION}"


def test_reasons_are_sentences():
    assert all(
        re.fullmatch(r"\S.*\.", edge.reason) for edge in edges_of([SEARCH, CANCEL, TICKER, REFUND])
    )
