"""Many tools against a server that fails in every way: all are written about, and none is paid for
twice.
"""

import os
from collections import Counter

import pytest

from tasks.enrich import enrich_tools

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]

HTTP_FAILURES = {"429", "500", "503", "529", "hang", "cut"}
BAD_REPLIES = {"not-json", "refusal", "wrong-tool", "unfinished"}
NAMED_IN_REPLIES = {"send_harbour_letter", "open_school_order"}
"""Tools whose names the script writes into replies about others."""
EVERY = 1 if os.environ.get("PEGBOARD_TEST_SIZE") == "full" else 5


@pytest.mark.parametrize(
    ("every", "options", "timeout", "failures"),
    [
        # Of these tools the script lets none hang, so that nothing depends on a timeout.
        (17, [], 500, HTTP_FAILURES - {"hang"}),
        pytest.param(
            EVERY,
            ["--delay", "0.02", "--hang", "60"],
            15,
            HTTP_FAILURES,
            marks=[pytest.mark.slow, pytest.mark.soak],
        ),
    ],
)
def test_every_tool_is_enriched_and_none_is_paid_for_twice(
    workshop, scripted_llm, thousand_tools, every, options, timeout, failures
):
    llm = scripted_llm("--trouble", *options)
    tools = [
        tool
        for at, tool in enumerate(thousand_tools)
        if at % every == 0 or tool["name"] in NAMED_IN_REPLIES
    ]
    workshop.servers({"office": tools})
    configuration = workshop.configure(
        f'[enrich]\nmodel = "openai/scripted"\napi_base = "{llm.url}"\nconcurrency = 32\n'
        f'products = ["questions"]\ntimeout = {timeout}\nattempts = 10\n'
    )
    run = workshop.run(configuration, until="snapshot")

    result = enrich_tools(
        configuration, {snapshot.catalog: snapshot.digest for snapshot in run.snapshots}
    )

    outcomes = Counter(event["outcome"] for event in llm.events() if event["event"] == "ended")
    assert set(outcomes) == failures | BAD_REPLIES | {"good"}
    assert_paid_once(result, llm, tools, outcomes)


def assert_paid_once(result, llm, tools, outcomes):
    """Check that every tool has one accepted or two rejected replies, and that all calls count."""
    good = Counter(subject for _, subject, outcome in llm.paid() if outcome == "good")
    bad = Counter(subject for _, subject, outcome in llm.paid() if outcome in BAD_REPLIES)
    assert max(good.values()) == 1
    twice_bad = {subject for subject, count in bad.items() if count == 2}
    assert set(good) | twice_bad == {tool["name"] for tool in tools}
    assert not set(good) & twice_bad  # repaired once, then rejected
    assert max(bad.values()) == 2

    assert result.problems == ()
    assert result.actual["accepted"] == {"questions": len(good)}
    assert sum(result.actual["rejected"]["questions"].values()) == len(twice_bad)
    assert result.actual["replies"] == sum(good.values()) + sum(bad.values())
    calls = result.actual["calls"]
    assert calls["500 server"] == outcomes["500"] + outcomes["cut"]
    codes = {"429 rate": "429", "503 server": "503", "529 server": "529", "408 timeout": "hang"}
    assert {name: calls.get(name, 0) for name in codes} == {
        name: outcomes[code] for name, code in codes.items()
    }
    assert calls["answered"] == result.actual["replies"]
    assert sum(calls.values()) == sum(outcomes.values())
