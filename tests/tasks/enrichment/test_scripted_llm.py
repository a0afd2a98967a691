"""A thousand tools against a server that fails in every way: all are written about, and none is paid for twice."""

from collections import Counter

import pytest

from tasks.enrich import enrich_tools

LITELLM_WARNS = [
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]
pytestmark = LITELLM_WARNS

HTTP_FAILURES = {"429", "500", "503", "529", "hang", "cut"}
BAD_REPLIES = {"not-json", "refusal", "wrong-tool", "unfinished"}


def configured(workshop, url, tools, extra=""):
    workshop.servers({"office": tools})
    return workshop.configure(
        f'[enrich]\nmodel = "openai/scripted"\napi_base = "{url}"\nproducts = ["questions"]\nconcurrency = 32\n{extra}'
    )


def identities(workshop, configuration):
    return {one.catalog: one.digest for one in workshop.run(configuration, until="snapshot").snapshots}


def test_a_thousand_tools_are_written_about_and_none_is_paid_for_twice(workshop, scripted_llm, thousand_tools):
    llm = scripted_llm("--trouble", "--delay", "0.02", "--hang", "4")
    configuration = configured(workshop, llm.url, thousand_tools, "timeout = 2\nattempts = 6\n")

    result = enrich_tools(configuration, identities(workshop, configuration))

    outcomes = Counter(one["outcome"] for one in llm.events() if one["event"] == "ended")
    assert set(outcomes) == HTTP_FAILURES | BAD_REPLIES | {"good"}  # the script had all of it in store
    good = Counter(subject for _, subject, outcome in llm.paid() if outcome == "good")
    bad = Counter(subject for _, subject, outcome in llm.paid() if outcome in BAD_REPLIES)
    assert max(good.values()) == 1
    twice_bad = {subject for subject, count in bad.items() if count == 2}
    assert set(good) | twice_bad == {tool["name"] for tool in thousand_tools}
    assert not set(good) & twice_bad  # repaired once, then rejected
    assert max(bad.values()) == 2

    assert result.problems == ()
    assert result.actual["accepted"] == {"questions": len(good)}
    assert sum(result.actual["rejected"]["questions"].values()) == len(twice_bad)
    assert result.actual["replies"] == sum(good.values()) + sum(bad.values())
    calls = result.actual["calls"]["openai/scripted"]
    assert calls["500 server"] == outcomes["500"] + outcomes["cut"]
    told = {"429 rate": "429", "503 server": "503", "529 server": "529", "408 timeout": "hang"}
    assert {name: calls[name] for name in told} == {name: outcomes[code] for name, code in told.items()}
    assert calls["answered"] == result.actual["replies"]
    assert sum(calls.values()) == sum(outcomes.values())
