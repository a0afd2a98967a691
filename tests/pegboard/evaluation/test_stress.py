"""Golden queries among distractors: which they are, what is found among them, and what is said of
it.
"""

import json
from itertools import pairwise

import numpy as np
import pytest

from pegboard.cli.main import main
from pegboard.errors import ConfigurationError
from pegboard.evaluation.distractors import ALL, NONE, Distractors, Noise, noises
from pegboard.evaluation.experiment import ReleaseSystem, evaluate
from pegboard.evaluation.golden import GoldenQuery, write_queries
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.stress import stress
from pegboard.search.loaded import LoadedRelease
from pegboard.store.releases import ReleaseStore

VERBS = ("open", "close", "list", "rename", "archive", "print")
THINGS = ("invoice", "ticket", "branch", "room", "taxi", "letter")
VECTOR = {"name": "vector", "modes": ["vector"]}
TEXT = {"name": "BM25", "modes": ["text"]}
RECALL = ["Recall@1", "Recall@5", "F1"]


def systems(searcher, *strategies):
    return [ReleaseSystem.resolve(searcher, strategy) for strategy in strategies]


@pytest.fixture(scope="module")
def office(tmp_path_factory, workshop_type, hashing):
    """A board of 36 tools, by the hashing encoder: many of them look alike to it."""
    workshop = workshop_type(tmp_path_factory.mktemp("office"))
    tools = [
        workshop.tool(f"{verb}_{thing}", f"{verb}s the {thing}.")
        for verb in VERBS
        for thing in THINGS
    ]
    workshop.servers({"office": tools})
    workshop.run(workshop.configure(), encoder=hashing(16))
    return workshop.uri


@pytest.fixture(scope="module")
def searcher(office, hashing):
    return Searcher.open(office, encoder=hashing(16))


@pytest.fixture(scope="module")
def queries():
    singles = [
        GoldenQuery(f"please {verb} that {thing}", (f"{verb}_{thing}",))
        for verb in VERBS
        for thing in THINGS
    ]
    pairs = [
        GoldenQuery(f"{one} the room and {other} the taxi", (f"{one}_room", f"{other}_taxi"))
        for one, other in pairwise(VERBS)
    ]
    return [*singles[:20], *pairs]


def test_there_is_each_noise_of_each_kind_once_and_none_is_of_both():
    assert [str(one) for one in noises([10, 0, 5, 10], ["nearest", "random"], whole=True)] == [
        "none", "5 nearest", "10 nearest", "5 random", "10 random", "all",
    ]  # fmt: skip
    assert noises([0], []) == [NONE]
    for counts, kinds in (((), True), ((-1,), True), ((3,), False)):
        with pytest.raises(ConfigurationError, match="expected numbers of distractors"):
            noises(counts, ["random"] if kinds else [])


def test_the_smaller_noise_is_part_of_the_larger_and_never_a_right_tool(searcher):
    right = ["kit/office/open_room", "kit/office/close_taxi"]
    distractors = Distractors(searcher.loaded, "full", 10)
    for kind in ("random", "nearest"):
        few, more = (distractors.candidates(Noise(kind, count), "q1", right) for count in (3, 10))
        assert set(right) < few < more

    assert len(distractors.candidates(Noise("random", 3), "q1", right)) == 2 + 2 * 3
    assert len(distractors.candidates(Noise("random", 10), "q1", right[:1])) == 1 + 10
    assert distractors.candidates(NONE, "q1", right) == frozenset(right)
    assert len(distractors.candidates(ALL, "q1", right)) == 36


def test_near_distractors_are_the_nearest_to_each_right_tool(searcher):
    ids = sorted(searcher.names.catalogs)
    rows = searcher.loaded.index("full").rows_of(ids)
    right = "kit/office/rename_branch"
    cosines = {one: round(float(rows[right][0] @ rows[one][0]), 5) for one in ids if one != right}
    nearest = sorted(cosines, key=lambda one: (-cosines[one], one))

    found = Distractors(searcher.loaded, "full", 9).candidates(Noise("nearest", 9), "q", [right])

    assert found == {right, *nearest[:9]}


def test_of_several_vectors_of_a_tool_the_closest_counts(board_uri, encoder):
    searcher = Searcher.open(board_uri, encoder=encoder)
    ids = sorted(searcher.names.catalogs)
    rows = searcher.loaded.index("fine").rows_of(ids)
    right = "kit/git/create_issue"
    cosines = {
        one: round(float((rows[right] @ rows[one].T).max()), 5) for one in ids if one != right
    }

    found = Distractors(searcher.loaded, "fine", 4).candidates(Noise("nearest", 4), "q", [right])

    assert found == {right, *sorted(cosines, key=lambda one: (-cosines[one], one))[:4]}


