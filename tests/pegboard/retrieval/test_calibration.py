import json
import math

import pytest

from pegboard.errors import ContractMismatch, QueryError
from pegboard.retrieval.calibration import Calibration, Curve, SearchEvidence, Similarity, Threshold
from pegboard.search.ranking import Ranked

THRESHOLDS = {"accept_95": Threshold(0.25, 0.95, 0.3)}
CALIBRATION = Calibration(
    {"hybrid": Curve(-3.0, 4.0, 0.5, THRESHOLDS), "vector": Curve(-2.0, 4.0, 0.0, THRESHOLDS)},
    60,
    40,
    True,
    0.5,
)


def ranked(**scores: float) -> list[Ranked]:
    return [Ranked(tool, score, "document") for tool, score in scores.items()]


def test_the_probability_of_a_tool_follows_from_its_cosine_and_its_words():
    rankings = {"vector": ranked(a=0.75, b=0.5), "text": ranked(b=6.0)}

    found = CALIBRATION.probabilities("four words that make sense", rankings)

    assert found == {"b": round(1 / (1 + math.exp(-(-3 + 2 + 0.5 * 6 / 2))), 5), "a": 0.5}
    assert list(found) == ["b", "a"]
    assert CALIBRATION.answers("four words that make sense", rankings) == found["b"]


def test_a_search_by_vector_has_a_curve_of_its_own():
    assert CALIBRATION.probabilities("whatever", {"vector": ranked(a=0.5)}) == {"a": 0.5}


def test_a_tool_nearer_by_either_measure_is_never_less_probable():
    curve = CALIBRATION.curves["hybrid"]
    steps = [number / 20 for number in range(-20, 21)]

    assert all(
        curve.probability(Similarity(a, 1.0)) <= curve.probability(Similarity(a + 0.05, 1.0))
        for a in steps
    )
    assert all(
        curve.probability(Similarity(0.3, a)) <= curve.probability(Similarity(0.3, a + 0.05))
        for a in steps
    )


def test_extreme_odds_are_probabilities_too():
    curve = Curve(0.0, 1e6, 0.0, {})

    assert (curve.probability(Similarity(1, 0)), curve.probability(Similarity(-1, 0))) == (1.0, 0.0)


def test_nothing_found_has_no_answer():
    assert CALIBRATION.answers("anything", {"vector": [], "text": []}) == 0.0


def test_a_tool_that_only_its_words_found_is_as_far_as_the_last_that_the_vectors_found():
    found = SearchEvidence.of(
        "one two three four", {"vector": ranked(a=0.7, b=0.2), "text": ranked(c=3.0)}
    )

    assert found.similarities() == {
        "a": Similarity(0.7, 0.0),
        "b": Similarity(0.2, 0.0),
        "c": Similarity(0.2, 1.5),
    }
    assert found.searched_by("text").similarities() == {"c": Similarity(0.0, 1.5)}
    assert found.searched_by("vector").similarities() == {
        "a": Similarity(0.7, 0.0),
        "b": Similarity(0.2, 0.0),
    }


def test_words_count_by_the_root_of_how_many_different_ones_there_are():
    twice = SearchEvidence.of("play play", {"text": ranked(a=3.0)})
    none = SearchEvidence.of("???", {"text": []})

    assert twice.similarities() == {"a": Similarity(0.0, 3.0)}
    assert (none.words, none.similarities()) == (0, {})


def test_what_is_left_out_was_never_found():
    found = SearchEvidence.of("x", {"vector": ranked(a=0.7, b=0.2), "text": ranked(a=3.0)}).without(
        {"a"}
    )

    assert (found.mode, found.similarities()) == ("hybrid", {"b": Similarity(0.2, 0.0)})


def test_a_calibration_is_the_same_after_a_way_through_json():
    written = json.loads(json.dumps(CALIBRATION.to_dict()))

    assert Calibration.from_dict(written) == CALIBRATION
    assert CALIBRATION.thresholds(["hybrid"]) == {"accept_95": 0.25}


def test_a_mode_that_is_not_calibrated_is_named_with_those_that_are():
    assert CALIBRATION.knows(["vector"])
    assert CALIBRATION.knows(["vector", "text"])
    assert not CALIBRATION.knows(["text"])
    with pytest.raises(QueryError, match="not calibrated for mode 'text', but for: hybrid, vector"):
        CALIBRATION.probabilities("x", {"text": ranked(a=1.0)})


def test_a_calibration_over_other_measures_is_refused():
    with pytest.raises(
        ContractMismatch, match=r"of version 9; this library reads 1\. Use the pegboard version"
    ):
        Calibration.from_dict(CALIBRATION.to_dict() | {"version": 9})
