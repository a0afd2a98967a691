"""Strategies: written down and read back, with every problem said at once."""

import dataclasses
import json

import pytest

from pegboard.errors import QueryError
from pegboard.retrieval.fusion import ReciprocalRank, RoundRobin, Weighted
from pegboard.retrieval.rules.dependencies import Dependencies
from pegboard.retrieval.strategies import STRATEGIES, named_strategy
from pegboard.retrieval.strategy import PARTS, Strategy, part_class


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_plan_of_the_library_is_made_and_written_as_json_and_read_back(name):
    strategy = named_strategy(name)
    assert strategy.name == name
    assert Strategy.from_dict(json.loads(json.dumps(strategy.to_dict()))) == strategy


@pytest.mark.parametrize(
    ("stage", "name"), [(stage, name) for stage, parts in PARTS.items() for name in parts]
)
def test_every_part_has_the_name_under_which_plans_know_it_and_options_that_json_can_hold(
    stage, name
):
    made = part_class(stage, name)()
    assert made.part == name
    values = {one.name: getattr(made, one.name) for one in dataclasses.fields(made)}
    assert json.loads(json.dumps(values)) == {
        key: list(v) if isinstance(v, tuple) else v for key, v in values.items()
    }
    method = {"transform": "transform", "fusion": "fuse", "refinement": "refine"}[stage]
    assert callable(getattr(made, method))


def test_a_plan_says_only_what_differs_from_doing_nothing():
    assert Strategy().to_dict() == {"name": "unnamed"}
    strategy = Strategy(
        name="mine",
        modes=("vector",),
        fuse_queries=ReciprocalRank(k=10),
        refine=(Dependencies(initial=2),),
    )
    assert strategy.to_dict() == {
        "name": "mine",
        "modes": ["vector"],
        "fuse_queries": {"part": "reciprocal-rank", "k": 10},
        "refine": [{"part": "dependencies", "initial": 2}],
    }
    assert Strategy.from_dict(strategy.to_dict()) == strategy


def test_parts_are_named_alone_or_with_their_options():
    strategy = Strategy.from_dict(
        {"fuse_steps": "weighted", "fuse_queries": {"part": "weighted", "normalise": "max"}}
    )
    assert strategy.fuse_steps == Weighted()
    assert strategy.fuse_queries == Weighted(normalise="max")
    assert Strategy.from_dict({}).fuse_steps == RoundRobin()


def test_all_problems_of_a_plan_are_said_at_once_with_where_they_are_and_what_is_expected():
    with pytest.raises(QueryError) as caught:
        Strategy.from_dict(
            {
                "transfroms": [],
                "transforms": ["clauses", "no-such-part", 7],
                "fuse_queries": {"part": "reciprocal-rank", "k": "sixty", "q": 1},
                "refine": "dependencies",
                "modes": ["fuzzy"],
                "depth": 0,
                "refine_step": [{"part": "dependencies", "initial": -1}],
            }
        )
    said = str(caught.value)
    for expected in (
        "there is no 'transfroms'",
        "'transforms[1]' names the part 'no-such-part'",
        "clauses",
        "'transforms[2]' is 7",
        "'fuse_queries.k' is 'sixty', expected a whole number",
        "has no 'q'; it has k",
        "'refine' is 'dependencies', expected a list of parts",
        "'modes' is ['fuzzy'], expected one or more of hybrid, vector, text",
        "'depth' is 0",
        "'refine_step[0]'",
        "initial is -1",
    ):
        assert expected in said


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(QueryError, match=r"Unknown strategy 'clause'.*search, clauses"):
        named_strategy("clause")
