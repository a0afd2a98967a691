"""An agent's calls against the right ones: the Toolshed Evaluation Framework."""

import json

import pytest

from pegboard.evaluation.tool_calls import RightCall, same_value, score_calls


def right(tool, /, **arguments):
    return RightCall(frozenset({tool}), arguments)


def made(tool, /, **arguments):
    return tool, json.dumps(arguments)


def parts(score):
    return score.name, score.arguments, score.values, score.weighted


CONVERT = right("convert", amount=30, to="JPY")
FORECAST = right("forecast", city="Oslo", days=2)
UNREADABLE = ('{"amount": 30', "[1]", "[" * 100_000, "1" * 5_000)
RESOURCES = right("resources", location="API_call_1", kind="timber")


@pytest.mark.parametrize(
    ("rights", "calls", "expected"),
    [
        ([CONVERT], [made("convert", amount=30, to="JPY")], (1, 1, 1, 1)),
        ([CONVERT], [made("convert", amount=30, to="EUR")], (1, 1, 0.5, 0.875)),
        ([CONVERT], [made("convert", amount=30)], (1, 0.5, 0.5, 0.75)),
        ([CONVERT], [made("convert", amount=30, to="JPY", date="today")], (1, 1, 1, 1)),
        *(([CONVERT], [("convert", text)], (1, 0, 0, 0.5)) for text in UNREADABLE),
        ([CONVERT], [made("forecast", amount=30, to="JPY")], (0, 0, 0, 0)),
        ([CONVERT], [], (0, 0, 0, 0)),
        # The mean over the right calls; one call answers one right call only.
        ([CONVERT, FORECAST], [made("forecast", city="Oslo", days=3)], (0.5, 0.5, 0.25, 0.4375)),
        ([FORECAST, FORECAST], [made("forecast", city="Oslo", days=2)], (0.5, 0.5, 0.5, 0.5)),
        # Calls of one tool are matched so that the sum is highest.
        (
            [FORECAST, right("forecast", city="Bergen", days=5)],
            [made("forecast", city="Bergen", days=5), made("forecast", city="Oslo", days=9)],
            (1, 1, 0.75, 0.9375),
        ),
        # A right call without arguments needs its tool, called with arguments that can be read.
        ([right("rates")], [made("rates", day="today")], (1, 1, 1, 1)),
        *(([right("rates")], [("rates", text)], (1, 1, 1, 1)) for text in ("", " null ")),
        # The result of another call counts where its argument was given.
        ([RESOURCES], [made("resources", location="the farm", kind="timber")], (1, 1, 1, 1)),
        ([RESOURCES], [made("resources", kind="timber")], (1, 0.5, 0.5, 0.75)),
        # Any tool of a shared name.
        ([RightCall(frozenset({"git/search", "web/search"}), {})], [made("web/search")], (1,) * 4),
    ],
)
def test_calls_score_by_their_tools_argument_names_and_values(rights, calls, expected):
    assert parts(score_calls(rights, calls)) == expected


def test_surplus_calls_are_counted_and_do_not_lower_the_score():
    calls = [made("convert", amount=30, to="JPY"), made("convert"), (None, "{}")]

    score = score_calls([CONVERT], calls)

    assert (score.weighted, score.made, score.matched) == (1, 3, 1)


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (30, 30.0, True),
        (30, "30", True),
        (1000, "1e3", True),
        (True, "true", True),
        (None, None, True),
        ("Oslo", " oslo ", True),
        ([1, "a"], [1.0, "A"], True),
        ({"a": {"b": [1]}}, {"a": {"b": ["1"]}}, True),
        (30, 31, False),
        (1, True, False),
        ("", None, False),
        ("007", 7, False),
        (9007199254740993, 9007199254740992, False),
        ("Oslo", "Bergen", False),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("1e999999999", 5, False),
    ],
)
def test_values_are_compared_in_their_plain_form(first, second, equal):
    assert same_value(first, second) == equal
    assert same_value(second, first) == equal
