"""What following dependencies gains and where it fails, on a graph that is worked out by hand.

send needs contact and network, contact needs login; print needs paper. A search finds the main
tool first, and as the second what the words say next.
"""

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import evaluate
from pegboard.evaluation.dependency_errors import (
    CUT,
    CUT_TOP_1,
    NOT_FOUND,
    NOT_LINKED,
    closed_queries,
    dependency_account,
)
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem

NEEDS = {
    "send": ["contact", "network"],
    "contact": ["login"],
    "print": ["paper"],
    "login": [],
    "network": [],
    "paper": [],
    "photograph": [],
}
WORDS = {"send": "posts a letter", "print": "prints a letter on sheets", "photograph": "takes it"}
CATALOG = """[catalogs.desk]
type = "records"
path = "tools.json"
columns = { dependencies = "needs" }
"""
STRATEGY = {
    "name": "linked",
    "modes": ["text"],
    "refine": [{"part": "dependencies", "initial": 2, "limit": 3}],
}


@pytest.fixture(scope="module")
def searcher(tmp_path_factory, workshop_type):
    workshop = workshop_type(tmp_path_factory.mktemp("desk"))
    tools = [
        {
            "name": name,
            "description": WORDS.get(name, name),
            "needs": [{"name": one} for one in own],
        }
        for name, own in NEEDS.items()
    ]
    workshop.write("tools.json", tools)
    workshop.run(workshop.configure(catalogs=CATALOG))
    return Searcher.open(workshop.uri)


@pytest.fixture
def account(searcher):
    """The account of queries, each a text and the tools that it needs, the main one first."""

    def account(*queries, final, strategy=STRATEGY):
        golden = [GoldenQuery(text, tuple(tools.split())) for text, tools in queries]
        system = ReleaseSystem.resolve(searcher, strategy)
        results = evaluate(system, golden, ["Recall@10"]).results
        return dependency_account(system, results, final)

    return account


def test_equation_1_adds_what_dependencies_bring_as_far_as_the_cut_leaves_it(account):
    # Found: send and print; with dependencies send, contact, login, network, print, paper.
    one = account(("posts a letter", "send contact login network"), final=3)

    assert (one.k, one.d, one.final, one.discovered) == (2, 3, 3, 6)
    assert (one.by_search, one.added) == (0.25, 0.75)
    assert one.expected == 0.25 + 0.75 * 3 / 6
    assert one.measured == 0.75


def test_every_query_that_lacks_a_tool_is_in_the_class_of_its_error(account):
    one = account(
        ("posts a letter", "send contact login network"),  # all within the cut
        ("posts a letter", "send paper"),
        ("posts a letter", "print paper"),
        ("posts a letter", "photograph"),
        ("posts a letter", "send photograph"),
        ("posts a letter", "send no_such_tool"),
        final=5,
    )

    assert one.errors == {NOT_FOUND: 1, CUT_TOP_1: 1, CUT: 1, NOT_LINKED: 2}
    assert one.queries == 6


def test_the_closure_is_what_a_tool_depends_on_in_any_number_of_steps(searcher):
    first, second = closed_queries(
        [GoldenQuery("post", ("send",)), GoldenQuery("pay", ("gone",))], searcher
    )

    named = {tool.rpartition("/")[2] for tool in first.tools}
    assert (first.tools[0], named) == ("send", {"send", "contact", "login", "network"})
    assert second.tools == ("gone",)


def test_a_strategy_without_dependencies_has_no_account(account):
    with pytest.raises(ConfigurationError, match="follows no dependencies"):
        account(("posts a letter", "send"), final=5, strategy="search")
