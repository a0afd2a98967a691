"""Golden queries are read, resolved to tools, and calibrate a release."""

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
QUERIES = [
    {
        "query": f"{please} {name.replace('_', ' the ')}",
        "tools": [name if at % 2 else f"kit/shop/{name}"],
    }
    for please in ("please", "kindly")
    for at, name in enumerate(NAMES)
]


@pytest.fixture
def shop(workshop):
    tools = [workshop.tool(name, f"{name.replace('_', 's the ')} of a house.") for name in NAMES]
    workshop.servers({"shop": tools})
    return workshop


def write(shop, *queries, file="golden.jsonl"):
    shop.write(file, "\n".join(json.dumps(query) for query in queries))


def run(shop, hashing, settings=GOLDEN, queries=QUERIES, **options):
    write(shop, *queries)
    return shop.run(shop.configure(settings), encoder=hashing(64), **options)


def calibration(release, index="full"):
    return Calibration.from_dict(release.manifest["indexes"][index]["calibration"])


def test_without_golden_queries_nothing_is_calibrated(shop, hashing):
    manifest = run(shop, hashing, "").release.manifest

    assert read_golden(shop.configure()) is None
    assert "calibration" not in manifest["indexes"]["full"]


def test_every_index_is_calibrated_and_only_other_queries_make_another_release(shop, hashing):
    two = '[[indexes]]\nname = "full"\n[[indexes]]\nname = "fine"\nshape = "multi"\n' + GOLDEN
    first = run(shop, hashing, two).release
    again = run(shop, hashing, two).release
    fewer = run(shop, hashing, two, QUERIES[:35]).release

    for index in ("full", "fine"):
        curves = calibration(first, index)
        assert (curves.answerable, curves.left_out) == (40, True)
        assert "hybrid" in curves.curves
    assert again is None
    assert fewer.id != first.id
    assert fewer.tables == first.tables
    assert calibration(fewer).answerable == 35


def test_unanswerable_queries_are_used_where_they_are_given(shop, hashing):
    jokes = [{"query": f"tell a joke number {number}"} for number in range(30)]
    write(shop, *jokes, file="chat.jsonl")

    release = run(shop, hashing, f'{GOLDEN}unanswerable = "chat.jsonl"\n').release

    curves = calibration(release)
    assert (curves.answerable, curves.unanswerable, curves.left_out) == (40, 30, False)


def test_queries_of_removed_tools_are_reported_and_too_few_calibrate_nothing(shop, hashing):
    gone = [{"query": f"how is life {number}", "tools": ["gone"]} for number in range(30)]
    staged = run(shop, hashing, queries=QUERIES + gone, until="stage")

    def calibrate():
        return calibrate_release(shop.configure(GOLDEN), staged.spec, staged.pins, hashing(64))

    enough = calibrate()
    write(shop, *QUERIES[:20], *gone)
    few = calibrate()

    assert (enough.queries, enough.unknown, list(enough.indexes)) == (40, ("gone",), ["full"])
    assert (few.queries, few.unknown, few.indexes) == (20, ("gone",), {})
    assert json.loads(json.dumps(enough.to_dict()))["queries"] == 40


def test_a_name_means_every_tool_that_has_it_and_an_id_only_its_own():
    names = ToolNames(
        [("a/x/find", "find", "x"), ("a/y/find", "find", "y"), ("a/y/stop", "stop", "y")]
    )
    queries = [
        ("q", ("find",)),
        ("r", ("a/y/find", "stop")),
        ("s", ("none",)),
        ("t", ("stop | a/x/find | gone",)),
    ]

    assert Golden(tuple(GoldenQuery(*query) for query in queries)).relevant_tools(names) == (
        [
            ("q", {"a/x/find", "a/y/find"}),
            ("r", {"a/y/find", "a/y/stop"}),
            ("t", {"a/x/find", "a/y/stop"}),
        ],
        ["none"],
    )


LIST = "tools: expected a list of names or ids (got "


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{not json", ":1: not JSON"),
        ("[1]", ":1: expected a JSON object, got [1]"),
        ('{"tools": ["a"]}', ":1: query: expected a text (got None)"),
        ('{"query": " ", "tools": ["a"]}', ":1: query: expected a text (got ' ')"),
        ('{"query": "q"}', f":1: {LIST}None)"),
        ('\n{"query": "q", "tools": []}', f":2: {LIST}[])"),
        ('{"query": "q", "tools": [3]}', f":1: {LIST}[3])"),
        ('{"query": "q", "tools": ["a", []]}', f":1: {LIST}['a', []])"),
        ('{"query": "q", "tools": ["a"], "answer": 1}', ":1: answer: there is no such field"),
        ('{"query": "q", "tools": ["a"]}', " has 1 requests; expected 30 or more"),
        ("", " has 0 requests; expected 30 or more"),
    ],
)
def test_every_invalid_line_is_named(workshop, text, problem):
    workshop.write("golden.jsonl", text)

    with pytest.raises(ConfigurationError, match=re.escape(f"golden.jsonl{problem}")):
        read_golden(workshop.configure(GOLDEN))


def test_the_least_number_of_queries_is_a_setting(shop, hashing):
    release = run(shop, hashing, f"{GOLDEN}min_queries = 12\n", QUERIES[:12]).release

    assert calibration(release).answerable == 12
    with pytest.raises(
        ConfigurationError, match=r"has 12 requests; expected 13 or more.*lower min_"
    ):
        read_golden(shop.configure(f"{GOLDEN}min_queries = 13\n"))


def test_all_problems_of_both_files_are_reported_together(workshop):
    write(workshop, *[{}] * 12)

    with pytest.raises(ConfigurationError, match=r"has 25 problems(.|\n)*\.\.\. and 15 more"):
        read_golden(workshop.configure(f'{GOLDEN}unanswerable = "none.jsonl"\n'))
