"""The gate at work: what is sabotaged is held and told, what is honest goes live, and nothing that
was published is lost.
"""

import json

import pytest

import pegboard
from pegboard.errors import PublishError
from pegboard.store.diff import diff_releases
from tasks.gate.words import held_headline, held_lines, measured_line
from tasks.settings.release import GateSettings

QUERIES = 'queries = "golden.jsonl"\nmeasures = ["Recall@5"]\n'
WHOLE = (
    f'{QUERIES}rules = ["Recall@5 >= 0.99", "Recall@5 no worse than live by more than 0.01 '
    f'with 95 % confidence"]\n'
)


def rules(built):
    return [(one["rule"], one["passed"]) for one in built.gated.gate["rules"]]


def test_a_first_release_is_judged_by_its_floors_and_not_against_what_is_not_there(shop):
    shop.configure(WHOLE)

    built = shop.build()

    assert built.gated.passed
    assert shop.live == built.release.id
    assert [one["passed"] for one in built.gated.gate["rules"]] == [True, None]
    assert built.gated.gate["rules"][1]["says"] == "not judged: no release is live"
    assert built.release.manifest["gate"] == built.gated.gate
    assert measured_line(built.details) == (
        "Golden queries: Recall@5 1.000 [1.000, 1.000] over 20 by strategy clauses in index full; "
        "1 of 2 rules hold."
    )


def test_a_sabotaged_release_is_held_and_the_message_names_the_queries_and_the_tools(
    shop, publish_first, sabotaged, swapped_ids, encoder
):
    first = publish_first(WHOLE).release
    shop.sells(sabotaged)

    held = shop.build()

    assert not held.gated.passed
    assert [one["passed"] for one in held.gated.gate["rules"]] == [False, False]
    assert (shop.live, shop.releases) == (first.id, [held.release.id, first.id])
    lost = {one["query"]: one for one in held.details["lost"]}
    assert lost["please open my door"]["before"] == {"tool_od": 1}
    assert lost["please open my door"]["now"]["tool_od"] > 5
    assert lost["please open my door"]["instead"] == ["kit/shop/tool_cb"]
    assert set(lost["please open my door"]["changed"]) == swapped_ids
    assert set(held.details["changes"]["changed"]) == swapped_ids
    assert {one["tool"] for one in held.details["changed"]} == swapped_ids
    assert held.details["changed"][0]["fields"]["description"] == {
        "before": "Opens the door of a customer.",
        "after": "Cleans the bicycle of a customer.",
    }
    said = "\n".join(held_lines(held.details, "live"))
    for part in (
        f"Release {held.release.id} did not pass its gate and is held; 'live' stays at release "
        f"{first.id}.",
        "rule failed: Recall@5 >= 0.99: it is 0.900 [0.750, 1.000] over 20 queries, 0.090 too low",
        '"please open my door" needs tool_od (rank 1 -> rank',
        "in front now: kit/shop/tool_cb",
        "tools against live",
        "0 new, 2 changed, 0 removed",
        "kit/shop/tool_od changed in description",
        'description: before "Opens the door of a customer.", after "Cleans the bicycle of a '
        'customer."',
        f"pegboard promote {held.release.id}",
    ):
        assert part in said
    assert held_headline(held.details, "live").count("\n") == 4
    # It can be opened, searched and compared, and what is live answers as before.
    board = pegboard.open(shop.workshop.uri, release=held.release.id, encoder=encoder)
    assert board.search("clean the bicycle", 1)[0].tool.name == "tool_od"
    diff = diff_releases(shop.workshop.store, first, held.release, neighbours=0)
    assert {one.id for one in diff.changed} == swapped_ids
    assert (
        pegboard.open(shop.workshop.uri, encoder=encoder)
        .search("clean the bicycle", 1)[0]
        .tool.name
        == "tool_cb"
    )


def test_an_honest_change_passes(shop, publish_first, tools):
    first = publish_first(WHOLE).release
    shop.sells(
        {**tools, "tool_od": "Opens the front door of a customer.", "tool_new": "Sends an invoice."}
    )

    built = shop.build()

    assert [one["passed"] for one in built.gated.gate["rules"]] == [True, True]
    assert (shop.live, built.gated.gate["live"]) == (built.release.id, first.id)
    assert "2 of 2 rules hold, 0 queries lost and 0 won" in measured_line(built.details)


def test_a_held_release_is_judged_again_by_other_rules_and_promoted_without_another_row(
    shop, publish_first, sabotaged
):
    first = publish_first(WHOLE).release
    shop.sells(sabotaged)
    held = shop.build()

    again = shop.build()
    shop.configure(f'{QUERIES}rules = ["Recall@5 >= 0.8"]\n')
    relaxed = shop.build()

    assert again.release == held.release  # nothing is written again, not even the time
    assert again.gated == held.gated
    assert relaxed.gated.passed
    assert (shop.live, shop.releases) == (held.release.id, [held.release.id, first.id])
    recorded = shop.workshop.store.get(held.release.id)
    assert recorded.manifest["gate"]["passed"]
    assert (recorded.tables, recorded.created_at) == (held.release.tables, held.release.created_at)
    assert shop.build().release is None  # it is live now, and nothing changed


