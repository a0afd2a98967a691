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


def test_rolling_back_to_a_release_that_failed_its_gate_works_and_warns(board, run):
    uri, failed = board
    run("promote feed", board=uri)

    printed = run("rollback", board=uri)

    assert (printed.code, printed.out) == (0, f"live is now release {failed} (generation 3)\n")
    assert printed.err.startswith(
        f"pegboard rollback: warning: release {failed} failed its gate and is live again; "
        "--to-last-good skips such releases: Recall@5 >= 0.9"
    )


def test_rolling_back_to_the_last_good_release_skips_those_that_failed(board, run):
    uri, failed = board
    store = ReleaseStore(uri)
    passed = {**GATE, "passed": True, "rules": [], "canaries": {"count": 12, "missed": 0}}
    manifest = {**store.get(failed).manifest, "gate": passed}
    good = replace(
        store.get(failed),
        id="900d900d900d",
        digest="900d900d900d" + "0" * 52,
        manifest=manifest,
    )
    store.add(good)
    for release in ("900d", failed, "feed"):
        assert run(f"promote {release}", board=uri).code == 0

    printed = run("rollback --to-last-good", board=uri)

    assert (printed.code, printed.err) == (0, "")
    assert store.channel().release == good.id


def test_without_a_good_release_to_go_back_to_nothing_moves(board, run):
    uri, failed = board
    run("promote feed", board=uri)

    printed = run("rollback --to-last-good", board=uri)

    assert printed.code == 4
    assert f"these did not: {failed}" in printed.err
    assert ReleaseStore(uri).channel().release == "feedfeedfeed"


def test_a_release_that_was_promoted_in_spite_of_its_gate_keeps_one_name(board, run):
    uri, failed = board

    def states():
        rows = run("releases list", board=uri).out.splitlines()
        return {row.split()[0]: [word for word in row.split() if word in ("failed", "held")]
                for row in rows if row.startswith((failed, "feed"))}  # fmt: skip

    assert states() == {failed: ["failed"], "feedfeedfeed": ["held"]}
    run("promote feed", board=uri)
    assert states() == {failed: ["failed"], "feedfeedfeed": ["failed"]}
    run("rollback", board=uri)
    assert states() == {failed: ["failed"], "feedfeedfeed": ["failed"]}