def test_chance_is_the_same_for_the_same_seed_and_query_only(searcher):
    def drawn(seed, query):
        return Distractors(searcher.loaded, "full", 8, seed).candidates(
            Noise("random", 8), query, ["kit/office/open_room"]
        )

    assert drawn(1, "a") == drawn(1, "a")
    assert len({drawn(1, "a"), drawn(2, "a"), drawn(1, "b")}) == 3


def test_without_noise_everything_is_found_and_the_whole_is_an_ordinary_evaluation(
    searcher, queries
):
    found = stress(
        systems(searcher, VECTOR), queries, counts=[0, 3], kinds=["nearest"], measures=RECALL
    )

    assert list(found.evaluations) == [NONE, Noise("nearest", 3), ALL]
    bare, near, whole = (one[0] for one in found.evaluations.values())
    assert {str(measure): values.mean() for measure, values in bare.values.items()} == {
        "Recall@1": pytest.approx(22.5 / 25), "Recall@5": 1.0, "F1": 1.0,
    }  # fmt: skip
    assert whole.interval("Recall@5") == evaluate(
        ReleaseSystem.resolve(searcher, VECTOR), queries, ["Recall@5"]
    ).interval("Recall@5")
    assert (
        bare.interval("Recall@1").value
        >= near.interval("Recall@1").value
        >= whole.interval("Recall@1").value
    )
    assert found.candidates[NONE] == 30 / 25
    assert 3 < found.candidates[Noise("nearest", 3)] <= 4 * 30 / 25
    assert found.candidates[ALL] == 36


def test_every_answer_is_that_of_a_release_with_the_candidates_only(searcher, queries):
    noise = Noise("random", 4)
    found = stress(
        systems(searcher, "search", TEXT), queries, counts=[4], kinds=["random"], whole=False
    )
    distractors = Distractors(searcher.loaded, "full", 4)

    for evaluation, strategy in zip(found.evaluations[noise], ("search", TEXT), strict=True):
        for answer in evaluation.results[::6]:
            right = sorted(one for ids in answer.needed.tools.values() for one in ids)
            few = searcher.restricted(distractors.candidates(noise, answer.query.id, right))
            (hits,) = few.search([answer.query], 10, strategy=strategy)
            assert [one.id for one in answer.retrieved] == [hit.tool.id for hit in hits]


def test_a_release_that_is_too_large_for_memory_is_stressed_alike(
    office, searcher, queries, hashing
):
    store = ReleaseStore(office)
    large = Searcher(LoadedRelease(store, store.get(searcher.release.id), 0), searcher.vectors)
    how = {
        "counts": [0, 5],
        "kinds": ["random", "nearest"],
        "measures": RECALL,
        "min_cosines": [0.9],
    }

    few, all_of_them = (
        stress(systems(large, VECTOR), queries[:6], **how),
        stress(systems(searcher, VECTOR), queries[:6], **how),
    )

    assert few.rows() == all_of_them.rows()
    assert few.collisions == all_of_them.collisions


def test_every_tool_of_a_shared_name_is_right_and_has_distractors(workshop, hashing):
    hello = workshop.tool("say_hello", "Says hello.")
    others = [workshop.tool(f"{verb}_door", f"{verb}s a door.") for verb in VERBS]
    workshop.servers({"one": [hello], "two": [hello], "three": others})
    workshop.run(workshop.configure(), encoder=hashing(32))
    searcher = Searcher.open(workshop.uri, encoder=hashing(32))

    found = stress(
        systems(searcher, TEXT),
        [GoldenQuery("hello", ("say_hello",))],
        counts=[0, 2],
        kinds=["random"],
        whole=False,
    )

    assert dict(found.candidates) == {NONE: 2, Noise("random", 2): 6}
    assert [one[0].interval("Recall@5").value for one in found.evaluations.values()] == [1.0, 1.0]


def test_systems_are_compared_with_themselves_without_noise_and_with_the_first(searcher, queries):
    found = stress(
        systems(searcher, VECTOR, TEXT),
        queries,
        counts=[0, 6],
        kinds=["nearest"],
        measures=["Recall@5", "F1"],
    )
    falls = found.against_none()
    gaps = found.against_first()

    assert [(row["strategy"], row["measure"], row["distractors"]) for row in falls] == [
        (strategy, measure, noise)
        for strategy in ("vector", "BM25")
        for measure in ("Recall@5", "F1")
        for noise in ("nearest", "all")
    ]
    assert all(row["value"] <= 0 and 0 < row["p"] <= row["p_holm"] <= 1 for row in falls)
    lost = next(
        row
        for row in falls
        if row["strategy"] == "vector" and row["measure"] == "F1" and row["noise"] is None
    )
    assert lost["value"] < -0.3
    assert lost["p_holm"] < 0.01
    assert [row["measure"] for row in gaps] == ["Recall@5"] * 3 + ["F1"] * 3
    assert [(row["strategy"], row["noise"], row["against"]) for row in gaps[3:]] == [
        ("BM25", 0, "vector in full"),
        ("BM25", 6, "vector in full"),
        ("BM25", None, "vector in full"),
    ]
    assert json.loads(json.dumps(found.to_dict()))["against_first"] == gaps


