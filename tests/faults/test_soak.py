"""Publishes with adds, changes and removals, pruning on, while readers in other processes search
all the time.

What an answer may show follows from the order of events alone: a reader that has looked at the
channel since a release went live must not answer from an older one. How long anything takes decides
nothing."""

import os
import random
import time
from bisect import bisect_left
from dataclasses import dataclass

import pytest

from tests.faults import world
from tests.faults.processes import Publisher, Reader, wait_until

PUBLISHES = 200 if os.environ.get("PEGBOARD_TEST_SIZE") == "full" else 12
KEPT = 3
ROLLBACK = 0.1
# The second and the third share a board between callers, of which one looks at the channel while
# others answer.
READERS = (
    {"seed": 0, "workers": 1, "refresh": 0, "in_memory_rows": 50_000, "coroutines": False},
    {"seed": 1, "workers": 2, "refresh": 0.5, "in_memory_rows": 50_000, "coroutines": True},
    {"seed": 2, "workers": 2, "refresh": 0.5, "in_memory_rows": 0, "coroutines": False},
)


@dataclass(frozen=True)
class Move:
    """A move of the channel: the moments between which it happened, and its release since then."""

    began: float
    ended: float
    release: str


def published(end, events):
    """The move of a run that published."""
    assert end["outcome"] == "published"
    at = {event["what"]: event["at"] for event in events}
    return Move(at["begin publish_release"], at["end publish_release"], end["release"])


def rolled_back(store):
    began = time.monotonic()
    release = store.rollback().release
    return Move(began, time.monotonic(), release)


def check_content(answer, n):
    """The answer shows the n-th state of the world, and nothing of another."""
    content = world.content(n)
    assert all(content.get(tool) == text for tool, text in answer["hits"]), (n, answer)
    world.check_hits(answer["tool"], n, [tool for tool, _ in answer["hits"]])


def check_order(answer, moves, *, always_looks):
    """The answer's release is one that the channel named between what the reader knew before the
    search and after it.

    Generation g of the channel came with `moves[g - 1]`. If `always_looks`, the board has one
    caller and looks before every search."""
    ends = [move.ended for move in moves]
    assert answer["before"] >= bisect_left(ends, answer["looked"]), answer
    oldest = bisect_left(ends, answer["began"]) if always_looks else answer["before"]
    possible = moves[oldest - 1 : answer["after"]]
    (release,) = answer["releases"]
    assert release in [move.release for move in possible], (answer, possible)
    assert possible[-1].began <= answer["ended"], (answer, possible)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_publishes_under_readers_give_no_error_no_mixture_and_nothing_stale(tmp_path):
    board = Publisher(tmp_path, f"keep = {{ releases = {KEPT}, days = 0, grace_hours = 1e-9 }}")
    dice = random.Random(1)
    stop = tmp_path / "stop"
    end = board.publish(0)
    moves = [published(end, board.events())]
    rollbacks = 0
    waited_for = set()
    readers = [Reader(tmp_path, board.uri, stop, **options) for options in READERS]
    processes = [reader.process for reader in readers]

    for n in range(1, PUBLISHES):
        end = board.publish(n)
        moves.append(published(end, [event for event in board.events() if event["n"] == n]))
        if rollback := dice.random() < ROLLBACK:
            moves.append(rolled_back(board.store))
            rollbacks += 1
        # Not after each, so that readers may skip a release; often enough that what they read is
        # never pruned.
        if rollback or n % 2:
            wait_until(
                lambda: all(reader.has_answered_from(len(moves)) for reader in readers), *processes
            )
            waited_for.add(moves[-1].release)
    stop.touch()
    answers = [reader.finish() for reader in readers]

    assert board.store.channel().generation == len(moves)
    states = board.states()
    for reader, several in zip(readers, answers, strict=True):
        for answer in several:
            assert len(answer["releases"]) == 1, answer
            check_content(answer, states[answer["releases"][0]])
            check_order(answer, moves, always_looks=reader.options["refresh"] == 0)
        assert waited_for <= {answer["releases"][0] for answer in several}
    print(f"{PUBLISHES} publishes, {rollbacks} rollbacks, {sum(map(len, answers))} answers")
    assert rollbacks
    assert len(board.store.all()) <= 2 * KEPT + 1  # pruning keeps up
