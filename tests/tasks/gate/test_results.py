"""Results are kept: nothing is searched or encoded twice; they serve when an encoder is gone."""

from dataclasses import replace

import pytest

from tasks.gate.details import read_details
from tasks.lake.vectors import known_texts
from tasks.prune import prune_board
from tasks.settings.configuration import KeepSettings

QUERIES = 'queries = "golden.jsonl"\nmeasures = ["Recall@5"]\n'
AGAINST = f'{QUERIES}rules = ["Recall@5 no worse than live by more than 0.01"]\n'
NOW = KeepSettings(releases=1, days=0, grace_hours=1e-9)


@pytest.fixture
def without_encoder(shop, publish_first, tools):
    """A shop whose live release was made by an encoder that is gone, and that has a new tool."""
    release = publish_first(AGAINST).release
    gone = {**release.manifest["indexes"]["full"], "encoder": "local/gone", "fingerprint": "gone"}
    indexes = {**release.manifest["indexes"], "full": gone}
    shop.workshop.store.update(replace(release, manifest={**release.manifest, "indexes": indexes}))
    shop.sells({**tools, "tool_new": "Sends an invoice."})
    return shop


def test_the_results_of_live_serve_when_its_encoder_is_gone(without_encoder):
    built = without_encoder.build()

    assert built.rules == [True]
    assert built.gated.gate["live"] == built.release.manifest["changes"]["against"]


def test_results_of_another_version_serve_only_if_the_search_fails(without_encoder):
    lake = without_encoder.workshop.lake
    pointers = lake.files("gates/answers", "json")
    for path in pointers:
        lake.write_json(path, {**lake.read_json(path), "by": "0.0.0"})

    built = without_encoder.build()

    assert built.rules == [True]
    assert {lake.read_json(path)["by"] for path in pointers} == {"0.0.0"}  # still the old results
    new = set(lake.files("gates/answers", "json")) - set(pointers)
    assert {lake.read_json(path)["by"] for path in new} != {"0.0.0"}


def test_without_encoder_and_results_the_rule_fails_with_the_reason(without_encoder):
    lake = without_encoder.workshop.lake
    for path in lake.walk("gates/answers"):
        lake.delete(path)

    held = without_encoder.build()

    assert held.rules == [False]
    assert "cannot be searched: There is no" in held.gated.gate["rules"][0]["reason"]
    assert held.details["live_trouble"] is not None
    assert held.details["lost"] == []


def test_damaged_results_are_replaced_by_a_new_search(shop, publish_first, tools):
    publish_first(AGAINST)
    for path in shop.workshop.lake.files("gates/answers"):
        shop.workshop.lake.write_text(path, "no table")
    shop.sells({**tools, "tool_new": "Sends an invoice."})

    assert shop.build().rules == [True]


def test_no_query_is_encoded_twice(shop, publish_first, tools, encoder):
    publish_first(AGAINST)
    vectors = known_texts(shop.workshop.lake, f"{encoder.fingerprint}, as queries")
    files = shop.workshop.lake.walk("vectors")
    shop.sells({**tools, "tool_od": "Opens the front door of a customer."})

    shop.build()

    assert vectors.height >= 20
    again = known_texts(shop.workshop.lake, f"{encoder.fingerprint}, as queries")
    assert again.height == vectors.height
    assert len(shop.workshop.lake.walk("vectors")) == len(files) + 1  # the tool's new text


def test_results_and_details_are_pruned_with_their_release(shop, tools, sabotaged):
    shop.configure(f'{QUERIES}rules = ["Recall@5 >= 0.99"]\n')
    first = shop.build().release
    shop.sells(sabotaged)
    held = shop.build().release
    shop.sells({**tools, "tool_new": "Sends an invoice."})
    live = shop.build().release
    lake = shop.workshop.lake
    before = set(lake.walk("gates"))

    for _ in range(3):
        prune_board(shop.workshop.uri, NOW)

    assert set(shop.releases) == {live.id, first.id}  # a rollback would not take the held one
    after = set(lake.walk("gates"))
    assert after < before
    assert not [path for path in after if held.id in path]
    details = read_details(shop.workshop.uri, shop.workshop.store.get(live.id))
    assert details["passed"]
    for path in details["answers"]:
        assert path in after
        assert lake.read_json(path)["answers"] in after
