"""Many tools against a server that fails in every way, and runs that are killed: all tools are
written about, and none is paid for twice.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import product

import pytest

from tasks.enrichment.ledger import LakeLedger
from tasks.steps.enrich import enrich_tools
from tests.children import start_child
from tests.openai_server import LITELLM_WARNINGS
from tests.scripted_llm import scripted_llm

pytestmark = LITELLM_WARNINGS

VERBS = (
    "archive", "open", "close", "approve", "print",
    "send", "check", "cancel", "copy", "sort",
)  # fmt: skip
THINGS = (
    "invoice", "contract", "order", "ticket", "report",
    "permit", "receipt", "letter", "claim", "quote",
)  # fmt: skip
PLACES = (
    "bakery", "harbour", "museum", "school", "garage",
    "clinic", "theatre", "library", "brewery", "station",
)  # fmt: skip
THOUSAND_TOOLS = [
    {
        "name": f"{verb}_{place}_{thing}",
        "description": f"Lets you {verb} a {thing} of the {place}.",
        "inputSchema": {"type": "object", "properties": {"reference": {"type": "string"}}},
    }
    for verb, thing, place in product(VERBS, THINGS, PLACES)
]
HTTP_FAILURES = {"429", "500", "503", "529", "hang", "cut"}
BAD_REPLIES = {"not-json", "refusal", "wrong-tool", "unfinished"}
NAMED_IN_REPLIES = {"send_harbour_letter", "open_school_order"}
"""Tools whose names the script writes into replies about others."""
FULL = os.environ.get("PEGBOARD_TEST_SIZE") == "full"
KILLS = 20 if FULL else 3
CONCURRENCY = 8


def configure(workshop, llm, tools, options):
    workshop.servers({"office": tools})
    return workshop.configure(
        f'[enrich]\nmodel = "openai/scripted"\napi_base = "{llm.url}"\nproducts = ["questions"]\n'
        f"{options}"
    )


@pytest.mark.parametrize(
    ("every", "options", "timeout", "failures"),
    [
        # Of these tools the script lets none hang, so that nothing depends on a timeout.
        (17, {}, 500, HTTP_FAILURES - {"hang"}),
        pytest.param(
            1 if FULL else 5,
            {"delay": 0.02, "hang": 60},
            15,
            HTTP_FAILURES,
            marks=[pytest.mark.slow, pytest.mark.soak],
        ),
    ],
)
def test_every_tool_is_enriched_and_none_is_paid_for_twice(
    workshop, every, options, timeout, failures
):
    tools = [
        tool
        for at, tool in enumerate(THOUSAND_TOOLS)
        if at % every == 0 or tool["name"] in NAMED_IN_REPLIES
    ]
    with scripted_llm(trouble=True, **options) as llm:
        limits = f"concurrency = 32\ntimeout = {timeout}\nattempts = 10\n"
        configuration = configure(workshop, llm, tools, limits)
        run = workshop.run(configuration, until="snapshot")

        result = enrich_tools(
            configuration, {snapshot.catalog: snapshot.digest for snapshot in run.snapshots}
        )

    outcomes = Counter(entry["outcome"] for entry in llm.log)
    assert set(outcomes) == failures | BAD_REPLIES | {"good"}
    assert_paid_once(result, llm, tools, outcomes)


def assert_paid_once(result, llm, tools, outcomes):
    """Check that every tool has one accepted or two rejected replies, and that all calls count."""
    good = Counter(entry["subject"] for entry in llm.paid() if entry["outcome"] == "good")
    bad = Counter(entry["subject"] for entry in llm.paid() if entry["outcome"] in BAD_REPLIES)
    assert max(good.values()) == 1
    twice_bad = {subject for subject, count in bad.items() if count == 2}
    assert set(good) | twice_bad == {tool["name"] for tool in tools}
    assert not set(good) & twice_bad  # repaired once, then rejected
    assert max(bad.values()) == 2

    assert result.problems == ()
    assert result.actual["accepted"] == {"questions": len(good)}
    assert sum(result.actual["rejected"]["questions"].values()) == len(twice_bad)
    assert result.actual["replies"] == sum(good.values()) + sum(bad.values())
    calls = Counter(result.actual["calls"])
    # Where the HTTP client is late, ours ends the call, which then has no status.
    calls["408 timeout"] += calls.pop("timeout", 0)
    assert calls["500 server"] == outcomes["500"] + outcomes["cut"]
    codes = {"429 rate": "429", "503 server": "503", "529 server": "529", "408 timeout": "hang"}
    assert {name: calls[name] for name in codes} == {
        name: outcomes[code] for name, code in codes.items()
    }
    assert calls["answered"] == result.actual["replies"]
    assert sum(calls.values()) == sum(outcomes.values())


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_kills_cost_no_more_than_the_calls_that_were_under_way(workshop):
    tools = THOUSAND_TOOLS[: 1_000 if FULL else 200]
    command = [sys.executable, "-m", "pegboard", "build", "--no-prefect", "--quiet"]
    dice = random.Random(20)
    calls_when_durable = {}
    with scripted_llm(delay=0.05) as llm:
        configure(workshop, llm, tools, f"concurrency = {CONCURRENCY}\ntimeout = 600\n")
        for _ in range(KILLS):
            # Fewer replies than tools, all kills together.
            enough = len(llm.paid()) + dice.randint(1, len(tools) // KILLS - CONCURRENCY)
            build = start_child(command, cwd=workshop.folder)
            while len(llm.paid()) < enough and build.poll() is None:
                time.sleep(0.001)
            build.kill()
            assert build.wait() == -signal.SIGKILL
            calls = Counter(llm.began)
            for tool in durable(workshop) - calls_when_durable.keys():
                calls_when_durable[tool] = calls[tool]
        assert calls_when_durable
        subprocess.run(command, cwd=workshop.folder, check=True)

    assert durable(workshop) == {tool["name"] for tool in tools}
    calls = Counter(llm.began)
    assert calls.keys() == durable(workshop)
    # A tool whose reply was stored was never asked about again.
    assert {tool: calls[tool] for tool in calls_when_durable} == calls_when_durable
    # So many tools are at work at once: some are being asked about, of others the reply is being
    # written.
    assert calls.total() - len(tools) <= KILLS * 2 * CONCURRENCY


def durable(workshop):
    """The tools of which the ledger holds a final reply."""
    return {
        entry.subject.rpartition("/")[2]
        for entry in LakeLedger(workshop.lake).load().all()
        if entry.final
    }
