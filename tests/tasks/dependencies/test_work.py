"""The work of inferring dependencies is linear in the number of tools, and bounded for each."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pegboard.records import Tool
from tasks.dependencies import providers
from tasks.dependencies.infer import infer_edges
from tasks.dependencies.parameters import ParameterMatcher, SharedParameters
from tasks.dependencies.profiles import profile_of
from tasks.dependencies.schemas import MAX_PARAMETERS, MAX_RESULTS, results_of
from tests.tasks.dependencies.made_tools import STRING, make_tool, triples

VERBS = ("search", "list", "get", "update", "create", "calculate")
THINGS = ("order", "cart", "voyage", "crew")
NOUNS = [f"{kind}{thing}" for kind in ("", "draft_", "open_", "shared_") for thing in THINGS]


def make_board(size: int, agents: int) -> list[Tool]:
    """Tools that all ask for, and provide, the same few nouns."""
    dice = random.Random(4)

    def tools() -> Iterator[Tool]:
        for at in range(size):
            verb, noun, other = VERBS[at % 6], dice.choice(NOUNS), dice.choice(NOUNS)
            parameters = {"search": ["text"], "list": [], "calculate": [other, "start_date"]}
            service = dice.choice(("acme", "zeta", "nova", "orbit"))
            crew = "" if at % 3 else f"_for_crew{at}x"
            third = dice.choice(NOUNS)
            yield make_tool(
                f"{service}_{verb}_{noun}{crew}_by_{at}",
                *parameters.get(verb, [f"{other}_id", "id"]),
                description=f"{verb} a {noun}. Returns the {third} id and the {other} of a person.",
                agent=f"shop{at % 2}/agent{at % agents}",
            )
        yield make_tool("get_current_date", agent="shop0/clock")

    return list(tools())


def comparisons(tools: Sequence[Tool]) -> int:
    profiles = [profile_of(tool) for tool in sorted(tools, key=lambda tool: tool.id)]
    matcher = ParameterMatcher(profiles, SharedParameters(profiles))
    assert list(matcher.evidence())
    return matcher.compared


def test_twice_the_tools_of_an_agent_are_twice_the_work():
    small, large = (comparisons(make_board(size, 1)) for size in (2_000, 4_000))

    assert large < 2.5 * small
    assert large / 4_000 < 500


def test_the_few_candidates_that_are_compared_give_nearly_the_edges_of_comparing_all(monkeypatch):
    boards = [make_board(size, agents) for size, agents in ((400, 1), (900, 2), (900, 40))]
    edges = [infer_edges(tools) for tools in boards]
    monkeypatch.setattr(providers, "MAX_COMPARED", 1_000_000)

    for tools, few in zip(boards, edges, strict=True):
        every = set(infer_edges(tools))
        assert len(every & set(few)) > 0.9 * len(every | set(few))
        assert len(few) > 20


def test_a_bounded_number_of_parameters_is_looked_at():
    huge = {f"thing{n}_id": STRING for n in range(20_000)}
    providers = [make_tool(f"search_thing{n}", "text") for n in (5, 10_000)]
    tools = [make_tool(f"use_{n}", properties=huge) for n in range(8)]

    assert comparisons([*tools, *providers]) <= 8 * len(tools) * MAX_PARAMETERS
    assert {edge.target for edge in infer_edges([*tools, *providers])} == {providers[0].id}


def test_a_provider_that_shares_a_rare_word_is_found_among_thousands():
    crowd = [make_tool(f"get_order_by_{at}x", "text") for at in range(3_000)]
    asking, named = make_tool("orbit_refund", "order_id"), make_tool("orbit_get_order", "text")

    assert infer_edges([*crowd, asking]) == []
    assert triples(infer_edges([*crowd, asking, named])) == {
        ("orbit_refund", "order_id", "orbit_get_order")
    }


class CountedProperties(dict[str, dict[str, str]]):
    """Properties that count how many of them are read."""

    read = 0

    def items(self):
        for pair in super().items():
            CountedProperties.read += 1
            yield pair


def test_a_bounded_number_of_results_is_looked_at():
    def of(kind):
        return CountedProperties({f"{kind}{n}": {"$ref": f"#/$defs/{kind}"} for n in range(100)})

    definitions = {
        "middle": {"properties": of("leaf")},
        "leaf": {"items": {"properties": of("nothing")}},
    }
    schema = {"properties": of("middle"), "$defs": definitions}
    tool = replace(make_tool("list_things"), output_schema=schema)

    assert len(results_of(tool)) == MAX_RESULTS
    assert CountedProperties.read <= 2 * MAX_RESULTS
