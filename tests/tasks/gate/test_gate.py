"""The gate at work: sabotaged releases are held with reasons, honest ones go live."""

import pytest

import pegboard
from pegboard.errors import ConfigurationError
from pegboard.store.diff import diff_releases
from tasks.gate.messages import held_lines, measured_line
from tasks.steps.gate import gate_release

QUERIES = 'queries = "golden.jsonl"\n'
FLOOR = f'{QUERIES}rules = ["Recall@5 >= 0.99"]\n'
WHOLE = (
    f'{QUERIES}rules = ["Recall@5 >= 0.99", "Recall@5 no worse than live by more than 0.01 '
    f'with 95 % confidence"]\n'
)
NAMES = '[[indexes]]\nname = "names"\nparts = ["name"]\n[[indexes]]\nname = "full"\n'
"""In the first index a tool is its name alone, by which no query finds it."""


def test_a_sabotaged_release_is_held_and_the_message_names_the_queries_and_the_tools(
    shop, publish_first, sabotaged, swapped_ids, encoder
):
    first_release = publish_first(WHOLE).release
    shop.sells(sabotaged)

    held_build = shop.build()

    assert not held_build.gate["passed"]
    assert held_build.rules == [False, False]
    assert (shop.live, shop.releases) == (
        first_release.id,
        [held_build.release.id, first_release.id],
    )
    lost_query = {query["query"]: query for query in held_build.details["lost"]}[
        "please open my door"
    ]
    assert lost_query["before"] == {"tool_od": 1}
    assert lost_query["now"]["tool_od"] > 5
    assert lost_query["instead"] == ["kit/shop/tool_cb"]
    assert (
        set(lost_query["changed"]) == set(held_build.details["changes"]["changed"]) == swapped_ids
    )
    message = "\n".join(held_lines(held_build.details, "live"))
    for part in (
        f"Release {held_build.release.id} did not pass its gate and is held; 'live' stays at "
        f"release {first_release.id}.",
        "rule failed: Recall@5 >= 0.99: it is 0.900 [0.750, 1.000] over 20 queries, 0.090 too low",
        '"please open my door" needs tool_od (rank 1 -> rank',
        "in front now: kit/shop/tool_cb",
        "0 new, 2 changed, 0 removed",
        "kit/shop/tool_od (changed)",
        f"pegboard releases diff {first_release.id} {held_build.release.id} --texts",
        f"pegboard promote {held_build.release.id}",
    ):
        assert part in message
    # It can be opened, searched and compared, and what is live answers as before.
    board = pegboard.open(shop.workshop.uri, release=held_build.release.id, encoder=encoder)
    assert board.search("clean the bicycle", 1)[0].tool.name == "tool_od"
    diff = diff_releases(shop.workshop.store, first_release, held_build.release)
    assert {change.id for change in diff.changed} == swapped_ids
    live = pegboard.open(shop.workshop.uri, encoder=encoder)
    assert live.search("clean the bicycle", 1)[0].tool.name == "tool_cb"


def test_a_corrected_source_after_a_held_release_is_compared_with_live_and_passes(
    shop, publish_first, tools, sabotaged
):
    first_release = publish_first(WHOLE).release
    shop.sells(sabotaged)
    held_release = shop.build().release
    text = "Opens the front door of a customer."
    shop.sells({**tools, "tool_od": text, "tool_new": "Sends an invoice."})

    built = shop.build()

    assert built.rules == [True, True]
    assert (shop.live, built.gate["live"]) == (built.release.id, first_release.id)
    assert "2 rules hold, 0 queries lost and 0 won" in measured_line(built.details)
    assert shop.workshop.store.channel().history == (first_release.id,)
    assert set(shop.releases) == {first_release.id, held_release.id, built.release.id}


def test_a_held_release_is_judged_again_by_other_rules_and_promoted_without_another_row(
    shop, publish_first, sabotaged
):
    first_release = publish_first(WHOLE).release
    shop.sells(sabotaged)
    killed = shop.build(publish=False)
    assert (shop.live, shop.releases) == (first_release.id, [first_release.id])
    held_build = shop.build()

    second_build = shop.build()
    shop.configure(f'{QUERIES}rules = ["Recall@5 >= 0.8"]\n')
    relaxed = shop.build()

    assert second_build.release == held_build.release  # nothing is written again, not even the time
    assert killed.gate == second_build.gate == held_build.gate
    assert relaxed.gate["passed"]
    assert (shop.live, shop.releases) == (
        held_build.release.id,
        [held_build.release.id, first_release.id],
    )
    recorded = shop.workshop.store.get(held_build.release.id)
    assert recorded.manifest["gate"]["passed"]
    assert (recorded.tables, recorded.created_at) == (
        held_build.release.tables,
        held_build.release.created_at,
    )
    assert shop.build().release is None  # it is live now, and nothing changed