def test_what_is_found_is_told_apart_by_whether_tools_collide(searcher, queries):
    found = stress(
        systems(searcher, VECTOR),
        queries,
        counts=[0],
        kinds=["nearest"],
        measures=RECALL,
        min_cosines=[0.5, 0.97],
    )
    rows = found.collision_rows()

    assert [one.least for one in found.collisions] == [0.5, 0.97]
    near = [
        row
        for row in rows
        if row["least"] == 0.97 and row["distractors"] == "all" and row["measure"] == "Recall@1"
    ]
    assert {row["measure"] for row in rows} == {"Recall@1", "Recall@5"}
    assert sum(row["n"] for row in near) == 25
    colliding = found.collisions[1].colliding
    answers, values = (
        found.evaluations[ALL][0].results,
        next(iter(found.evaluations[ALL][0].values.values())),
    )
    inside = [
        any(tool in colliding for ids in one.needed.tools.values() for tool in ids)
        for one in answers
    ]
    assert [(row["colliding"], row["n"], row["value"]) for row in near] == [
        (side, inside.count(side), pytest.approx(values[np.array(inside) == side].mean()))
        for side in (True, False)
        if side in inside
    ]


def test_queries_of_unknown_tools_are_left_out_and_told(searcher):
    known, gone = GoldenQuery("open the room", ("open_room",)), GoldenQuery("fly", ("fly_away",))
    half = GoldenQuery("close the taxi and fly", ("close_taxi", "fly_away"))
    found = stress(
        systems(searcher, TEXT), [known, gone, half], counts=[0], whole=False, measures=["Recall@5"]
    )

    assert found.left_out == 1
    assert found.to_dict()["unknown"] == ["fly_away"]
    assert found.rows()[0]["value"] == 0.75
    with pytest.raises(ConfigurationError, match="None of the 1 golden queries"):
        stress(systems(searcher, TEXT), [gone])


@pytest.fixture
def asked(tmp_path, board_uri):
    """A function that runs the command on a board of 14 tools: the exit code."""
    golden = tmp_path / "golden.jsonl"
    write_queries(
        golden,
        [
            GoldenQuery("open an issue in a repository", ("create_issue",)),
            GoldenQuery("a meeting room, and a taxi to it", ("book_room", "call_taxi")),
            GoldenQuery(
                "a forecast of the weather, and the tides", ("get_forecast", "getTides_v2")
            ),
            GoldenQuery("delete what nobody needs", ("delete_repository", "gone")),
            GoldenQuery("sing", ("singer",)),
        ],
    )
    return lambda *more: main(["stress", str(golden), "--board", board_uri, *more])


def test_the_command_prints_what_is_found_under_every_noise(asked, capsys):
    options = "--strategy search --strategy clauses --noise 0,4,all --collisions 0.3"
    assert asked(*options.split()) == 0

    said = capsys.readouterr()
    assert "4 queries, release" in said.out
    assert [line.split("  ")[0] for line in said.out.splitlines()[3:12]] == [
        "noise", "none", "none", "4 random", "4 random", "4 nearest", "4 nearest", "all", "all",
    ]  # fmt: skip
    assert "against no noise" in said.out
    assert "against the first strategy" in said.out
    assert "have a cosine of 0.3 or more" in said.out
    assert "asked: " in said.err
    assert "1 queries were left out" in said.err
    assert "gone" in said.err


def test_the_command_prints_one_json_object(asked, capsys):
    options = (
        "--noise 0,3 --distractors random --measure recall@5 --limit 3 --quiet --seed 7 --json"
    )
    assert asked(*options.split()) == 0

    said = capsys.readouterr()
    found = json.loads(said.out)
    assert said.err == ""
    columns = ("noise", "distractors", "measure", "n")
    assert [tuple(row[name] for name in columns) for row in found["rows"]] == [
        (0, "none", "Recall@5", 3),
        (3, "random", "Recall@5", 3),
    ]
    assert {*columns, "candidates", "strategy", "index", "encoder", "value", "low", "high"} == set(
        found["rows"][0]
    )
    assert found["against_first"] == []
    assert [one["least"] for one in found["collisions"]] == [0.9, 0.95]


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        (("--noise", "0,ten"), "--noise has 'ten'; expected numbers and `all`"),
        (("--collisions", "0.9,2"), "expected cosines above 0"),
        (("--collisions", "near"), "expected cosines above 0"),
        (("--llm-api-base", "http://localhost"), "Expected --llm MODEL"),
        (("--index", "none"), "It has: fine, full"),
        (("--measure", "Recal@5"), "There is no measure 'Recal@5'"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked, capsys, how, problem):
    assert asked("--quiet", *how) in (2, 4)
    assert problem in capsys.readouterr().err
