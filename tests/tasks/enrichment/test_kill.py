"""Kill -9 during the enrichment: what was paid for stays, and only the calls that were under way
are made again.

A run is killed at a boundary of its own writes, chosen at random, so that it is killed at work on a
fast machine and on a slow one."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tasks.enrichment.ledger import LakeLedger
from tests.children import end_child, start_child

WORKER = Path(__file__).parents[2] / "enrich_worker.py"
FULL = os.environ.get("PEGBOARD_TEST_SIZE") == "full"
KILLS = 20 if FULL else 5
TOOLS = 1_000 if FULL else 200
CONCURRENCY = 8

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(3600)]


class Worker:
    """A process that forks a child for every run."""

    def __init__(self, configuration, identities):
        pairs = [f"{catalog}={identity}" for catalog, identity in identities.items()]
        self.log = configuration.file.with_name("worker.err").open("w+")
        self.process = start_child(
            [sys.executable, str(WORKER), str(configuration.file), *pairs],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        assert self._line() == "ready"

    def run(self, deadly=0):
        """Enrich, and be killed at that boundary; returns the exit status."""
        self.process.stdin.write(f"{deadly}\n")
        self.process.stdin.flush()
        return int(self._line())

    def close(self):
        end_child(self.process)
        for pipe in (self.process.stdin, self.process.stdout, self.log):
            pipe.close()

    def _line(self):
        if line := self.process.stdout.readline():
            return line.rstrip("\n")
        self.log.seek(0)
        raise AssertionError(self.log.read())


def configured(workshop, llm, tools, extra):
    workshop.servers({"office": tools})
    configuration = workshop.configure(
        f'[enrich]\nmodel = "openai/scripted"\napi_base = "{llm.url}"\nproducts = ["questions"]\n'
        f"concurrency = {CONCURRENCY}\nquestions = 10\ntimeout = 600\n{extra}"
    )
    run = workshop.run(configuration, until="snapshot")
    return configuration, {snapshot.catalog: snapshot.digest for snapshot in run.snapshots}


def durable(workshop):
    """The tools of which the ledger holds a final reply."""
    return {
        entry.subject.rpartition("/")[2]
        for entry in LakeLedger(workshop.lake).load().all()
        if entry.final
    }


def calls(llm):
    """How often the LLM was called for each tool."""
    return Counter(event["subject"] for event in llm.events() if event["event"] == "began")


def test_kills_cost_no_more_than_the_calls_that_were_under_way(
    workshop, scripted_llm, thousand_tools
):
    tools = thousand_tools[:TOOLS]
    llm = scripted_llm("--delay", "0.05")
    configuration, identities = configured(workshop, llm, tools, "")
    dice, calls_when_durable = random.Random(20), {}
    with closing(Worker(configuration, identities)) as runs:
        for _ in range(KILLS):
            # Fewer replies than tools, all kills together.
            assert runs.run(dice.randint(1, TOOLS // KILLS - 1)) == -signal.SIGKILL
            made = calls(llm)
            for tool in durable(workshop) - calls_when_durable.keys():
                calls_when_durable[tool] = made[tool]
        assert calls_when_durable
        assert runs.run() == 0

    assert durable(workshop) == {tool["name"] for tool in tools}
    made = calls(llm)
    assert set(made) == durable(workshop)
    assert {
        tool: made[tool] for tool in calls_when_durable
    } == calls_when_durable  # never asked again
    # So many tools are at work at once: some are being asked about, of others the reply is being
    # written.
    assert made.total() - TOOLS <= KILLS * 2 * CONCURRENCY
