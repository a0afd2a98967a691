"""Kill -9 at random points of publishing and pruning: readers stay on a whole release, and the next run completes."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

KILLS = 100
BOARDS = 2


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_hundred_kills_break_no_board_and_every_run_after_one_completes(publisher, whole, wait_until, kill):
    def torment(seed):
        """Kill some of the runs of one board; returns the last step that each of them had begun."""
        dice, reached, one = random.Random(seed), Counter(), boards[seed]
        one.publish(0)
        one.publish(1)
        times = {event["what"]: event["at"] for event in one.events() if event["n"] == 1}
        length, old = times["pruned"] - times["stage"], 1
        for n in range(2, 2 * KILLS // BOARDS + 2):
            if sum(reached.values()) - reached["ended before"] == KILLS // BOARDS:
                break
            child = one.start(n)
            wait_until(lambda child=child: any(event["what"] == "stage" for event in one.events(child)))
            time.sleep(dice.uniform(0, length))
            kill(child)
            status, said = one.ended(child)
            assert status in (-9, 0), said
            reached[one.events(child)[-1]["what"] if status else "ended before"] += 1

            assert whole(one, {old, n}) in (old, n)  # a reader is on a whole release, the one before or the new one
            one.publish(n)
            old = whole(one, {n})
        return reached

    boards = [publisher("keep = { releases = 2, days = 0, grace_hours = 0.0005 }") for _ in range(BOARDS)]
    with ThreadPoolExecutor(BOARDS) as side_by_side:
        reached = sum(side_by_side.map(torment, range(BOARDS)), Counter())

    killed = sum(reached.values()) - reached["ended before"]
    print(f"{killed} kills fell into a run; the last step begun: {dict(reached)}")
    assert killed == KILLS
    assert reached["stage"] > 10
    assert reached["publish"] + reached["published"] > 3
