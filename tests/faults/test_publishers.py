"""Two publishers of one board at once: one wins, and the other changes nothing that readers see."""

import os

import pytest

from pegboard.errors import PromotionConflict

ROUNDS = 20 if os.environ.get("PEGBOARD_TEST_SIZE") == "full" else 2
PLANNED = "begin stage_tables"


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after the other"])
def test_of_two_publishers_at_most_one_wins_and_the_loser_may_run_again(publisher, whole, at_once):
    board = publisher()
    board.publish(0)
    live = 0
    for number in range(1, ROUNDS + 1):
        states = (2 * number - 1, 2 * number)
        children = {board.start(n, [PLANNED]): n for n in states}
        for child in children:
            board.wait_for(child, PLANNED)  # both planned against the same release
        before = board.store.channel()
        ends = {}
        for child, n in children.items():
            board.release(child, PLANNED)
            if not at_once:
                ends[n] = board.ended(child)

        ends |= {n: board.ended(child) for child, n in children.items()}

        won = [n for n, (status, _) in ends.items() if status == 0]
        lost = {n: end for n, end in ends.items() if end[0] != 0}
        assert len(won) <= 1, ends
        assert all("Nothing was" in error for _, error in lost.values()), ends
        assert board.store.channel().generation == before.generation + len(won)
        live = whole(board, set(won) or {live})
        if not at_once:
            assert won == [states[0]], ends
            assert lost[states[1]][0] == PromotionConflict.exit_code
            board.publish(states[1])
            live = whole(board, {states[1]})
