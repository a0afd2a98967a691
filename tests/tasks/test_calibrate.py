import numpy as np
import pyarrow as pa
import pytest

from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.ranker.model import default_ranker
from pegboard.retrieval.calibration import Scores
from pegboard.search.memory import MemoryIndex
from pegboard.search.text import query_words, tokenize
from tasks.calibrate import calibrate_index, calibrate_scores, fit_logistic, unseen, without

RANDOM = np.random.default_rng


def drawn(n: int, mean: float, seed: int) -> list[dict[str, Scores]]:
    """Requests whose best tool scores about `mean`, and their others 0."""
    best = RANDOM(seed).normal(mean, 0.1, n).tolist()
    return [{"hybrid": {"right": score, "other": 0.0}} for score in best]


def test_the_curve_that_made_the_labels_is_fitted_and_the_share_moves_the_bias_alone():
    random = RANDOM(3)
    scores = random.normal(0.5, 0.2, 40_000)
    labels = random.random(40_000) < 1 / (1 + np.exp(-(6.0 * scores - 3.5)))

    slope, bias = fit_logistic(scores, labels, share=float(labels.mean()))
    even, seldom = fit_logistic(scores, labels, 0.5), fit_logistic(scores, labels, 0.1)

    assert bias == pytest.approx(-3.5, abs=0.2)
    assert slope == pytest.approx(6.0, rel=0.05)
    assert seldom[1] - even[1] == pytest.approx(np.log(0.1 / 0.9), abs=0.1)
    assert seldom[0] == pytest.approx(even[0], rel=0.1)


def test_classes_that_are_apart_have_a_finite_slope_and_the_right_order():
    slope, bias = fit_logistic(np.array([0.1] * 50 + [0.9] * 50), np.arange(100) >= 50)

    assert np.isfinite([bias, slope]).all()
    assert bias + slope * 0.1 < -2 < 2 < bias + slope * 0.9


def test_probabilities_are_as_often_right_as_they_say():
    made = calibrate_scores(drawn(2000, 0.6, 1), drawn(2000, 0.45, 2), left_out=False)
    fresh = [(one, True) for one in drawn(2000, 0.6, 11)]
    fresh += [(one, False) for one in drawn(2000, 0.45, 12)]

    curve = made.curves["hybrid"]
    likely = np.array([curve.probability(max(one["hybrid"].values())) for one, _ in fresh])
    labels = np.array([label for _, label in fresh])

    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (likely >= low) & (likely <= low + 0.2)
        assert labels[inside].mean() == pytest.approx(likely[inside].mean(), abs=0.08)
    assert (likely[labels] >= curve.thresholds["accept_95"].probability).mean() == pytest.approx(
        0.95, abs=0.02
    )


def test_thresholds_say_what_they_let_through():
    made = calibrate_scores(drawn(200, 0.6, 1), drawn(100, 0.4, 2), left_out=False)

    assert (made.answerable, made.unanswerable, made.left_out) == (200, 100, False)
    curve = made.curves["hybrid"]
    strict, usual, lenient = (curve.thresholds[f"accept_{percent}"] for percent in (90, 95, 99))
    assert strict.probability >= usual.probability >= lenient.probability
    assert (strict.answerable, usual.answerable, lenient.answerable) >= (0.9, 0.95, 0.99)
    assert strict.unanswerable <= usual.unanswerable <= lenient.unanswerable


def test_a_mode_that_says_nothing_has_no_curve():
    same = [{"text": {"right": 0.5}} for _ in range(40)]

    assert calibrate_scores(same, same, left_out=False).curves == {}
    assert calibrate_scores(drawn(40, 0.3, 1), drawn(40, 0.6, 2), left_out=False).curves == {}


def test_leaving_out_the_only_tool_there_is_leaves_nothing():
    answerable = [{"vector": {"right": 0.5 + at / 100}} for at in range(40)]

    made = calibrate_scores(
        answerable, [without(one, {"right"}) for one in answerable], left_out=True
    )

    assert made.curves["vector"].thresholds["accept_99"].unanswerable == 0.0


def indexed(encoder: Encoder, texts: dict[str, str]) -> MemoryIndex:
    matrix = encoder.encode(list(texts.values()))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])
    return MemoryIndex(
        pa.table(
            {
                "tool": list(texts),
                "part": ["document"] * len(texts),
                "tokens": [" ".join(tokenize(text)) for text in texts.values()],
                "vector": vectors,
                "name_tokens": [" ".join(tokenize(name)) for name in texts],
                "actions": [""] * len(texts),
                "summary_vector": vectors,
            }
        )
    )


def test_an_index_is_calibrated_by_its_golden_requests_alone(encoder):
    texts = {
        "create_issue": "Opens an issue in a repository.",
        "get_forecast": "The weather forecast of a city.",
        "merge_branch": "Merges a branch into another.",
        "order_lunch": "Orders lunch for the office.",
        "convert_currency": "Converts an amount of money from one currency to another.",
    }
    searched = indexed(encoder, texts)
    asked = (
        "open issue {} in my repository",
        "weather forecast for day {}",
        "merge branch {}",
        "lunch for {} people",
    )
    golden = [
        (text.format(n), {tool})
        for n in range(10)
        for text, tool in zip(asked, texts, strict=False)
    ]

    made = calibrate_index(searched, encoder, golden, name="full")

    assert (made.answerable, made.unanswerable, made.left_out) == (40, 40, True)

    def probability(query: str) -> float:
        found = searched.both(encoder.encode([query])[0], query_words(query), 5)
        ranked = default_ranker().rank(query, found)
        return made.answers(query, {"vector": found.vector, "text": found.text, "ranker": ranked})

    assert (
        probability("convert money to another currency")
        > 0.5
        > probability("who wrote the fifth symphony?")
    )


def test_requests_that_stand_in_a_document_of_their_tool_are_left_out():
    documents = {
        "a": ["book room. Books a meeting room.\nWhere can ten people meet?\nA room!"],
        "b": ["taxi"],
    }
    golden = [
        ("where can ten  people meet", {"a"}),
        ("where can nine people meet?", {"a"}),
        ("taxi", {"a"}),
        ("x", {"c"}),
    ]

    assert unseen(golden, documents) == golden[1:]


def test_all_problems_of_the_requests_are_reported_together(hashing):
    class Empty:
        def both(self, query, tokens, n):
            raise AssertionError("nothing is searched")

    with pytest.raises(ConfigurationError) as error:
        calibrate_index(
            Empty(), hashing(), [("", {"a"}), ("x", set())], ["y", " "], share=1.0, name="full"
        )

    for problem in (
        "The scores of index 'full' cannot be calibrated: 2 golden requests; expected 30 or more",
        "2 unanswerable requests; expected 30 or more, or none",
        "golden requests [0] are blank (1)",
        "unanswerable requests [1] are blank (1)",
        "golden requests [1] have no right tool (1)",
        "the share of requests with an answer is 1.0",
        "Add requests to the files of [golden]",
    ):
        assert problem in str(error.value)
