"""Kill -9 at random moments: what was paid for stays, and only the calls under way are made again."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tasks.enrichment.ledger import Ledger

WORKER = Path(__file__).parents[2] / "enrich_worker.py"
KILLS = 20
CONCURRENCY = 16


class Worker:
    """A process that forks a child for every run."""

    def __init__(self, configuration, identities):
        pairs = [f"{catalog}={identity}" for catalog, identity in identities.items()]
        command = [sys.executable, str(WORKER), str(configuration.file), *pairs]
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout.readline() == "ready\n"

    def start(self):
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def ended(self):
        return int(self.process.stdout.readline().split()[1])


@contextmanager
def worker(configuration, identities):
    one = Worker(configuration, identities)
    try:
        yield one
    finally:
        one.process.stdin.close()
        one.process.wait(timeout=30)
        one.process.stdout.close()
        one.process.stderr.close()


def configured(workshop, llm, tools, extra):
    workshop.servers({"office": tools})
    configuration = workshop.configure(
        f'[enrich]\nmodel = "openai/scripted"\napi_base = "{llm.url}"\nproducts = ["questions"]\n'
        f"concurrency = {CONCURRENCY}\nquestions = 10\n{extra}"
    )
    run = workshop.run(configuration, until="snapshot")
    return configuration, {one.catalog: one.digest for one in run.snapshots}


def wait_until(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.01)


def written(workshop):
    """Lines in the journals, which is what the runs that were killed leave."""
    return sum(path.read_bytes().count(b"\n") for path in (workshop.folder / "board/lake/ledger/open").glob("*.jsonl"))


def kept(workshop):
    """The tools of which the ledger holds a final reply."""
    return {entry.subject.rpartition("/")[2] for entry in Ledger(workshop.lake).load().all() if entry.final}


@pytest.mark.slow
def test_twenty_kills_cost_no_more_than_the_calls_that_were_under_way(workshop, scripted_llm, thousand_tools):
    llm = scripted_llm("--delay", "0.05")
    configuration, identities = configured(workshop, llm, thousand_tools, "")
    dice = random.Random(20)
    lost = Counter()
    with worker(configuration, identities) as runs:
        for _ in range(KILLS):
            goal = written(workshop) + dice.randint(0, 60)
            child = runs.start()
            wait_until(lambda goal=goal: written(workshop) >= goal)
            time.sleep(dice.uniform(0, 0.05))
            os.kill(child, signal.SIGKILL)
            assert runs.ended() == -signal.SIGKILL
            time.sleep(0.2)  # the server may still be writing replies that nobody reads
            under_way = {subject for _, subject, _ in llm.paid()} - kept(workshop)
            assert len(under_way) <= CONCURRENCY
            lost.update(under_way)
        finished = len(kept(workshop))
        assert 100 < finished < 1_000  # the kills fell into the run, not before or after it
        runs.start()
        assert runs.ended() == 0

    assert len(kept(workshop)) == 1_000
    paid = Counter(subject for _, subject, _ in llm.paid())
    assert set(paid) == {tool["name"] for tool in thousand_tools}
    assert sum(paid.values()) == 1_000 + sum(paid[subject] - 1 for subject in paid)
    repeated = {subject for subject, count in paid.items() if count > 1}
    assert repeated <= set(lost)
    assert sum(paid.values()) - 1_000 <= sum(lost.values()) <= KILLS * CONCURRENCY


@pytest.mark.slow
def test_batches_survive_twenty_kills_and_are_paid_for_once(workshop, scripted_llm, thousand_tools):
    llm = scripted_llm("--batch-delay", "1.5")
    extra = 'mode = "batch"\nbatch_requests = 100\nbatch_wait = 60\nmax_reply_tokens = 600\n'
    configuration, identities = configured(workshop, llm, thousand_tools, extra)
    dice = random.Random(21)
    with worker(configuration, identities) as runs:
        for _ in range(KILLS):
            seen = len(llm.log.read_text("utf-8"))
            child = runs.start()
            wait_until(lambda seen=seen: len(llm.log.read_text("utf-8")) > seen or len(kept(workshop)) == 1_000)
            time.sleep(dice.uniform(0, 0.3))
            with suppress(ProcessLookupError):  # it had ended by itself
                os.kill(child, signal.SIGKILL)
            assert runs.ended() in (-signal.SIGKILL, 0)
        runs.start()
        assert runs.ended() == 0

    assert len(kept(workshop)) == 1_000
    assert Counter(Counter(subject for _, subject, _ in llm.paid()).values()) == {1: 1_000}
    assert workshop.lake.files("ledger/batches", "json") == []
