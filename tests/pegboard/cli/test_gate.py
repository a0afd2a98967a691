"""What `pegboard releases` and `promote` print of a release that its gate holds."""

from dataclasses import replace

import pytest

from pegboard.store.releases import ReleaseStore

CHOSEN = {
    "index": "full",
    "strategy": "clauses",
    "measure": "Recall@5",
    "value": 0.84,
    "low": 0.8,
    "high": 0.88,
    "threshold": None,
}
BELOW = {
    "rule": "Recall@5 >= 0.9",
    "passed": False,
    "reason": "it is 0.840 over 300 queries, 0.060 too low",
}
SKIPPED = {
    "rule": "Recall@5 no worse than live",
    "passed": None,
    "reason": "no release is live to compare with",
}
GATE = {
    "passed": False,
    "at": "2026-01-02T03:04:05+00:00",
    "golden": "0" * 64,
    "queries": 300,
    "rules": [BELOW, SKIPPED],
    "canaries": {"count": 12, "missed": 1},
    "chosen": CHOSEN,
    "live": "abc",
    "details": "gates/x.json",
}


@pytest.fixture
def board(own_board_uri):
    """A board whose live release was promoted though its gate failed, and a held copy of it."""
    store = ReleaseStore(own_board_uri)
    live = store.get(store.channel().release)
    gated = replace(live, manifest={**live.manifest, "gate": GATE})
    store.update(gated)
    store.add(replace(gated, id="feedfeedfeed", digest="feedfeedfeed" + "0" * 52))
    return own_board_uri, live.id


def test_show_says_why_a_release_is_held(board, run):
    lines = run("releases show feed", board=board[0]).out.splitlines()

    assert [line for line in lines if line.startswith("gate ")] == [
        "gate      held, 2026-01-02T03:04:05+00:00: 300 golden queries, 12 canaries, against abc",
        "gate      Recall@5 0.840 [0.800, 0.880] by strategy clauses in index full",
        "gate      failed: Recall@5 >= 0.9: it is 0.840 over 300 queries, 0.060 too low",
        "gate      skipped: Recall@5 no worse than live: no release is live to compare with",
        "gate      failed: 1 of 12 canaries broke",
    ]


def test_promoting_a_held_release_works_and_warns(board, run):
    printed = run("promote feed", board=board[0])

    assert (printed.code, printed.out) == (0, "live is now release feedfeedfeed (generation 2)\n")
    assert printed.err == (
        "pegboard promote: warning: release feedfeedfeed failed its gate and was promoted all the "
        "same: "
        "Recall@5 >= 0.9: it is 0.840 over 300 queries, 0.060 too low; 1 of 12 canaries broke\n"
    )
