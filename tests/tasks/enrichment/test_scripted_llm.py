"""Many tools against a server that fails in every way: all are written about, and none is paid for
twice.
"""

from collections import Counter

import pytest

from tasks.enrich import enrich_tools

LITELLM_WARNS = [
    pytest.mark.filterwarnings(
        "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]
pytestmark = LITELLM_WARNS

HTTP_FAILURES = {"429", "500", "503", "529", "hang", "cut"}
WRONG_TOOLS = (
    "send_harbour_letter",
    "open_school_order",
)  # whose names the script drops into replies on others
BAD_REPLIES = {"not-json", "refusal", "wrong-tool", "unfinished"}


def configured(workshop, url, tools, extra=""):
    workshop.servers({"office": tools})
    return workshop.configure(
        f'[enrich]\nmodel = "openai/scripted"\napi_base = "{url}"\nproducts = '
        f'["questions"]\nconcurrency = 32\n{extra}'
    )


def identities(workshop, configuration):
    return {
        one.catalog: one.digest for one in workshop.run(configuration, until="snapshot").snapshots
    }


def test_tools_are_written_about_and_none_is_paid_for_twice(workshop, scripted_llm, thousand_tools):
    """Of these tools the script lets none hang, so that nothing depends on a timeout."""
    llm = scripted_llm("--trouble")
    tools = [
        tool
        for at, tool in enumerate(thousand_tools)
        if at % 17 == 0 or tool["name"] in WRONG_TOOLS
    ]
    configuration = configured(workshop, llm.url, tools, "timeout = 500\nattempts = 6\n")

    result = enrich_tools(configuration, identities(workshop, configuration))

    outcomes = Counter(one["outcome"] for one in llm.events() if one["event"] == "ended")
    assert set(outcomes) == HTTP_FAILURES - {"hang"} | BAD_REPLIES | {
        "good"
    }  # the script had all of it in store
    assert_paid_once(result, llm, tools, outcomes)


@pytest.mark.slow
def test_a_thousand_tools_are_written_about_and_none_is_paid_for_twice(
    workshop, scripted_llm, thousand_tools
):
    llm = scripted_llm("--trouble", "--delay", "0.02", "--hang", "60")
    configuration = configured(workshop, llm.url, thousand_tools, "timeout = 15\nattempts = 6\n")

    result = enrich_tools(configuration, identities(workshop, configuration))

    outcomes = Counter(one["outcome"] for one in llm.events() if one["event"] == "ended")
    assert set(outcomes) == HTTP_FAILURES | BAD_REPLIES | {"good"}
    assert_paid_once(result, llm, thousand_tools, outcomes)


def assert_paid_once(result, llm, tools, outcomes):
    """Every tool has one accepted reply, or two that were rejected, and every call is in the
    statistics.
    """
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
    calls = result.actual["calls"]["openai/scripted"]
    assert calls["500 server"] == outcomes["500"] + outcomes["cut"]
    codes = {"429 rate": "429", "503 server": "503", "529 server": "529", "408 timeout": "hang"}
    assert {name: calls.get(name, 0) for name in codes} == {
        name: outcomes[code] for name, code in codes.items()
    }
    assert calls["answered"] == result.actual["replies"]
    assert sum(calls.values()) == sum(outcomes.values())
