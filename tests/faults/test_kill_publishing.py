"""Kill -9 at every step from encoding to pruning: readers stay on a whole release, and the next run
completes from the lake.

A killed run waits at an event of its steps, or comes to one at which it would wait, so a kill hits
the step that it is meant for, however slow or fast the machine is. Where in the step it hits is
chosen by what the step has written to the board until then."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from pegboard.encoders import load_encoder
from tasks.lake.files import Lake
from tasks.lake.vectors import known_texts
from tests.faults import world
from tests.faults.processes import Publisher, wait_until

FULL = os.environ.get("PEGBOARD_TEST_SIZE") == "full"
KILLS = 100 if FULL else 10
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
    holds = [f"{when} {step}" for step in STEPS for when in ("begin", "end")]
    run = board.start(n, holds)
    counts = Counter()
    for step in STEPS:
        board.wait_for(run, f"begin {step}")
        before = paths(board.uri)
        board.release(run, f"begin {step}")
        board.wait_for(run, f"end {step}")
        counts[step] = len(paths(board.uri) ^ before)
        board.release(run, f"end {step}")
    assert board.ended(run)["what"] == "end run"
    return counts


def durable_texts(board):
    """The texts whose vectors are in the lake."""
    return set(known_texts(Lake(board.uri), FINGERPRINT).get_column("text_digest"))


def wait_for_point(board, run, point, changes):
    """Wait until a run is at the point: within a step, when so many files have changed."""
    when, step = point
    board.wait_for(run, f"begin {step}")
    if when == "within":
        before = paths(board.uri)
        wait_until(
            lambda: len(paths(board.uri) ^ before) >= changes or board.has(run, f"end {step}")
        )


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_kills_at_every_step_break_no_board_and_every_run_after_one_completes(tmp_path):
    board = Publisher(tmp_path, KEEP)
    dice = random.Random(1)
    old = 3
    for n in range(old):  # from then on every prune removes a release
        board.publish(n)
    counts = files_changed(board, old)
    for kill in range(KILLS):
        n, (when, step) = kill + 4, POINTS[kill % len(POINTS)]
        run = board.start(n, [f"begin {step}" if when == "before" else f"end {step}"])
        wait_for_point(board, run, (when, step), dice.randint(0, counts[step]))
        board.kill(run)

        board.check({old, n})  # a reader is on the release before or on the new one
        durable = durable_texts(board)
        end = board.publish(n)
        board.check({n})
        # Nothing that was durable before is encoded again.
        assert durable <= durable_texts(board)
        assert end["encoded"] == len(durable_texts(board) - durable)
        old = n