def test_a_broken_canary_holds_the_release_whatever_the_rules(shop, queries, tools):
    sell = {"query": "please sell my roof", "tools": ["tool_sr"]}
    shop.lines("canaries.jsonl", [queries[0], sell])
    shop.configure(f'{QUERIES}canaries = "canaries.jsonl"\ncanary_k = 1\n')
    first_build = shop.build()
    shop.sells({**tools, "tool_od": "Does something else."})

    held_build = shop.build()

    assert first_build.gate["canaries"] == {"count": 2, "missed": 0}
    assert (held_build.gate["passed"], held_build.gate["canaries"]) == (
        False,
        {"count": 2, "missed": 1},
    )
    assert [query["query"] for query in held_build.details["broken"]] == ["please open my door"]
    message = "\n".join(held_lines(held_build.details, "live"))
    assert "1 of 2 canaries broke: not all their tools are among the first 1" in message
    assert '"please open my door" needs tool_od (rank 1 -> ' in message


def test_a_removed_tool_counts_as_not_found_for_its_catalog_too(shop, tools, queries):
    shop.lines("golden.jsonl", [{**queries[0], "tools": ["kit/shop/tool_od"]}, queries[1]])
    shop.configure(f'{QUERIES}rules = ["Recall@5 of catalog kit >= 0.9"]\n')
    shop.build()
    shop.sells({name: text for name, text in tools.items() if name != "tool_od"})

    held_build = shop.build()

    assert held_build.gate["rules"][0]["reason"].startswith("it is 0.500 ")
    assert (
        held_build.details["unknown"]
        == held_build.details["changes"]["removed"]
        == ["kit/shop/tool_od"]
    )
    assert "kit/shop/tool_od (removed)" in "\n".join(held_lines(held_build.details, "live"))


def test_a_floor_for_a_catalog_that_no_query_needs_fails_with_the_reason(shop):
    pay = {"name": "pay", "description": "Pays a bill.", "parameters": {}}
    shop.workshop.write("functions.json", [pay])
    shop.catalogs = (
        '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n[catalogs.fin]\ntype = '
        '"functions"\npath = "functions.json"\n'
    )
    shop.configure(
        f'{QUERIES}rules = ["Recall@5 of catalog fin >= 0.1", "Recall@5 of kind open >= 0.9"]\n'
    )

    built = shop.build()

    assert built.rules == [False, True]
    assert built.gate["rules"][0]["reason"] == (
        "no golden query needs a tool of catalog fin, so this cannot be measured"
    )
    assert (shop.live, shop.releases) == (None, [built.release.id])
    assert "'live' names no release yet" in held_lines(built.details, "live")[0]


def test_the_configured_default_is_measured_and_stays(shop):
    shop.configure(FLOOR, NAMES)

    built = shop.build()

    assert not built.gate["passed"]
    assert built.gate["chosen"]["index"] == built.release.manifest["default_index"] == "names"
    assert "strategy" not in built.release.manifest


def test_golden_queries_without_a_gate_are_measured_and_hold_nothing(shop, queries, sabotaged):
    shop.lines(
        "golden.jsonl",
        [{**row, "query": f"{row['query']}{more}"} for row in queries for more in ("", " today")],
    )
    shop.configure(gate="", rest='[golden]\nqueries = "golden.jsonl"\n')
    first_build = shop.build()
    shop.sells(sabotaged)
    second_build = shop.build()

    assert first_build.rules == second_build.rules == []
    assert (second_build.gate["passed"], shop.live) == (True, second_build.release.id)
    assert "strategy" not in second_build.release.manifest
    chosen = second_build.gate["chosen"]
    assert chosen["value"] < first_build.gate["chosen"]["value"]
    thresholds = second_build.release.manifest["indexes"]["full"]["ranker"]["thresholds"]
    assert chosen["threshold"] == {"name": "accept_95", "probability": thresholds["accept_95"]}
    assert len(second_build.details["lost"]) == 4
    shop.lines(
        "golden.jsonl", queries + [{**row, "query": f"{row['query']} now"} for row in queries]
    )
    assert shop.build().release is None  # without [gate], queries make no release


def test_other_queries_make_another_release_and_other_rules_do_not(shop, queries):
    shop.configure(f"{QUERIES}rules = []\n")
    first_release = shop.build().release
    shop.configure(WHOLE)

    unchanged_build = shop.build()
    shop.lines("golden.jsonl", queries[:10])
    other_release = shop.build().release

    assert unchanged_build.release is None
    assert other_release.id != first_release.id
    assert other_release.tables == first_release.tables


def test_golden_queries_that_change_during_a_build_end_it(shop, publish_first, sabotaged, queries):
    live = publish_first(WHOLE).release.id
    shop.sells(sabotaged)
    configuration = shop.configuration
    run = shop.workshop.run(configuration, until="stage")
    shop.lines("golden.jsonl", queries[:10])

    with pytest.raises(ConfigurationError, match="changed while the build ran"):
        gate_release(configuration, run.plan, run.snapshots, run.spec, run.pins, {})
    assert shop.releases == [live]
