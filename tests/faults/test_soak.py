"""Two hundred publishes with adds, changes and removals, pruning on, while readers in other processes ask all the time."""

import json
import random
import subprocess
import sys
import time
from bisect import bisect_right
from pathlib import Path

import pytest

PUBLISHES = 200
REFRESH = 0.5
READER = Path(__file__).parent / "reader.py"


class Reader:
    """A process that asks all the time."""

    def __init__(self, folder, uri, stop, seed, in_memory_rows):
        self.answers = folder / f"answers-{seed}.jsonl"
        self.errors = (folder / f"reader-{seed}.err").open("w+")
        command = [sys.executable, str(READER), uri, str(REFRESH), str(in_memory_rows)]
        self.process = subprocess.Popen(
            [*command, str(self.answers), str(stop), str(seed)], stderr=self.errors, stdout=subprocess.DEVNULL
        )

    def finish(self):
        status = self.process.wait(timeout=60)
        self.errors.seek(0)
        said = self.errors.read()
        self.errors.close()
        assert status == 0, said
        return [json.loads(line) for line in self.answers.read_text().splitlines()]


def timeline(publisher, moves):
    """(when, release), in order: since when a release can have been the channel's, by what moved it."""
    states = [event for event in publisher.events() if event["what"] in ("publish", "published")]
    releases = {event["n"]: event["release"] for event in publisher.events() if event["what"] == "planned"}
    spans, open_since = [], {}
    for event in states:
        if event["what"] == "publish":
            open_since[event["n"]] = event["at"]
        else:
            spans.append([open_since[event["n"]], event["at"], releases[event["n"]]])
    spans += [[began, ended, release] for began, ended, release in moves]
    return sorted(spans)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_two_hundred_publishes_under_readers_give_no_error_no_mixture_and_nothing_stale(publisher, world, tmp_path):
    one = publisher("keep = { releases = 3, days = 0, grace_hours = 0.001 }")
    one.publish(0)
    stop, dice, moves = tmp_path / "stop", random.Random(1), []
    readers = [Reader(tmp_path, one.uri, stop, seed, rows) for seed, rows in ((0, 50_000), (1, 50_000), (2, 0))]
    try:
        for n in range(1, PUBLISHES):
            one.publish(n)
            if dice.random() < 0.05:
                began = time.time()
                channel = one.store.rollback()
                moves.append((began, time.time(), channel.release))
        time.sleep(2 * REFRESH)
    finally:
        stop.touch()
        answers = [reader.finish() for reader in readers]

    spans = timeline(one, moves)  # a release is the channel's from somewhere in [began, ended] until the next one's
    starts = [span[0] for span in spans]
    states = {event["release"]: event["n"] for event in one.events() if event["what"] == "planned"}
    seen, checked = set(), 0
    for answer in (answer for several in answers for answer in several):
        assert len(answer["releases"]) == 1, answer
        (release,) = answer["releases"]
        n = states[release]
        content, identity = world.content(n), world.identity(answer["tool"])
        assert all(content.get(tool) == text for tool, text in answer["hits"]), (n, answer)
        found = [tool for tool, _ in answer["hits"]]
        assert found[0] == identity if world.exists(answer["tool"], n) else identity not in found, (n, answer)
        first = bisect_right(starts, answer["ended"])
        current = [
            spans[at][2] for at in range(first) if at + 1 == len(spans) or spans[at + 1][1] >= answer["began"] - REFRESH
        ]
        assert release in current, (release, current[-5:], answer)
        seen.add(release)
        checked += 1
    print(f"{PUBLISHES} publishes, {len(moves)} rollbacks, {checked} answers from {len(seen)} releases")
    assert checked > 2_000
    assert len(seen) > PUBLISHES / 4
    assert len(one.store.all()) < 30  # pruning kept up
