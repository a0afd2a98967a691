import pytest

from pegboard.errors import QueryError
from pegboard.retrieval.rules.scores import AtLeast
from tests.pegboard.retrieval.stubs import StubContext, one_step, refined

COSINES = {"cosines": {"a": 0.5, "b": 0.9, "c": 0.49}}
PROBABILITIES = {
    "probabilities": {"a": 0.9, "b": 0.4, "c": 0.2},
    "thresholds": {"accept_95": 0.3},
}


@pytest.mark.parametrize(
    ("part", "measures", "expected"),
    [
        (AtLeast(), COSINES, "ab"),
        (AtLeast(score=0.6), COSINES, "b"),
        (AtLeast(score=0.95), COSINES, ""),
        (AtLeast(probability=0.9), PROBABILITIES, "a"),
        (AtLeast(probability="accept_95"), PROBABILITIES, "ab"),
        (AtLeast(probability=0.0), PROBABILITIES, "abc"),
        # A tool that no search found has neither measure.
        (AtLeast(probability=0.0), {"probabilities": {"b": 0.4}}, "b"),
        (AtLeast(score=-1.0), {"cosines": {"c": -1.0}}, "c"),
    ],
)
def test_tools_that_reach_the_threshold_stay_in_their_order(part, measures, expected):
    context = StubContext(**measures)

    assert "".join(refined(part, one_step("abc"), context)) == expected
    assert context.trace.note.startswith(f"{len(expected)} of 3 tools reach ")


@pytest.mark.parametrize(
    ("part", "measures", "message"),
    [
        (
            AtLeast(probability=0.5),
            COSINES,
            "which only a hybrid search gives. Search in both modes",
        ),
        (
            AtLeast(probability="accept_50"),
            PROBABILITIES,
            "'accept_50', but the index has: accept_95",
        ),
        (AtLeast(), PROBABILITIES, r"vectors were not searched\. Search in mode 'hybrid'"),
    ],
)
def test_a_threshold_on_a_measure_that_is_missing_is_an_error(part, measures, message):
    with pytest.raises(QueryError, match=message):
        refined(part, one_step("abc"), StubContext(**measures))
    assert refined(part, one_step(""), StubContext(**measures)) == []
