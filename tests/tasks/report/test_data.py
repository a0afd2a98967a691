"""What a report says of a release, with and without a gate, a run, and a release before it."""

import json
from dataclasses import replace

from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import ReleaseStore
from tasks.enrichment.ledger import LakeLedger, StoredReply
from tasks.report.data import collisions_data, report_data
from tasks.report.storage import Reports


def test_a_held_release_says_so_and_which_rules_failed(board, held_data):
    assert held_data["verdict"]["state"] == "held"
    assert held_data["verdict"]["says"].startswith("1 of 2 rules failed. Recall@5 is ")
    assert held_data["verdict"]["says"].endswith("No channel moved to it.")
    assert [rule["passed"] for rule in held_data["gate"]["rules"]] == [True, False]
    assert held_data["gate"]["live"] == board.passed.id
    assert held_data["release"]["channels"] == []


def test_lost_queries_are_told_with_the_tools_that_changed(held_data):
    lost = held_data["queries"]["lost"]

    assert lost["total"] == len(lost["shown"]) > 0
    first = lost["shown"][0]
    needed = first["needed"][0]
    assert first["before"][needed] <= 5
    assert first["now"][needed] is None or first["now"][needed] > 5
    assert any(one["tool"].endswith(needed) for one in held_data["queries"]["changed"]["shown"])


def test_every_configuration_has_its_measures_and_the_live_release_stands_beside_them(held_data):
    systems = {(row["strategy"], row["index"]) for row in held_data["measures"]["rows"]}

    assert systems == {
        (strategy, index) for strategy in ("search", "clauses") for index in ("full", "fine")
    }
    assert held_data["measures"]["systems"] == 4
    assert {row["measure"] for row in held_data["measures"]["live"]} == {
        row["measure"] for row in held_data["measures"]["rows"]
    }
    assert [row["k"] for row in held_data["curve"]] == list(range(1, 21))
    kinds = {("kind", verb) for verb in ("open", "paint", "sell", "clean")}
    groups = {(group["by"], group["name"]) for group in held_data["groups"]["shown"]}
    assert groups == {("catalog", "kit"), *kinds}


def test_the_history_has_the_gate_of_every_release(board, held_data):
    assert [
        (one["release"], one["passed"], one["this"]) for one in held_data["history"]["shown"]
    ] == [
        (board.held.id, False, True),
        (board.passed.id, True, False),
    ]
    assert held_data["history"]["shown"][1]["channels"] == ["live"]


def test_what_changed_is_named_with_its_fields(board, held_data):
    changes = held_data["changes"]

    assert changes["against"] == board.passed.id
    assert changes["counts"] == {"added": 2, "removed": 1, "changed": 8, "unchanged": 12}
    assert changes["removed"] == {"total": 1, "shown": [{"id": "kit/roof/clean_roof"}]}
    assert changes["fields"] == [{"field": "description", "tools": 8}]
    assert changes["changed"]["shown"][0] == {
        "id": "kit/door/clean_door",
        "fields": [
            {
                "field": "description",
                "before": "Cleans the door of a customer.",
                "after": "Endpoint 7.",
            }
        ],
    }


def test_a_first_release_is_all_new(passed_data):
    assert passed_data["changes"]["against"] is None
    assert (
        passed_data["changes"]["counts"]["added"] == passed_data["changes"]["added"]["total"] == 21
    )
    assert passed_data["verdict"] == {
        "state": "passed",
        "title": "Passed the gate",
        "says": f"1 rule held, 1 rule not judged, 1 canary found. {_main(passed_data)} 21 new "
        f"tools.",
    }


def test_tools_whose_texts_are_alike_collide(held_data):
    pairs = held_data["collisions"]["pairs"]

    assert held_data["collisions"]["total"] >= len(pairs) > 0
    assert pairs == sorted(pairs, key=lambda one: -one["cosine"])
    assert {pairs[0][side]["id"] for side in ("first", "second")} == {
        "kit/fence/sell_fence",
        "kit/fence/sell_fences",
    }
    assert pairs[0]["first"]["description"] == "Sells the fence of a customer."


def test_collisions_are_not_looked_for_among_too_many_vectors(board):
    store = ReleaseStore(board.uri)

    told = collisions_data(LoadedRelease(store, board.held, 50_000), max_vectors=21)

    assert list(told) == ["missing"]
    assert "Index full has 22 vectors" in told["missing"]


def test_flagged_texts_and_rejected_rows_are_shown(held_data):
    assert [(one["id"], one["flags"]) for one in held_data["flagged"]["shown"]] == [
        ("kit/fence/leak", ["hidden-instructions"])
    ]
    assert held_data["rejected"]["total"] == 1
    assert held_data["rejected"]["shown"][0]["where"] == "servers.json: fence[7]"