def test_a_held_release_can_be_promoted_by_hand_and_is_live_then(shop, publish_first, sabotaged):
    publish_first(WHOLE)
    shop.sells(sabotaged)
    held = shop.build().release

    shop.workshop.store.promote(held.id)

    assert shop.build().release is None
    assert shop.live == held.id


def test_after_a_held_release_a_mended_source_goes_on_from_what_is_live(
    shop, publish_first, tools, sabotaged
):
    first = publish_first(WHOLE).release
    shop.sells(sabotaged)
    held = shop.build().release
    shop.sells({**tools, "tool_new": "Sends an invoice."})

    mended = shop.build()

    assert (mended.gated.passed, mended.gated.gate["live"]) == (True, first.id)
    assert shop.workshop.store.channel().history == (first.id,)
    assert set(shop.releases) == {first.id, held.id, mended.release.id}


def test_a_canary_that_is_not_found_holds_the_release_whatever_the_rules(shop, queries, tools):
    shop.lines(
        "canaries.jsonl", [queries[0], {"query": "please sell my roof", "tools": ["tool_sr"]}]
    )
    shop.configure(f'{QUERIES}canaries = "canaries.jsonl"\ncanary_k = 1\n')
    first = shop.build()
    shop.sells({**tools, "tool_od": "Does something else."})

    held = shop.build()

    assert first.gated.gate["canaries"] == {"asked": 2, "lost": 0}
    assert (held.gated.passed, held.gated.gate["canaries"]) == (False, {"asked": 2, "lost": 1})
    assert [one["query"] for one in held.details["broken"]] == ["please open my door"]
    said = "\n".join(held_lines(held.details, "live"))
    assert "1 of 2 canaries broke: not all their tools are among the first 1" in said
    assert '"please open my door" needs tool_od (rank 1 -> ' in said


def test_a_tool_that_went_counts_as_not_found_and_its_catalog_looks_no_better_for_it(
    shop, tools, queries
):
    shop.lines("golden.jsonl", [{**queries[0], "tools": ["kit/shop/tool_od"]}, queries[1]])
    shop.configure(f'{QUERIES}rules = ["Recall@5 of catalog kit >= 0.9"]\n')
    shop.build()
    shop.sells({name: text for name, text in tools.items() if name != "tool_od"})

    held = shop.build()

    assert held.gated.gate["rules"][0]["says"].startswith("it is 0.500 ")
    assert (held.details["unknown"], held.details["changes"]["removed"]) == (
        ["kit/shop/tool_od"],
        ["kit/shop/tool_od"],
    )
    assert "    kit/shop/tool_od is gone" in held_lines(held.details, "live")


def test_a_floor_about_a_catalog_that_no_query_needs_fails_with_a_clear_word(shop):
    shop.workshop.write(
        "functions.json", [{"name": "pay", "description": "Pays a bill.", "parameters": {}}]
    )
    catalogs = (
        '[catalogs.kit]\ntype = "mcp-dump"\npath = "servers.json"\n[catalogs.fin]\ntype = '
        '"functions"\npath = "functions.json"\n'
    )
    shop.configure(
        f'{QUERIES}rules = ["Recall@5 of catalog fin >= 0.1", "Recall@5 of kind open >= 0.9"]\n'
    )
    shop.catalogs = catalogs

    built = shop.build()

    assert rules(built) == [
        ("Recall@5 of catalog fin >= 0.1", False),
        ("Recall@5 of kind open >= 0.9", True),
    ]
    assert built.gated.gate["rules"][0]["says"] == (
        "no golden query needs a tool of catalog fin, so this cannot be measured"
    )
    assert (shop.live, shop.releases) == (None, [built.release.id])
    assert "'live' names no release yet" in held_headline(built.details, "live")


def test_the_best_plan_and_index_become_the_default_and_the_reader_uses_them(shop, encoder):
    # In the second index a tool is its name alone, by which no one finds it.
    names = '[[indexes]]\nname = "names"\nparts = ["name"]\n[[indexes]]\nname = "full"\n'
    shop.configure(
        f'{QUERIES}strategies = ["search", "clauses"]\nrules = ["Recall@5 >= 0.99"]\n', names
    )

    built = shop.build()

    assert built.release.manifest["default_index"] == "full"
    assert built.release.manifest["strategy"] == {
        "name": "search"
    }  # as good as clauses, and named before it
    assert (built.gated.gate["chosen"]["index"], built.gated.gate["chosen"]["strategy"]) == (
        "full",
        "search",
    )
    systems = {
        (row["index"], row["strategy"]): row["value"]
        for row in built.details["measures"]
        if row["measure"] == "Recall@5"
    }
    assert (
        systems["full", "search"] == systems["full", "clauses"] == 1.0 > systems["names", "search"]
    )
    board = pegboard.open(shop.workshop.uri, encoder=encoder)
    assert board.find("open the door", 1)[0].tool.name == "tool_od"


