"""Two publishers of one board at once: one wins, and the other changes nothing that readers see."""

import os

import pytest

from pegboard.errors import PromotionConflict
from tests.faults.processes import Publisher

ROUNDS = 20 if os.environ.get("PEGBOARD_TEST_SIZE") == "full" else 3
PLANNED = "begin stage_tables"


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_of_two_publishers_at_most_one_wins_and_the_loser_may_run_again(tmp_path):
    board = Publisher(tmp_path)
    board.publish(0)
    for number in range(1, ROUNDS + 1):
        states = (2 * number - 1, 2 * number)
        runs = {n: board.start(n, [PLANNED]) for n in states}
        for run in runs.values():
            board.wait_for(run, PLANNED)  # both planned against the same release
        before = board.store.channel().generation
        live = board.check(set(range(states[0])))
        for run in runs.values():
            board.release(run, PLANNED)

        ends = {n: board.ended(run) for n, run in runs.items()}

        won = [n for n in states if ends[n]["what"] == "end run"]
        lost = [n for n in states if n not in won]
        assert len(won) <= 1, ends
        assert all("Nothing was" in ends[n]["text"] for n in lost), ends
        assert {runs[n].exitcode for n in lost} <= {PromotionConflict.exit_code}, ends
        assert board.store.channel().generation == before + len(won)
        board.check(set(won) or {live})
        board.publish(lost[0])
        board.check({lost[0]})