def test_without_a_run_the_rejected_rows_are_found_in_the_lake(board):
    data = report_data(board.uri, board.held.id)

    assert data["run"] is None
    assert data["rejected"]["total"] == 1
    assert "name" in data["rejected"]["shown"][0]["why"]
    assert data["sources"][0]["problems"] == []


def test_rejected_rows_of_an_earlier_listing_are_only_counted(board, passed_data):
    assert passed_data["rejected"] == {"total": 0, "shown": [], "missing": None}
    assert passed_data["sources"][0]["problems"] is None


def test_a_run_of_another_release_tells_nothing(board):
    assert report_data(board.uri, board.passed.id, board.run)["run"] is None


def test_what_only_the_run_knew_is_remembered_by_the_report_before(board, held_data):
    again = report_data(board.uri, board.held.id, earlier=json.loads(json.dumps(held_data)))

    assert again["run"] == held_data["run"]
    assert again["llm"]["run"]["actual"]["cost_usd"] == 0.0047
    assert {**again, "made_at": ""} == json.loads(json.dumps({**held_data, "made_at": ""}))


def test_a_release_without_a_gate_says_how_to_have_one(board_uri):
    data = report_data(board_uri, _live(board_uri))

    assert data["verdict"]["state"] == "none"
    assert "[golden]" in data["gate"]["missing"]
    assert data["measures"]["rows"] == data["curve"] == []
    assert data["map"]["shown"] == 14


def test_a_predecessor_that_was_pruned_leaves_its_numbers(workshop, hashing):
    workshop.publish({"git": [workshop.tool("one")]}, encoder=hashing(8))
    last = workshop.publish(
        {"git": [workshop.tool("one"), workshop.tool("two")]}, encoder=hashing(8)
    ).release
    _forget(workshop, last.manifest["changes"]["against"])

    changes = report_data(workshop.uri, last.id)["changes"]

    assert "was pruned" in changes["missing"]
    assert set(changes["counts"]) == {"added", "removed", "changed", "unchanged"}


def test_a_gate_whose_details_are_gone_keeps_its_verdict(workshop, hashing):
    release = workshop.publish({"git": [workshop.tool("one")]}, encoder=hashing(8)).release
    gate = {
        "passed": True,
        "rules": [],
        "queries": 3,
        "canaries": {"asked": 0, "lost": 0},
        "details": "gates/gone.json",
    }
    _with_gate(workshop, release, gate)

    data = report_data(workshop.uri, release.id)

    assert data["verdict"]["state"] == "measured"
    assert "no longer in the lake" in data["measures"]["missing"]


def test_the_sums_of_the_ledger_are_there_without_a_run(workshop, hashing):
    release = workshop.publish({"git": [workshop.tool("one")]}, encoder=hashing(8)).release
    ledger = LakeLedger(workshop.lake)
    bought = {
        "step": "reply",
        "product": "topics",
        "subject": "s",
        "prompt": "p",
        "model": "m",
        "answered_by": "m",
    }
    ledger.add_all(
        [
            StoredReply(
                key="a",
                value="[]",
                final=True,
                prompt_tokens=100,
                completion_tokens=20,
                cost_usd=0.25,
                at="1",
                **bought,
            ),
            StoredReply(
                key="b",
                final=True,
                reason="refusal",
                prompt_tokens=50,
                completion_tokens=5,
                at="2",
                **bought,
            ),
        ]
    )
    ledger.close()

    told = report_data(workshop.uri, release.id)["llm"]["ledger"]

    assert (told["replies"], told["accepted"], told["unpriced"]) == (2, 1, 1)
    assert (told["prompt_tokens"], told["completion_tokens"], told["cost_usd"]) == (150, 25, 0.25)
    assert [(row["product"], row["replies"]) for row in told["rows"]] == [("topics", 2)]


def test_an_unreadable_part_is_missing_and_the_rest_is_there(workshop, hashing):
    release = workshop.publish({"git": [workshop.tool("one")]}, encoder=hashing(8)).release
    workshop.lake.write_text("ledger/" + "0" * 64 + ".parquet", "no table")

    data = report_data(workshop.uri, release.id)

    assert "cannot be read" in data["llm"]["missing"]
    assert data["map"]["shown"] == 1
    assert not Reports(workshop.uri).exists(f"{release.id}.json")


def _main(data):
    return f"Recall@5 is {data['gate']['chosen']['value']:.3f}."


def _live(uri):
    return ReleaseStore(uri).channel().release


def _forget(workshop, release):
    workshop.store.database.open_table("releases").delete(f"release = '{release}'")


def _with_gate(workshop, release, gate):
    assert workshop.store.update(replace(release, manifest={**release.manifest, "gate": gate}))
