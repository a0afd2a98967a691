"""What following dependencies gains and where it fails, on a graph that is worked out by hand.

send needs contact and network, contact needs login; print needs paper. A search finds the main tool
first, and as the second what the words say next.
"""

import json

import pytest

from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import evaluate
from pegboard.evaluation.dependency_errors import (
    CUT,
    CUT_BEHIND_OTHERS,
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
            "needs": [{"name": other} for other in needs],
        }
        for name, needs in NEEDS.items()
    ]
    workshop.write("tools.json", tools)
    workshop.run(workshop.configure(catalogs=CATALOG))
    return Searcher.open(workshop.uri)


@pytest.fixture
def account(searcher):
    """A function that accounts for queries, each a text and its tools, the main one first."""

    def run(*queries, final, strategy=STRATEGY):
        golden = [GoldenQuery(text, tuple(tools.split())) for text, tools in queries]
        resolved = ReleaseSystem.resolve(searcher, strategy)
        system = ReleaseSystem(searcher, resolved.strategy, explain=True)
        results = evaluate(system, golden, ["Recall@10"]).results
        return dependency_account(system, results, final)

    return run


def test_equation_1_adds_what_dependencies_bring_as_far_as_the_cut_leaves_it(account):
    # Found: send and print; with dependencies send, contact, login, network, print, paper.
    gained = account(("posts a letter", "send contact login network"), final=3)

    assert (gained.k, gained.d, gained.final, gained.discovered) == (2, 3, 3, 6)
    assert (gained.by_search, gained.added) == (0.25, 0.75)
    assert gained.expected == 0.25 + 0.75 * 3 / 6
    assert gained.measured == 0.75


def test_every_query_that_lacks_a_tool_is_in_the_class_of_its_error(account):
    gained = account(
        ("posts a letter", "send contact login network"),  # all within the cut
        ("posts a letter", "send paper"),
        ("posts a letter", "print paper"),
        ("posts a letter", "photograph"),
        ("posts a letter", "send photograph"),
        ("posts a letter", "send no_such_tool"),
        final=5,
    )

    assert gained.errors == {NOT_FOUND: 1, CUT_BEHIND_OTHERS: 1, CUT: 1, NOT_LINKED: 2}
    assert gained.queries == 6


def test_the_tools_that_are_expanded_are_the_first_of_the_fused_steps(account):
    steps = {"transforms": ["clauses"], "fuse_steps": {"part": "round-robin"}}

    gained = account(("posts a letter, then takes it", "send photograph"), final=5)
    by_steps = account(
        ("posts a letter, then takes it", "send photograph"), final=5, strategy=STRATEGY | steps
    )

    assert gained.k == by_steps.k == 2
    # In turns, the second is what the first clause has behind send: print.
    assert (gained.by_search, by_steps.by_search) == (1.0, 0.5)


def test_a_strategy_without_dependencies_has_no_account(account):
    with pytest.raises(ConfigurationError, match="follows no dependencies"):
        account(("posts a letter", "send"), final=5, strategy="search")


def test_the_closure_is_what_a_tool_depends_on_in_any_number_of_steps(searcher):
    first, second, third = closed_queries(
        [
            GoldenQuery("post", ("send",)),
            GoldenQuery("pay", ("gone",)),
            GoldenQuery("post", ("send", "login")),
        ],
        searcher,
    )

    names = {tool.rpartition("/")[2] for tool in first.tools}
    assert (first.tools[0], names) == ("send", {"send", "contact", "login", "network"})
    assert second.tools == ("gone",)
    assert third.tools == ("send", "login", "desk/desk/contact", "desk/desk/network")


def test_the_command_closes_queries_and_prints_the_account(searcher, tmp_path, capsys):
    golden = tmp_path / "golden.jsonl"
    golden.write_text(json.dumps({"query": "posts a letter", "tools": ["send"]}), "utf-8")
    (tmp_path / "linked.json").write_text(json.dumps(STRATEGY), "utf-8")

    def run(*options):
        board = ("--board", str(searcher.loaded._store.uri), "--quiet", "--measure", "Recall@3")
        code = main(["eval", str(golden), *board, *options])
        return code, capsys.readouterr()

    strategy = ("--strategy", str(tmp_path / "linked.json"), "--dependency-errors")
    _, plain = run(*strategy, "--json")
    code, closed = run(*strategy, "--closure")
    refused, without = run("--strategy", "search", "--dependency-errors")
    clashing, clash = run(*strategy, "--noise", "near:1")

    [values] = json.loads(plain.out)["dependencies"]
    assert (values["by_search"], values["added"], values["measured"]) == (1.0, 0.0, 1.0)
    assert code == 0
    assert "recall 0.250 by search (k = 2) + 0.750 by dependencies (d = 3)" in closed.out
    assert "= 0.625 expected; 0.750 measured" in closed.out
    assert "1 of 1 queries lack a needed tool among the first 3" in closed.out
    assert (refused, clashing) == (2, 2)
    assert "needs a strategy that follows dependencies" in without.err
    assert "Leave out --agents, --against, --tools and --noise" in clash.err
