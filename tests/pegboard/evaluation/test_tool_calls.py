"""An agent's calls against the right ones: the Toolshed Evaluation Framework."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import read_queries
from pegboard.evaluation.tool_calls import MadeCall, RightCall, made_call, same_value, score_calls

SEAL_TOOLS = Path(__file__).parents[4] / "shared" / "benchmarks" / "seal-tools" / "dev.jsonl"


def right(tool, /, **arguments):
    return RightCall(frozenset({tool}), arguments)


def made(tool, /, **arguments):
    return MadeCall(tool, arguments)


def parts(score):
    return score.name, score.arguments, score.values, score.weighted


CONVERT = right("convert", amount=30, to="JPY")
FORECAST = right("forecast", city="Oslo", days=2)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (made("convert", amount=30, to="JPY"), (1, 1, 1, 1)),
        (made("convert", amount=30, to="EUR"), (1, 1, 0.5, 0.875)),
        (made("convert", amount=30), (1, 0.5, 0.5, 0.75)),
        (made("convert", amount=30, to="JPY", date="today"), (1, 1, 1, 1)),
        (made("convert", Amount=30, To="JPY"), (1, 0, 0, 0.5)),
        (made("convert"), (1, 0, 0, 0.5)),
        (MadeCall("convert", None), (1, 0, 0, 0.5)),
        (made("forecast", amount=30, to="JPY"), (0, 0, 0, 0)),
        (MadeCall(None, {"amount": 30, "to": "JPY"}), (0, 0, 0, 0)),
    ],
)
def test_a_call_scores_by_its_tool_its_argument_names_and_their_values(call, expected):
    assert parts(score_calls([CONVERT], [call])) == expected


def test_several_calls_are_averaged_and_what_is_missing_counts_as_nothing():
    score = score_calls([CONVERT, FORECAST], [made("forecast", city="Oslo", days=3)])

    assert parts(score) == (0.5, 0.5, 0.25, 0.25 + 0.125 + 0.0625)
    assert (score.right, score.made, score.matched, score.surplus) == (2, 1, 1, 0)


def test_no_call_at_all_scores_nothing():
    assert parts(score_calls([CONVERT], [])) == (0, 0, 0, 0)


def test_calls_of_one_tool_are_matched_so_that_the_sum_is_highest():
    wanted = [right("forecast", city="Oslo", days=2), right("forecast", city="Bergen", days=5)]
    calls = [made("forecast", city="Bergen", days=5), made("forecast", city="Oslo", days=9)]

    assert parts(score_calls(wanted, calls)) == (1, 1, 0.75, 0.9375)


def test_one_call_answers_one_right_call_only():
    score = score_calls([FORECAST, FORECAST], [made("forecast", city="Oslo", days=2)])

    assert parts(score) == (0.5, 0.5, 0.5, 0.5)


def test_surplus_calls_and_arguments_lower_nothing_and_are_counted():
    calls = [
        made("convert", amount=30, to="JPY", note="?"),
        made("convert"),
        MadeCall(None, {}),
        MadeCall("forecast", None),
    ]

    score = score_calls([CONVERT], calls)

    assert score.weighted == 1
    assert (score.made, score.matched, score.surplus) == (4, 1, 3)
    assert (score.surplus_arguments, score.unknown, score.malformed) == (1, 1, 1)


def test_a_right_call_without_arguments_wants_nothing_but_its_tool():
    assert parts(score_calls([right("rates")], [made("rates")])) == (1, 1, 1, 1)
    assert parts(score_calls([right("rates")], [made("rates", day="today")])) == (1, 1, 1, 1)
    assert parts(score_calls([right("rates")], [MadeCall("rates", None)])) == (1, 0, 0, 0.5)


def test_the_result_of_another_call_counts_where_its_argument_was_given():
    wanted = [right("resources", location="API_call_1", kind="timber")]

    assert parts(
        score_calls(wanted, [made("resources", location="where the crop grows", kind="timber")])
    ) == (
        1,
        1,
        1,
        1,
    )
    assert parts(score_calls(wanted, [made("resources", kind="timber")])) == (1, 0.5, 0.5, 0.75)


def test_any_tool_of_a_shared_name_will_do():
    wanted = RightCall(frozenset({"git/search", "web/search"}), {})

    assert score_calls([wanted], [made("web/search")]).name == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (30, 30.0),
        (30, "30"),
        (0.1, "0.10"),
        (1000, "1e3"),
        (True, "true"),
        (None, None),
        ("Oslo", " oslo "),
        ("two  words", "Two\nwords"),
        ("ﬁne", "fine"),
        ([1, "a"], [1.0, "A"]),
        ({"a": {"b": [1]}}, {"a": {"b": ["1"]}}),
        ("007", "007"),
        (float("inf"), float("inf")),
    ],
)
def test_values_are_equal_in_their_plain_form(one, other):
    assert same_value(one, other)
    assert same_value(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (30, 31),
        (1, True),
        (0, False),
        (0, None),
        ("", None),
        ("007", 7),
        ("1,000", 1000),
        (9007199254740993, 9007199254740992),
        ("Oslo", "Bergen"),
        ([1, 2], [2, 1]),
        ([1], 1),
        ({"a": 1}, {"A": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, [["a", 1]]),
        ("1e999999999", 5),
    ],
)
def test_values_that_differ_are_not_equal(one, other):
    assert not same_value(one, other)
    assert not same_value(other, one)


def test_texts_may_be_compared_character_by_character():
    assert not same_value("Oslo", "oslo", exact=True)
    assert same_value("Oslo", "Oslo", exact=True)
    assert same_value(30, "30.0", exact=True)
    assert (
        score_calls([FORECAST], [made("forecast", city="oslo", days=2)], exact=True).values == 0.5
    )


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (" null ", {}),
        ('{"a": 1', None),
        ("[1]", None),
        ('"a"', None),
        ("[" * 100_000, None),
        ("1" * 5_000, None),
    ],
)
def test_what_a_model_writes_as_arguments_is_read_or_kept_as_malformed(text, arguments):
    call = made_call(" find ", text, {"find": "web/find"})

    assert call == MadeCall("web/find", arguments)


def test_a_tool_that_was_not_given_is_unknown():
    assert made_call("summon", "{}", {"find": "web/find"}).tool is None


def test_a_query_without_right_calls_cannot_be_scored():
    with pytest.raises(ConfigurationError, match="Give the query `calls`"):
        score_calls([], [made("convert")])


@pytest.mark.skipif(
    not SEAL_TOOLS.exists(), reason="the benchmark does not stand beside this checkout"
)
def test_the_right_calls_of_seal_tools_are_read_and_score_fully_against_themselves(tmp_path):
    lines = [json.loads(line) for line in SEAL_TOOLS.read_text("utf-8").splitlines()]
    golden = tmp_path / "golden.jsonl"
    golden.write_text(
        "".join(
            json.dumps(
                {
                    "query": one["query"],
                    "tools": [call["api"] for call in one["calling"]],
                    "calls": [
                        {"tool": call["api"], "arguments": call["parameters"]}
                        for call in one["calling"]
                    ],
                }
            )
            + "\n"
            for one in lines
        )
    )

    queries = read_queries(golden)

    assert len(queries) == len(lines) == 700
    for query in queries:
        wanted = [RightCall(frozenset({call["tool"]}), call["arguments"]) for call in query.calls]
        calls = [
            made_call(
                call["tool"], json.dumps(call["arguments"]), {one: one for one in query.tools}
            )
            for call in query.calls
        ]
        score = score_calls(wanted, calls[::-1])
        assert score.weighted == pytest.approx(1)
        assert score.surplus == score.unknown == score.malformed == 0


names = st.sampled_from("abcd")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, width=16)
    | st.text("ab 1", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=3,
)
arguments = st.dictionaries(names, values, max_size=4)
tools = st.sampled_from(["one", "two", "three"])
rights = st.lists(
    st.builds(lambda tool, given: RightCall(frozenset({tool}), given), tools, arguments),
    min_size=1,
    max_size=4,
)
calls = st.lists(st.builds(MadeCall, tools | st.none(), arguments | st.none()), max_size=5)


@given(wanted=rights)
def test_the_right_calls_themselves_score_fully(wanted):
    score = score_calls(wanted, [MadeCall(min(one.tools), one.arguments) for one in wanted])

    assert parts(score) == pytest.approx((1, 1, 1, 1))
    assert score.surplus == 0


@given(wanted=rights, given_calls=calls, dice=st.randoms(use_true_random=False))
def test_the_order_of_calls_changes_nothing(wanted, given_calls, dice):
    before = score_calls(wanted, given_calls)
    dice.shuffle(wanted)
    dice.shuffle(given_calls)

    after = score_calls(wanted, given_calls)

    assert parts(after) == pytest.approx(parts(before))
    assert (after.matched, after.surplus_arguments) == (before.matched, before.surplus_arguments)


@given(wanted=rights, given_calls=calls, data=st.data())
def test_dropping_an_argument_or_a_call_never_raises_the_score(wanted, given_calls, data):
    before = score_calls(wanted, given_calls)
    assert 0 <= before.values <= before.arguments <= before.name <= 1
    if not given_calls:
        return
    at = data.draw(st.integers(0, len(given_calls) - 1))
    call = given_calls[at]
    shorter = [*given_calls[:at], *given_calls[at + 1 :]]

    assert score_calls(wanted, shorter).weighted <= before.weighted + 1e-9
    if call.arguments:
        dropped = data.draw(st.sampled_from(sorted(call.arguments)))
        fewer = {name: value for name, value in call.arguments.items() if name != dropped}
        assert (
            score_calls(wanted, [*shorter, MadeCall(call.tool, fewer)]).weighted
            <= before.weighted + 1e-9
        )
