"""Results are kept: nothing is searched or encoded twice; they serve when an encoder is gone."""

from dataclasses import replace

import pytest

from tasks.gate.results import read_details
from tasks.lake.vectors import known_texts
from tasks.settings.configuration import KeepSettings
from tasks.steps.prune import prune_board

QUERIES = 'queries = "golden.jsonl"\n'
AGAINST = f'{QUERIES}rules = ["Recall@5 no worse than live by more than 0.01"]\n'
NOW = KeepSettings(releases=1, days=0, grace_hours=1e-9)
RESULTS = "gates/answers"


@pytest.mark.parametrize("stored", [True, False])
def test_when_the_encoder_of_live_is_gone_its_stored_results_serve_or_the_rule_says_why(
    shop, publish_first, tools, stored
):
    release = publish_first(AGAINST).release
    missing_encoder = {
        **release.manifest["indexes"]["full"],
        "encoder": "local/gone",
        "fingerprint": "gone",
    }
    indexes = {**release.manifest["indexes"], "full": missing_encoder}
    shop.workshop.store.update(replace(release, manifest={**release.manifest, "indexes": indexes}))
    shop.sells({**tools, "tool_new": "Sends an invoice."})
    for path in shop.workshop.lake.files(RESULTS) if not stored else ():
        shop.workshop.lake.delete(path)

    built = shop.build()

    assert built.rules == [stored]
    assert (built.details["live_trouble"] is None) == stored
    assert stored or "cannot be searched: There is no" in built.gate["rules"][0]["reason"]
    assert built.details["lost"] == []


def test_damaged_results_are_replaced_and_no_query_is_encoded_twice(
    shop, publish_first, tools, encoder
):
    publish_first(AGAINST)
    lake = shop.workshop.lake
    queries = f"{encoder.fingerprint}, as queries"
    vectors = known_texts(lake, queries)
    files = lake.walk("vectors")
    for path in lake.files(RESULTS):
        lake.write_text(path, "no table")
    shop.sells({**tools, "tool_od": "Opens the front door of a customer."})

    assert shop.build().rules == [True]

    assert known_texts(lake, queries).height == vectors.height >= 20
    assert len(lake.walk("vectors")) == len(files) + 1  # the tool's new text


def test_results_and_details_are_pruned_with_their_release(shop, tools, sabotaged):
    shop.configure(f'{QUERIES}rules = ["Recall@5 >= 0.99"]\n')
    first_release, held_release, live_release = (
        (shop.sells(offered), shop.build().release)[1]
        for offered in (tools, sabotaged, {**tools, "tool_new": "Sends an invoice."})
    )
    lake = shop.workshop.lake
    files = set(lake.walk("gates"))

    for _ in range(3):
        prune_board(shop.workshop.uri, NOW)

    assert set(shop.releases) == {
        live_release.id,
        first_release.id,
    }  # a rollback would not take the held one
    remaining_files = set(lake.walk("gates"))
    assert remaining_files < files
    assert not [path for path in remaining_files if held_release.id in path]
    details = read_details(shop.workshop.uri, shop.workshop.store.get(live_release.id))
    assert details["passed"]
    assert remaining_files >= {*details["answers"]}
