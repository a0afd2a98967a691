"""Golden queries among distractors: which they are, and what is found among them."""

from itertools import pairwise

import pytest

from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.evaluation.comparison import evaluate
from pegboard.evaluation.distractors import ALL, NONE, Distractors, Noise, noises
from pegboard.evaluation.golden import GoldenQuery, write_queries
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.stress import stress
from pegboard.evaluation.systems import ReleaseSystem
from pegboard.evaluation.tool_vectors import tool_vectors

VERBS = ("open", "close", "list", "rename", "archive", "print")
THINGS = ("invoice", "ticket", "branch", "room", "taxi", "letter")
NAMES = [(verb, thing) for verb in VERBS for thing in THINGS]
VECTOR = {"name": "vector", "modes": ["vector"]}
TEXT = {"name": "BM25", "modes": ["text"]}
RECALL = ["Recall@1", "Recall@5", "F1"]
NEAR_3 = Noise("nearest", 3)


def systems(searcher, *strategies):
    return [ReleaseSystem.resolve(searcher, strategy) for strategy in strategies]


@pytest.fixture(scope="module")
def office(tmp_path_factory, workshop_type, hashing):
    """A board of 36 tools, by the hashing encoder: many of them look alike to it."""
    workshop = workshop_type(tmp_path_factory.mktemp("office"))
    tools = [workshop.tool(f"{verb}_{thing}", f"{verb}s the {thing}.") for verb, thing in NAMES]
    workshop.publish({"office": tools}, encoder=hashing(16))
    return workshop.uri


@pytest.fixture(scope="module")
def searcher(office, hashing):
    return Searcher.open(office, encoder=hashing(16))


@pytest.fixture(scope="module")
def queries():
    singles = [
        GoldenQuery(f"please {verb} that {thing}", (f"{verb}_{thing}",)) for verb, thing in NAMES
    ]
    pairs = [
        GoldenQuery(f"{verb} the room and {other} the taxi", (f"{verb}_room", f"{other}_taxi"))
        for verb, other in pairwise(VERBS)
    ]
    return [*singles[:20], *pairs]


@pytest.fixture(scope="module")
def stressed(searcher, queries):
    """Two systems under no noise, distractors, and all tools, by the noise."""
    levels = stress(systems(searcher, VECTOR, TEXT), queries, counts=[0, 3, 6], measures=RECALL)
    return {level.noise: level for level in levels}


def test_noise_of_each_kind_and_count_is_listed_once_the_least_first():
    levels = noises([10, 0, 5, 10], whole=True)

    assert ", ".join(map(str, levels)) == ("none, 5 random, 10 random, 5 nearest, 10 nearest, all")
    for counts in ((), (-1,)):
        with pytest.raises(ConfigurationError, match="expected numbers of distractors"):
            noises(counts)


def test_smaller_noise_is_part_of_larger_and_never_a_right_tool(searcher):
    right = ["kit/office/open_room", "kit/office/close_taxi"]
    distractors = Distractors(searcher.loaded, "full", 10)
    for kind in ("random", "nearest"):
        few, more = (distractors.candidates(Noise(kind, count), "q1", right) for count in (3, 10))
        assert set(right) < few < more

    assert len(distractors.candidates(Noise("random", 3), "q1", right)) == 2 + 2 * 3
    assert len(distractors.candidates(Noise("random", 10), "q1", right[:1])) == 1 + 10
    assert distractors.candidates(NONE, "q1", right) == frozenset(right)
    assert len(distractors.candidates(ALL, "q1", right)) == 36


def test_near_distractors_are_nearer_than_all_others(searcher):
    ids, _, vectors = tool_vectors(searcher.loaded, "full")
    right = "kit/office/open_room"

    near = Distractors(searcher.loaded, "full", 3).candidates(NEAR_3, "q", [right])

    cosines = dict(zip(ids, vectors @ vectors[ids.index(right)], strict=True))
    others = max(cosines[tool] for tool in ids if tool not in near)
    assert min(cosines[tool] for tool in near) >= others - 1e-5
    assert len(near) == 4


