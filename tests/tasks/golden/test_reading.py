"""Golden requests: read, checked, resolved to tools, and what a release says because of them."""

import json
import re

import pytest

from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, ToolNames
from pegboard.retrieval.calibration import Calibration
from tasks.calibrate import calibrate_release
from tasks.golden.reading import Golden, read_golden

GOLDEN = '[golden]\nqueries = "golden.jsonl"\n'
NAMES = [
    f"{verb}_{thing}"
    for verb in ("open", "close", "paint", "sell")
    for thing in ("door", "window", "roof", "gate", "fence")
]


def lines(*values):
    return "\n".join(value if isinstance(value, str) else json.dumps(value) for value in values)


@pytest.fixture
def shop(workshop):
    workshop.servers(
        {
            "shop": [
                workshop.tool(name, f"{name.replace('_', 's the ')} of a house.") for name in NAMES
            ]
        }
    )
    return workshop


def asked():
    return [
        {
            "query": f"{verb} {name.replace('_', ' the ')}",
            "tools": [name if at % 2 else f"kit/shop/{name}"],
        }
        for verb in ("please", "kindly")
        for at, name in enumerate(NAMES)
    ]


def run(shop, hashing, golden=GOLDEN, requests=None, **how):
    shop.write("golden.jsonl", lines(*(requests or asked())))
    return shop.run(shop.configure(golden), encoder=hashing(64), **how)


def test_without_golden_requests_there_is_nothing_to_calibrate(shop, hashing):
    run = shop.run(shop.configure(), encoder=hashing(64))

    assert read_golden(shop.configure()) is None
    assert "calibration" not in run.release.manifest["indexes"]["full"]


def test_a_release_says_what_the_scores_of_every_index_mean(shop, hashing):
    two = '[[indexes]]\nname = "full"\n[[indexes]]\nname = "fine"\nshape = "multi"\n'
    release = run(shop, hashing, two + GOLDEN).release

    for name in ("full", "fine"):
        made = Calibration.from_dict(release.manifest["indexes"][name]["calibration"])
        assert (made.answerable, made.left_out) == (40, True)
        assert "hybrid" in made.curves


def test_other_golden_requests_make_another_release_and_the_same_ones_none(shop, hashing):
    first = run(shop, hashing).release
    again = run(shop, hashing)
    fewer = run(shop, hashing, requests=asked()[:35])

    assert again.release is None
    assert fewer.release.id != first.id
    assert fewer.release.tables == first.tables
    assert fewer.release.manifest["indexes"]["full"]["calibration"]["answerable"] == 35


def test_unanswerable_requests_are_searched_where_they_are_given(shop, hashing):
    shop.write(
        "chat.jsonl", lines(*({"query": f"tell a joke number {number}"} for number in range(30)))
    )

    release = run(shop, hashing, f'{GOLDEN}unanswerable = "chat.jsonl"\n').release

    made = release.manifest["indexes"]["full"]["calibration"]
    assert (made["answerable"], made["unanswerable"], made["left_out"]) == (40, 30, False)


def test_requests_whose_tools_went_are_left_out_and_told_and_too_few_calibrate_nothing(
    shop, hashing
):
    gone = [
        {"query": f"how is life {number}", "tools": ["gone_with_the_wind"]} for number in range(30)
    ]
    staged = run(shop, hashing, requests=asked() + gone, until="stage")
    configuration = shop.configure(GOLDEN)
    made = calibrate_release(configuration, staged.spec, staged.pins, hashing(64))
    shop.write("golden.jsonl", lines(*asked()[:20], *gone))
    few = calibrate_release(configuration, staged.spec, staged.pins, hashing(64))

    assert (made.queries, made.unknown, list(made.indexes)) == (
        40,
        ("gone_with_the_wind",),
        ["full"],
    )
    assert (few.queries, few.unknown, few.indexes) == (20, ("gone_with_the_wind",), {})
    assert json.loads(json.dumps(made.to_dict()))["queries"] == 40


def test_a_name_means_every_tool_that_has_it_and_an_id_only_its_own():
    names = ToolNames(
        [("a/x/find", "find", "x"), ("a/y/find", "find", "y"), ("a/y/stop", "stop", "y")]
    )
    golden = Golden(
        (
            GoldenQuery("q", ("find",)),
            GoldenQuery("r", ("a/y/find", "stop")),
            GoldenQuery("s", ("none",)),
        )
    )

    assert golden.relevant_tools(names) == (
        [("q", {"a/x/find", "a/y/find"}), ("r", {"a/y/find", "a/y/stop"})], ["none"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{not json", "golden.jsonl:1: not JSON"),
        ("[1]", "golden.jsonl:1: expected a JSON object, got [1]"),
        ('{"tools": ["a"]}', "golden.jsonl:1: query: expected a text (got None)"),
        ('{"query": " ", "tools": ["a"]}', "golden.jsonl:1: query: expected a text (got ' ')"),
        ('{"query": "q"}', "golden.jsonl:1: tools: expected a list of names or ids (got None)"),
        (
            '\n{"query": "q", "tools": []}',
            "golden.jsonl:2: tools: expected a list of names or ids (got [])",
        ),
        ('{"query": "q", "tools": [3]}', "tools: expected a list of names or ids (got [3])"),
        (
            '{"query": "q", "tools": ["a"], "answer": 1}',
            "golden.jsonl:1: answer: there is no such field",
        ),
        ('{"query": "q", "tools": ["a"]}', "golden.jsonl has 1 requests; expected 30 or more"),
        ("", "golden.jsonl has 0 requests; expected 30 or more"),
    ],
)
def test_every_line_that_is_not_as_expected_is_named(workshop, text, problem):
    workshop.write("golden.jsonl", text)

    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        read_golden(workshop.configure(GOLDEN))


def test_all_problems_of_both_files_are_told_at_once(workshop):
    workshop.write("golden.jsonl", lines(*["{}"] * 12))

    with pytest.raises(ConfigurationError) as caught:
        read_golden(workshop.configure(f'{GOLDEN}unanswerable = "none.jsonl"\n'))

    assert "has 25 problems" in str(caught.value)
    assert "... and 15 more" in str(caught.value)
