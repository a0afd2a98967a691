"""Golden queries as few-shot examples of the prompts of strategies: which are taken, how a release
records them, and what an LLM is shown.
"""

import json
import re

import pytest

import pegboard
from pegboard.errors import ConfigurationError
from tasks.golden.few_shots import few_shot_queries
from tasks.steps.preflight import check_before_run
from tests.pegboard.retrieval.stubs import ScriptedCompleter

FIND = '[find]\nstrategy = "look-at-fifteen"\n'
GOLDEN = '[golden]\nqueries = "golden.jsonl"\nmin_queries = 10\n'
TOOLS = ("open_door", "close_door", "paint_wall")
NEAR = "let the cats in by the old front door of our house, please, now"


def lines(*more):
    """Golden queries of which twelve can serve, and those given."""
    doors = [{"query": f"let cat {number} in", "tools": ["open_door"]} for number in range(12)]
    return "\n".join(json.dumps(line) for line in (*doors, *more))


@pytest.fixture
def configured(workshop):
    """A function: the configuration with golden queries and these lines of `[find]`."""
    workshop.servers(
        {
            "house": [workshop.tool(name, f"Does {name}.") for name in TOOLS],
            "boat": [workshop.tool("hoist_sail", "Hoists a sail.")],
        }
    )

    def configure(find, *queries):
        workshop.write("golden.jsonl", lines(*queries))
        return workshop.configure(f"{FIND}{find}\n{GOLDEN}")

    return configure


def system_of(workshop, request):
    llm = ScriptedCompleter(by=lambda request: {"tools": []})
    with pegboard.open(workshop.uri, llm=llm) as board:
        board.find(request)
    return llm.requests[0].messages[0].content


def test_queries_that_an_evaluation_could_take_for_others_do_not_serve(configured):
    unusable = [
        {"query": "held out of the index", "tools": ["open_door"], "origin": "examples"},
        {"query": "and again?", "tools": ["open_door"], "history": [
            {"role": "user", "content": "Open it."}]},
        {"query": "word " * 61, "tools": ["open_door"]},
        {"query": NEAR, "tools": ["open_door"]},
        {"query": NEAR.upper(), "tools": ["open_door"]},
    ]  # fmt: skip

    usable = few_shot_queries(configured("few_shots = 3", *unusable))

    assert sorted(query.query for query in usable) == sorted(
        f"let cat {number} in" for number in range(12)
    )
    assert few_shot_queries(configured("")) == []


def test_a_release_has_examples_of_different_agents_with_the_names_of_their_tools(
    workshop, configured
):
    queries = [
        {"query": "off we go", "tools": [["kit/boat/hoist_sail", "open_door"], "close_door"]},
        {"query": "nobody does this", "tools": ["sing"]},
    ]
    release = workshop.run(configured("few_shots = 2", *queries)).release

    shots = release.manifest["few_shots"]
    assert {"query": "off we go", "tools": ["hoist_sail", "close_door"]} in shots
    [other] = [shot for shot in shots if shot["query"] != "off we go"]
    assert re.fullmatch(r"let cat \d+ in", other["query"])
    assert other["tools"] == ["open_door"]


def test_an_llm_is_shown_the_domain_and_the_examples_but_no_request_its_own(workshop, configured):
    plain = workshop.run(configured("")).release
    before = system_of(workshop, "let somebody in")
    context = 'context = "A house\\nby the sea."\nfew_shots = 12'
    own = workshop.run(configured(context)).release
    same = workshop.run(configured(context)).release
    after = system_of(workshop, "let somebody in")
    asked = system_of(workshop, "Let CAT 7 in!")

    assert not {"context", "few_shots"} & plain.manifest.keys()
    assert own.manifest["context"] == "A house by the sea."
    assert same is None
    assert plain.tables == own.tables
    assert "A house by the sea." in after
    assert "Requests of users, each with the tools that serve it:" in after
    assert after.count('{"request": "let cat ') == 12
    assert '{"request": "let cat 7 in", "tools": ["open_door"]}' in after
    assert asked.count('{"request": "let cat ') == 11
    assert "let cat 7 in" not in asked
    without = re.sub(r"\n\nRequests of users.*?</data>", "", after, flags=re.DOTALL)
    assert without.replace("A house by the sea.\n\n", "") == before


def test_examples_without_golden_queries_are_refused_before_a_run(workshop, configured):
    configured("")
    with pytest.raises(ConfigurationError, match="few_shots shows golden queries, and there are"):
        check_before_run(workshop.configure(f"{FIND}few_shots = 3\n"))
    held_out = [
        json.dumps({"query": f"door {number}", "tools": ["open_door"], "origin": "examples"})
        for number in range(12)
    ]
    workshop.write("golden.jsonl", "\n".join(held_out))
    with pytest.raises(ConfigurationError, match="none of the golden queries can serve"):
        check_before_run(workshop.configure(f"{FIND}few_shots = 3\n{GOLDEN}"))