def test_all_tools_are_found_without_noise_and_the_whole_is_an_ordinary_evaluation(
    searcher, queries, stressed
):
    bare, near, whole = (stressed[noise].evaluations[0] for noise in (NONE, NEAR_3, ALL))
    direct = evaluate(ReleaseSystem.resolve(searcher, VECTOR), queries, ["Recall@5"])

    assert list(stressed) == noises([0, 3, 6], whole=True)
    means = [values.mean() for values in bare.values.values()]
    assert means == pytest.approx([22.5 / 25, 1.0, 1.0])
    assert whole.interval("Recall@5") == direct.interval("Recall@5")
    recall = [evaluation.interval("Recall@1").value for evaluation in (bare, near, whole)]
    assert recall == sorted(recall, reverse=True)
    assert stressed[NONE].candidates == 30 / 25
    assert 3 < stressed[NEAR_3].candidates <= 4 * 30 / 25
    assert stressed[ALL].candidates == 36


def test_systems_are_compared_with_the_first_under_the_same_noise(stressed):
    near = stressed[NEAR_3].to_dict()

    assert (near["noise"], near["distractors"], stressed[ALL].to_dict()["noise"]) == (
        *(3, "nearest", None),
    )
    gaps = near["differences"]
    assert [(row["strategy"], row["measure"]) for row in gaps] == [("BM25", one) for one in RECALL]
    assert {row["against"] for row in gaps} == {"vector in full"}
    assert {row["value"] for row in stressed[NONE].to_dict()["differences"]} == {0}


def test_queries_of_unknown_tools_count_as_not_found(searcher):
    known, gone = GoldenQuery("open the room", ("open_room",)), GoldenQuery("fly", ("fly_away",))
    half = GoldenQuery("close the taxi and fly", ("close_taxi", "fly_away"))

    [level] = stress(
        systems(searcher, TEXT), [known, gone, half], counts=[0], whole=False, measures=["Recall@5"]
    )

    assert level.to_dict()["unknown"] == ["fly_away"]
    assert level.to_dict()["rows"][0]["value"] == pytest.approx(0.5)


@pytest.fixture
def command(tmp_path, board_uri):
    """A function that runs the command on a board of 14 tools, and returns the exit code."""
    golden = tmp_path / "golden.jsonl"
    needs = {
        "open an issue in a repository": ("create_issue",),
        "a meeting room, and a taxi to it": ("book_room", "call_taxi"),
        "a forecast of the weather, and the tides": ("get_forecast", "getTides_v2"),
        "delete what nobody needs": ("delete_repository", "gone"),
        "sing": ("singer",),
    }
    write_queries(golden, [GoldenQuery(query, tools) for query, tools in needs.items()])
    return lambda *options: main(["stress", str(golden), "--board", board_uri, *options])


def test_the_command_prints_what_is_found_under_every_noise(command, capsys):
    options = "--strategy search --strategy clauses --noise 0,4,all"
    assert command(*options.split()) == 0

    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    levels = [line.partition(":")[0] for line in lines if "candidates, near by index full" in line]
    assert levels == ["none", "4 random", "4 nearest", "all"]
    assert printed.out.count("5 queries, release") == 4
    assert printed.out.count("against search in full: the difference with its interval") == 4
    assert "lacks 2 tools that queries need, which count as not found: gone, singer" in printed.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--noise 0,ten", "--noise has 'ten'; expected numbers and `all`"),
        ("--llm-api-base http://localhost", "Expected --llm MODEL"),
        ("--index none", "It has: fine, full"),
        ("--measure Recal@5", "There is no measure 'Recal@5'"),
    ],
)
def test_invalid_options_of_the_command_are_refused(command, capsys, options, problem):
    assert command("--quiet", *options.split()) in (2, 4)
    assert problem in capsys.readouterr().err
