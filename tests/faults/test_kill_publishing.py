"""Kill -9 at every step from encoding to pruning: readers stay on a whole release, and the next run
completes from the lake.

A killed run waits at an event of its steps, or comes to one at which it would wait, so a kill hits
the step that it is meant for, however slow or fast the machine is. Where in the step it hits is
chosen by what the step has written to the board until then."""

import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pegboard.encoders import load_encoder
from tasks.lake.files import Lake
from tasks.lake.vectors import known_texts
from tests.faults import world
from tests.faults.processes import wait_until

FULL = os.environ.get("PEGBOARD_TEST_SIZE") == "full"
KILLS = 100 if FULL else 10
BOARDS = 2
STEPS = ("embed_shard", "stage_tables", "publish_release", "prune_board")
# Before a step, or within it. Twice within those that write most.
POINTS = [
    *(("within", step) for step in STEPS),
    *(("before", step) for step in STEPS),
    ("within", "stage_tables"),
    ("within", "publish_release"),
]
FINGERPRINT = load_encoder(world.ENCODER).fingerprint
KEEP = "keep = { releases = 2, days = 0, grace_hours = 1e-9 }"


def paths(folder: str) -> set[str]:
    return {str(Path(parent, name)) for parent, _, names in os.walk(folder) for name in names}


def files_changed(board, n):
    """How many files of the board each step adds or removes in an undisturbed run."""
    ends = {f"{when} {step}": step for step in STEPS for when in ("begin", "end")}
    child, counts = board.start(n, list(ends)), Counter()
    for step in STEPS:
        board.wait_for(child, f"begin {step}")
        before = paths(board.uri)
        board.release(child, f"begin {step}")
        board.wait_for(child, f"end {step}")
        counts[step] = len(paths(board.uri) ^ before)
        board.release(child, f"end {step}")
    assert board.ended(child) == (0, "")
    return counts


def durable_texts(board):
    """The texts whose vectors are in the lake."""
    return set(known_texts(Lake(board.uri), FINGERPRINT).get_column("text_digest"))


def hold_of(point):
    """The event at which a run waits that is to be killed at that point."""
    when, step = point
    return f"begin {step}" if when == "before" else f"end {step}"


def wait_for_point(board, pid, point, changes):
    """Wait until a run is at the point: within a step, when so many files have changed."""
    when, step = point
    wait_until(lambda: board.has(pid, f"begin {step}"))
    if when == "within":
        before = paths(board.uri)
        wait_until(
            lambda: len(paths(board.uri) ^ before) >= changes or board.has(pid, f"end {step}")
        )


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_kills_at_every_step_break_no_board_and_every_run_after_one_completes(publisher, whole):
    boards = [publisher(KEEP) for _ in range(BOARDS)]

    def kill_runs(seed):
        """Kill runs of one board; returns how many files had changed at the point of each kill."""
        board, dice, killed = boards[seed], random.Random(seed), Counter()
        for n in range(3):  # from then on every prune removes a release
            board.publish(n)
        counts, old = files_changed(board, 3), 3
        points = [POINTS[kill % len(POINTS)] for kill in range(seed, KILLS, BOARDS)]
        for n, point in enumerate(points, start=4):
            child = board.start(n, [hold_of(point)])
            wait_for_point(board, child, point, dice.randint(0, counts[point[1]]))
            board.kill(child)
            killed[point] += 1

            whole(board, {old, n})  # a reader is on the release before or on the new one
            durable = durable_texts(board)
            end = board.publish(n)
            whole(board, {n})
            # Nothing that was durable before is encoded again.
            assert durable <= durable_texts(board)
            assert end["encoded"] == len(durable_texts(board) - durable)
            old = n
        return killed

    with ThreadPoolExecutor(BOARDS) as side_by_side:
        killed = sum(side_by_side.map(kill_runs, range(BOARDS)), Counter())

    print(f"{killed.total()} kills: {dict(killed)}")
    assert killed.total() == KILLS
    assert set(killed) == set(POINTS)