def test_of_equal_configurations_the_one_that_is_live_stays(shop, tools):
    shop.configure(
        f'{QUERIES}strategies = ["clauses", "search"]\n', '[find]\nstrategy = "search"\n'
    )
    first = shop.build().release
    shop.configure(f'{QUERIES}strategies = ["clauses", "search"]\n')
    second = shop.build().release

    assert [one.manifest["strategy"]["name"] for one in (first, second)] == ["search", "search"]
    assert first.id != second.id


def test_without_a_choice_the_configured_default_is_judged_and_stays(shop):
    names = '[[indexes]]\nname = "names"\nparts = ["name"]\n[[indexes]]\nname = "full"\n'
    shop.configure(f'{QUERIES}choose = false\nrules = ["Recall@5 >= 0.99"]\n', names)

    built = shop.build()

    assert not built.gated.passed
    assert built.gated.gate["chosen"]["index"] == built.release.manifest["default_index"] == "names"
    assert "strategy" not in built.release.manifest


def test_golden_queries_without_a_gate_are_measured_and_hold_nothing(shop, queries, sabotaged):
    shop.lines(
        "golden.jsonl",
        [{**one, "query": f"{one['query']}{more}"} for one in queries for more in ("", " today")],
    )
    shop.configure(gate="", rest='[golden]\nqueries = "golden.jsonl"\n')
    first = shop.build()
    shop.sells(sabotaged)
    second = shop.build()

    assert first.gated.gate["rules"] == second.gated.gate["rules"] == []
    assert (second.gated.passed, shop.live) == (True, second.release.id)
    assert "strategy" not in second.release.manifest
    assert second.gated.gate["chosen"]["value"] < first.gated.gate["chosen"]["value"]
    threshold = second.release.manifest["indexes"]["full"]["calibration"]["curves"]["hybrid"][
        "thresholds"
    ]["accept_95"]
    assert second.gated.gate["chosen"]["threshold"] == {
        "name": "accept_95",
        "mode": "hybrid",
        **threshold,
    }
    assert len(second.details["lost"]) == 4


def test_without_golden_queries_nothing_is_asked(shop):
    shop.configure(gate="")

    built = shop.build()

    assert built.gated is None
    assert "gate" not in built.release.manifest
    assert not shop.workshop.lake.walk("gates")


def test_identical_inputs_make_the_identical_release_and_rules_make_no_other(shop):
    shop.configure(f"{QUERIES}rules = []\n")
    first = shop.build().release
    shop.configure(WHOLE)

    again = shop.build()
    shop.configure(f'{QUERIES}strategies = ["search"]\n')
    other = shop.build().release

    assert again.release is None
    assert other.id != first.id
    assert other.tables == first.tables


def test_what_a_plan_cannot_be_asked_is_left_out_and_told_and_none_that_can_is_an_error(
    shop, queries
):
    shop.lines(
        "few.jsonl", [{**one, "query": f"{one['query']} {n}"} for one in queries for n in range(2)]
    )
    shop.lines("gone.jsonl", [{"query": f"how is life {n}", "tools": ["gone"]} for n in range(30)])
    golden = '[golden]\nqueries = "gone.jsonl"\n'
    shop.configure(f'{QUERIES}strategies = ["confident", "search"]\n', golden)
    able = shop.build()
    shop.configure(f'{QUERIES}strategies = ["confident"]\n', golden)

    assert able.release.manifest["strategy"] == {"name": "search"}
    assert able.details["not_measured"] == [
        "strategy 'confident' asks for probabilities, and index full is not calibrated"
    ]
    with pytest.raises(
        PublishError,
        match="no reader could ask this release: strategy 'confident' asks for probabilities",
    ):
        shop.build()


def test_the_details_have_what_a_report_needs(shop, queries):
    shop.configure('queries = "golden.jsonl"\n')
    built = shop.build()
    details = json.loads(json.dumps(built.details))

    assert {row["measure"] for row in details["measures"]} >= {
        "Recall@1",
        "Recall@5",
        "nDCG@10",
        "MRR@10",
    }
    assert {"strategy", "index", "encoder", "measure", "value", "low", "high", "n"} == set(
        details["measures"][0]
    )
    assert {row["kind"] for row in details["groups"] if "kind" in row} == {
        "open",
        "paint",
        "sell",
        "clean",
    }
    assert {row["catalog"] for row in details["groups"] if "catalog" in row} == {"kit"}
    assert [row["k"] for row in details["curve"]] == list(range(1, 21))
    assert details["curve"][0]["value"] <= details["curve"][4]["value"] == 1.0
    assert 10 < details["curve"][0]["tokens"] < details["curve"][1]["tokens"]
    assert details["release"] == built.release.id
    assert details["worst"] == []  # every query finds its tool first, or among the first five
    assert (details["lost"], details["won"]) == ([], {"count": 0, "first": []})
    assert details["details"] == built.gated.details


def test_the_defaults_of_a_gate():
    settings = GateSettings()

    assert (settings.choose, settings.canary_k, settings.rules, settings.queries) == (
        "Recall@5",
        5,
        (),
        None,
    )
