"""Two publishers of one board at once: one wins, and the other fails and changes nothing that
readers see.
"""

import os

import pytest

from pegboard.errors import PromotionConflict

FULL = os.environ.get("PEGBOARD_TEST_SIZE") == "full"
ROUNDS = 20 if FULL else 4
PLANNED = "begin stage_tables"


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_of_two_publishers_at_once_at_most_one_wins_and_the_other_changes_nothing(publisher, whole):
    board = publisher()
    board.publish(0)
    live, winners = 0, 0
    for number in range(1, ROUNDS + 1):
        children = {board.start(n, [PLANNED]): n for n in (2 * number - 1, 2 * number)}
        for child in children:
            board.wait_for(child, PLANNED)
        before = board.store.channel()
        for child in children:  # both planned against the same release; now both write
            board.release(child, PLANNED)

        ends = {n: board.ended(child) for child, n in children.items()}

        won = [n for n, (status, _) in ends.items() if status == 0]
        assert len(won) <= 1, ends
        assert all("Nothing was" in error for status, error in ends.values() if status != 0), ends
        now = board.store.channel()
        assert now.generation == before.generation + len(won)
        live = whole(board, set(won) or {live})
        winners += len(won)
    print(f"{winners} of {ROUNDS} rounds had a winner")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_loser_of_a_race_publishes_when_it_runs_again(publisher, whole):
    board = publisher()
    board.publish(0)
    late = board.start(1, [PLANNED])
    board.wait_for(late, PLANNED)
    board.publish(2)
    releases = {release.id for release in board.store.all()}
    board.release(late, PLANNED)

    status, error = board.ended(late)

    assert (status, error.partition(":")[0]) == (PromotionConflict.exit_code, "PromotionConflict")
    assert {release.id for release in board.store.all()} == releases
    whole(board, {2})
    board.publish(1)
    whole(board, {1})
