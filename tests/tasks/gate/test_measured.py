"""What is remembered of what releases found: nothing is asked twice, and what an encoder said
serves when it is gone.
"""

from dataclasses import replace

import pytest

from tasks.gate.details import read_details
from tasks.lake.vector_files import known_texts
from tasks.prune import prune_board
from tasks.settings.configuration import KeepSettings

AGAINST = (
    'queries = "golden.jsonl"\nmeasures = ["Recall@5"]\nrules = ["Recall@5 no worse than '
    'live by more than 0.01"]\n'
)
NOW = KeepSettings(releases=1, days=0, grace_hours=1e-9)


@pytest.fixture
def without_encoder(shop, publish_first, tools):
    """A shop whose live release was made by an encoder that nobody has any more, and that has a new
    tool since.
    """
    release = publish_first(AGAINST).release
    gone = {**release.manifest["indexes"]["full"], "encoder": "local/gone", "fingerprint": "gone"}
    indexes = {**release.manifest["indexes"], "full": gone}
    shop.workshop.store.update(replace(release, manifest={**release.manifest, "indexes": indexes}))
    shop.sells({**tools, "tool_new": "Sends an invoice."})
    return shop


def only_rule(built):
    (rule,) = built.gated.gate["rules"]
    return rule


def test_what_live_found_when_it_was_staged_serves_when_its_encoder_is_gone(without_encoder):
    built = without_encoder.build()

    assert only_rule(built)["passed"]
    assert built.gated.gate["live"] == built.release.manifest["changes"]["against"]


def test_what_an_earlier_version_of_the_library_found_serves_only_if_it_cannot_be_asked_again(
    without_encoder,
):
    lake = without_encoder.workshop.lake
    pointers = lake.files("gates/answers", "json")
    for path in pointers:
        lake.write_json(path, {**lake.read_json(path), "by": "0.0.0"})

    built = without_encoder.build()

    assert only_rule(built)["passed"]
    assert {lake.read_json(path)["by"] for path in pointers} == {
        "0.0.0"
    }  # the answers are still the old ones
    new = set(lake.files("gates/answers", "json")) - set(pointers)
    assert {lake.read_json(path)["by"] for path in new} != {"0.0.0"}


def test_without_encoder_and_answers_the_rule_fails_with_the_reason(without_encoder):
    lake = without_encoder.workshop.lake
    for path in lake.walk("gates/answers"):
        lake.delete(path)

    held = without_encoder.build()

    assert only_rule(held)["passed"] is False
    assert "which is live, could not be asked: There is no" in only_rule(held)["says"]
    assert held.details["live_trouble"] is not None
    assert held.details["lost"] == []


def test_a_damaged_answer_is_asked_again(shop, publish_first, tools):
    publish_first(AGAINST)
    for path in shop.workshop.lake.files("gates/answers"):
        shop.workshop.lake.write_text(path, "no table")
    shop.sells({**tools, "tool_new": "Sends an invoice."})

    assert only_rule(shop.build())["passed"]


def test_no_query_is_encoded_twice(shop, publish_first, tools, encoder):
    publish_first(AGAINST)
    kept = known_texts(shop.workshop.lake, f"{encoder.fingerprint}, as queries")
    files = shop.workshop.lake.walk("vectors")
    shop.sells({**tools, "tool_od": "Opens the front door of a customer."})

    shop.build()

    assert kept.height >= 20
    again = known_texts(shop.workshop.lake, f"{encoder.fingerprint}, as queries")
    assert again.height == kept.height
    assert len(shop.workshop.lake.walk("vectors")) == len(files) + 1  # the tool's new text


def test_what_a_gate_left_in_the_lake_goes_with_its_release_and_what_live_needs_stays(
    shop, tools, sabotaged
):
    shop.configure(
        'queries = "golden.jsonl"\nmeasures = ["Recall@5"]\nrules = ["Recall@5 >= 0.99"]\n'
    )
    first = shop.build().release
    shop.sells(sabotaged)
    held = shop.build().release
    shop.sells({**tools, "tool_new": "Sends an invoice."})
    live = shop.build().release
    lake = shop.workshop.lake
    before = set(lake.walk("gates"))

    for _ in range(3):
        prune_board(shop.workshop.uri, NOW)

    assert {live.id, first.id} == set(
        shop.releases
    )  # the held one is not what a rollback would take
    after = set(lake.walk("gates"))
    assert after < before
    assert not [path for path in after if held.id in path]
    assert read_details(shop.workshop.uri, shop.workshop.store.get(live.id))["passed"]
    named = read_details(shop.workshop.uri, live)["answers"]
    assert all(path in after and lake.read_json(path)["answers"] in after for path in named)
