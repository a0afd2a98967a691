"""The inference of dependencies looks at a bounded number of tools for each parameter, and finds
what a look at all would find.
"""

import random
import re
from collections.abc import Iterator, Sequence

import pytest

from pegboard.records import Edge, Tool
from pegboard.search.text import tokenize
from tasks.dependencies import providers
from tasks.dependencies.infer import infer_edges
from tasks.dependencies.language import words_of
from tasks.dependencies.parameters import ParameterMatcher
from tasks.dependencies.profiles import profile_of
from tasks.dependencies.providers import SubsetIndex

NOUNS = [
    f"{first}{last}"
    for first in ("", "draft_", "open_", "shared_")
    for last in ("order", "cart", "voyage", "crew")
]
VERBS = ("search", "list", "get", "update", "create", "calculate")
SERVICES = ("acme", "zeta", "nova", "orbit")


def a_tool(agent: str, name: str, *parameters: str, description: str = "") -> Tool:
    properties = {
        one: {"type": "string", "description": f"A {one} that is open."} for one in parameters
    }
    schema = {"type": "object", "properties": properties, "required": [*parameters]}
    return Tool(f"{agent}/{name}", agent.partition("/")[0], agent, name, description, schema)


def a_board(size: int, agents: int) -> list[Tool]:
    """Tools that all ask for, and provide, the same few nouns."""
    drawn = random.Random(4)

    def tools() -> Iterator[Tool]:
        for at in range(size):
            verb, noun, other = VERBS[at % len(VERBS)], drawn.choice(NOUNS), drawn.choice(NOUNS)
            asked = {"search": ("text",), "list": (), "calculate": (other, "start_date")}.get(
                verb, (f"{other}_id", "id")
            )
            name = f"{drawn.choice(SERVICES)}_{verb}_{noun}" + ("" if at % 3 else f"_for_crew{at}x")
            said = (
                f"{verb} a {noun}. Returns the {drawn.choice(NOUNS)} id and the {other} of a "
                f"person."
            )
            yield a_tool(
                f"shop{at % 2}/agent{at % agents}", f"{name}_by_{at}", *asked, description=said
            )
        yield a_tool("shop0/clock", "get_current_date", description="Returns the current date.")

    return list(tools())


def compared(tools: Sequence[Tool]) -> int:
    matcher = ParameterMatcher(
        [profile_of(tool) for tool in sorted(tools, key=lambda tool: tool.id)]
    )
    assert list(matcher.evidence())
    return matcher.compared


@pytest.mark.parametrize("agents", ["one", "some", "many"])
def test_twice_the_tools_are_twice_the_work(agents):
    sizes = 2_000, 4_000
    small, large = (
        compared(a_board(size, {"one": 1, "some": 8, "many": size // 20}[agents])) for size in sizes
    )

    assert large < 2.5 * small
    assert large / sizes[1] < 200


def test_the_few_that_are_compared_are_those_that_a_look_at_all_would_name(monkeypatch):
    boards = [a_board(size, agents) for size, agents in ((400, 1), (900, 2), (900, 40))]
    found = [infer_edges(tools) for tools in boards]
    monkeypatch.setattr(providers, "COMPARE_ALL", 1_000_000)

    assert [infer_edges(tools) for tools in boards] == found
    assert all(len(edges) > 20 for edges in found)


def test_one_that_shares_a_rare_word_is_found_among_thousands():
    crowd = [a_tool("a/b", f"get_order_by_{at}x", "text") for at in range(3_000)]
    asking = a_tool("a/b", "orbit_refund", "order_id")
    named = a_tool("a/b", "orbit_get_order", "text")

    def targets(tools: Sequence[Tool]) -> list[Edge]:
        return [edge for edge in infer_edges(tools) if edge.source == asking.id]

    assert targets([*crowd, asking]) == []
    assert [edge.target for edge in targets([*crowd, asking, named])] == [named.id]


@pytest.mark.parametrize("within", [{"a"}, {"a", "b", "c"}, {"c", "d"}, set()])
def test_word_sets_are_found_within_others(within):
    listed = [(set(words), words) for words in ("a", "ab", "abc", "bd", "d", "")]

    assert sorted(SubsetIndex(listed).subsets_of(within)) == sorted(
        words for needed, words in listed if needed <= within
    )


@pytest.mark.parametrize(
    "text",
    [
        "getOrders wi-fi\tWi-Fi2 on-wi-fi",
        "订单 查询\u3000ＡＢ orderIDs",
        "a\u00a0b \u0301x \u00b4 e\u0301s",
        " \n",
        "HTTPServers, (x)",
    ],
)
def test_the_words_of_a_text_are_those_of_its_parts(text):
    assert [*words_of(text)] == tokenize(re.sub(r"(?i)\bwi-fi\b", "wifi", text))
