"""Strategies as JSON: written, read back, and validated with every problem reported at once."""

import json

import pytest

from pegboard.errors import QueryError
from pegboard.retrieval.fusion import ReciprocalRank
from pegboard.retrieval.rules.dependencies import Dependencies
from pegboard.retrieval.strategies import STRATEGIES, named_strategy
from pegboard.retrieval.strategy import Strategy, part_class


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_built_in_strategy_survives_json(name):
    strategy = named_strategy(name)
    assert strategy.name == name
    assert Strategy.from_dict(json.loads(json.dumps(strategy.to_dict()))) == strategy


def test_only_what_differs_from_the_defaults_is_written():
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


def test_all_problems_of_a_strategy_are_reported_at_once():
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
    message = str(caught.value)
    for expected in (
        "there is no 'transfroms'",
        "'transforms[1]' names the part 'no-such-part'",
        "clauses",
        "'transforms[2]' is 7",
        "'fuse_queries': The part 'reciprocal-rank' has invalid options: k is 'sixty'",
        "has no 'q'; it has k",
        "'refine' is 'dependencies', expected a list of parts",
        "'modes' is ['fuzzy'], expected a list with one of hybrid, vector, text",
        "'depth' is 0",
        "'refine_step[0]'",
        "initial is -1, expected an integer of at least 0",
    ):
        assert expected in message


def test_an_unknown_strategy_is_reported_with_the_known_ones():
    with pytest.raises(QueryError, match=r"Unknown strategy 'clause'.*search, clauses"):
        named_strategy("clause")


@pytest.mark.parametrize(
    ("stage", "name", "options"),
    [
        ("transform", "clauses", {"background": 2}),
        ("transform", "context-decompose", {"m": 0, "limit": True}),
        ("transform", "expand", {"variations": "3"}),
        ("fusion", "weighted", {"normalise": "sigmoid"}),
        ("refinement", "dependencies", {"initial": -1, "limit": -2}),
        ("refinement", "at-least", {"probability": 1.5, "score": 7}),
        ("refinement", "grade", {"depth": 0, "keep": -1}),
    ],
)
def test_invalid_options_of_a_part_are_reported_together(stage, name, options):
    with pytest.raises(QueryError) as caught:
        part_class(stage, name)(**options)

    for option in options:
        assert option in str(caught.value)
