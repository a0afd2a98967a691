"""Golden queries among distractors: which they are, and what is found among them."""

import json
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
from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import ReleaseStore
from tests.vectors import tool_vectors

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
    """Two systems under no noise, the nearest distractors, and all tools."""
    return stress(
        systems(searcher, VECTOR, TEXT),
        queries,
        counts=[0, 3, 6],
        measures=RECALL,
    )


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


@pytest.mark.parametrize("index", ["full", "fine"])
def test_near_distractors_are_the_nearest_by_the_closest_vectors(board_uri, encoder, index):
    searcher = Searcher.open(board_uri, encoder=encoder)
    ids = sorted(searcher.names.catalogs)
    rows = tool_vectors(searcher.loaded, index)
    right = "kit/git/create_issue"
    cosines = {
        tool: round(float((rows[right] @ rows[tool].T).max()), 5) for tool in ids if tool != right
    }
    nearest = sorted(cosines, key=lambda tool: (-cosines[tool], tool))

    distractors = Distractors(searcher.loaded, index, 4)

    assert distractors.candidates(Noise("nearest", 4), "q", [right]) == {right, *nearest[:4]}


def test_random_distractors_depend_on_seed_and_query_only(searcher):
    def drawn(seed, query):
        distractors = Distractors(searcher.loaded, "full", 8, seed)
        return distractors.candidates(Noise("random", 8), query, ["kit/office/open_room"])

    assert drawn(1, "a") == drawn(1, "a")
    assert len({drawn(1, "a"), drawn(2, "a"), drawn(1, "b")}) == 3


def test_all_tools_are_found_without_noise_and_the_whole_is_an_ordinary_evaluation(
    searcher, queries, stressed
):
    bare, near, whole = (stressed.evaluations[noise][0] for noise in (NONE, NEAR_3, ALL))
    direct = evaluate(ReleaseSystem.resolve(searcher, VECTOR), queries, ["Recall@5"])

    assert list(stressed.evaluations) == noises([0, 3, 6], whole=True)
    means = [values.mean() for values in bare.values.values()]
    assert means == pytest.approx([22.5 / 25, 1.0, 1.0])
    assert whole.interval("Recall@5") == direct.interval("Recall@5")
    recall = [evaluation.interval("Recall@1").value for evaluation in (bare, near, whole)]
    assert recall == sorted(recall, reverse=True)
    assert stressed.candidates[NONE] == 30 / 25
    assert 3 < stressed.candidates[NEAR_3] <= 4 * 30 / 25
    assert stressed.candidates[ALL] == 36


def test_a_release_that_is_too_large_for_memory_has_equal_results(office, searcher, queries):
    store = ReleaseStore(office)
    release = store.get(searcher.release.id)
    from_lance = Searcher(LoadedRelease(store, release, 0), searcher.vectors)
    options = {"counts": [0, 5], "measures": RECALL}

    large, small = (
        stress(systems(each, VECTOR), queries[:6], **options) for each in (from_lance, searcher)
    )

    assert large.rows() == small.rows()


def test_every_tool_of_a_shared_name_is_right_and_has_distractors(workshop, hashing):
    hello = workshop.tool("say_hello", "Says hello.")
    others = [workshop.tool(f"{verb}_door", f"{verb}s a door.") for verb in VERBS]
    workshop.publish({"one": [hello], "two": [hello], "three": others}, encoder=hashing(32))
    searcher = Searcher.open(workshop.uri, encoder=hashing(32))
    query = GoldenQuery("hello", ("say_hello",))

    result = stress(systems(searcher, TEXT), [query], counts=[0, 2], whole=False)

    assert (result.candidates[NONE], result.candidates[Noise("random", 2)]) == (2, 6)
    recall = [level[0].interval("Recall@5").value for level in result.evaluations.values()]
    assert recall == [1.0, 1.0, 1.0]


def test_systems_are_compared_with_the_first_under_the_same_noise(stressed):
    gaps = stressed.differences()

    assert [(row["strategy"], row["measure"], row["noise"]) for row in gaps] == [
        ("BM25", measure, noise) for measure in RECALL for noise in (0, 3, 6, 3, 6, None)
    ]
    assert {row["against"] for row in gaps} == {"vector in full"}
    assert all(0 < row["p"] <= row["p_holm"] <= 1 for row in gaps)
    assert {row["value"] for row in gaps if row["noise"] == 0} == {0}
    assert json.loads(json.dumps(stressed.to_dict()))["differences"] == gaps


def test_queries_of_unknown_tools_are_left_out_and_counted(searcher):
    known, gone = GoldenQuery("open the room", ("open_room",)), GoldenQuery("fly", ("fly_away",))
    half = GoldenQuery("close the taxi and fly", ("close_taxi", "fly_away"))

    result = stress(
        systems(searcher, TEXT), [known, gone, half], counts=[0], whole=False, measures=["Recall@5"]
    )

    assert result.left_out == 1
    assert result.to_dict()["unknown"] == ["fly_away"]
    assert result.rows()[0]["value"] == 0.75
    with pytest.raises(ConfigurationError, match="None of the 1 golden queries"):
        stress(systems(searcher, TEXT), [gone])


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
    assert "4 queries, release" in printed.out
    levels = [line.split("  ")[0] for line in printed.out.splitlines()[4:12]]
    assert levels == ["none", "none"] + ["4 random"] * 2 + ["4 nearest"] * 2 + ["all", "all"]
    assert "against search in full: the difference with its interval" in printed.out
    assert "left out: 1 query of which the release has no tool" in printed.err
    assert "gone" in printed.err


def test_the_command_prints_one_json_object(command, capsys):
    options = "--noise 0,3 --measure recall@5 --limit 3"
    assert command(*options.split(), "--quiet", "--json") == 0

    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert printed.err == ""
    columns = ("noise", "distractors", "measure", "n")
    assert [tuple(row[name] for name in columns) for row in result["rows"]] == [
        (0, "none", "Recall@5", 3),
        (3, "random", "Recall@5", 3),
        (3, "nearest", "Recall@5", 3),
    ]
    others = {"candidates", "strategy", "index", "encoder", "value", "low", "high"}
    assert {*columns, *others} == set(result["rows"][0])
    assert result["differences"] == []


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
