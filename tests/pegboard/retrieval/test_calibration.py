import json
import math

import pytest

from pegboard.errors import ContractMismatch, QueryError
from pegboard.retrieval.calibration import Calibration, Curve, Threshold, scores_by_mode
from pegboard.search.ranking import ScoredTool

THRESHOLDS = {"accept_95": Threshold(0.25, 0.95, 0.3)}
CALIBRATION = Calibration(
    {"hybrid": Curve(0.5, -3.0, THRESHOLDS), "vector": Curve(4.0, -2.0, THRESHOLDS)},
    60,
    40,
    True,
    0.5,
)


def ranked(**scores: float) -> list[ScoredTool]:
    return [ScoredTool(tool, score, "document") for tool, score in scores.items()]


def test_the_probability_of_a_tool_follows_from_its_score():
    rankings = {"vector": ranked(a=0.75, b=0.5), "text": ranked(b=6.0), "ranker": ranked(a=6, b=8)}

    found = CALIBRATION.probabilities("four words that make sense", rankings)

    assert found == {"b": round(1 / (1 + math.exp(-1)), 5), "a": 0.5}
    assert list(found) == ["b", "a"]
    assert CALIBRATION.answers("four words that make sense", rankings) == found["b"]


def test_a_search_by_vector_has_a_curve_of_its_own():
    assert CALIBRATION.probabilities("whatever", {"vector": ranked(a=0.5)}) == {"a": 0.5}


def test_a_tool_that_scores_more_is_never_less_probable():
    curve = CALIBRATION.curves["hybrid"]
    likely = [curve.probability(number / 2) for number in range(-20, 21)]

    assert likely == sorted(likely)


def test_extreme_odds_are_probabilities_too():
    curve = Curve(1e6, 0.0, {})

    assert (curve.probability(1), curve.probability(-1)) == (1.0, 0.0)


def test_nothing_found_has_no_answer():
    assert CALIBRATION.answers("anything", {"vector": [], "text": [], "ranker": []}) == 0.0


def test_words_count_by_the_root_of_how_many_different_ones_there_are():
    by_text = {"text": ranked(a=3.0)}

    assert scores_by_mode("play play", by_text) == {"text": {"a": 3.0}}
    assert scores_by_mode("play chess with Mary Poppins", by_text) == {"text": {"a": 1.5}}
    assert scores_by_mode("???", {"text": []}) == {"text": {}}


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
        ContractMismatch, match=r"of version 9; this library reads 2\. Use the pegboard version"
    ):
        Calibration.from_dict(CALIBRATION.to_dict() | {"version": 9})
