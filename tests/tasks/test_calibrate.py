import numpy as np
import pyarrow as pa
import pytest

from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.retrieval.calibration import SearchEvidence
from pegboard.search.memory import MemoryIndex
from pegboard.search.ranking import Ranked
from pegboard.search.text import query_words, tokenize
from tasks.calibrate import calibrate_evidence, calibrate_index, fit_logistic, unseen

RANDOM = np.random.default_rng


def evidence(cosine: float, bm25: float | None = None, other: float = 0.0) -> SearchEvidence:
    """A request of four words whose best tool is `right`."""
    text = [] if bm25 is None else [Ranked("right", bm25, "document")]
    vector = sorted(
        (Ranked("right", cosine, "document"), Ranked("other", other, "document")),
        key=lambda row: -row.score,
    )
    return SearchEvidence(vector, text, 4)


def drawn(n: int, cosine: float, bm25: float, seed: int) -> list[SearchEvidence]:
    random = RANDOM(seed)
    return [
        evidence(random.normal(cosine, 0.1), max(random.normal(bm25, 2.0), 0.0)) for _ in range(n)
    ]


def test_the_weights_that_made_the_labels_are_fitted_and_the_share_moves_the_bias_alone():
    random = RANDOM(3)
    measures = random.normal([0.5, 2.0], [0.2, 1.0], (40_000, 2))
    labels = random.random(40_000) < 1 / (
        1 + np.exp(-(-5.0 + 6.0 * measures[:, 0] + 0.8 * measures[:, 1]))
    )

    bias, weights = fit_logistic(measures, labels, share=float(labels.mean()))
    even, seldom = fit_logistic(measures, labels, 0.5), fit_logistic(measures, labels, 0.1)

    assert bias == pytest.approx(-5.0, abs=0.2)
    assert weights == pytest.approx([6.0, 0.8], rel=0.05)
    assert seldom[0] - even[0] == pytest.approx(np.log(0.1 / 0.9), abs=0.1)
    assert seldom[1] == pytest.approx(even[1], rel=0.1)


def test_classes_that_are_apart_have_finite_weights_and_the_right_order():
    measures = np.array([[0.1]] * 50 + [[0.9]] * 50)

    bias, weights = fit_logistic(measures, np.arange(100) >= 50)

    assert np.isfinite([bias, *weights]).all()
    assert bias + weights[0] * 0.1 < -2 < 2 < bias + weights[0] * 0.9


def test_no_measure_counts_against_and_a_constant_one_not_at_all():
    random = RANDOM(5)
    labels = np.arange(400) < 200
    measures = np.column_stack(
        [labels + random.normal(0, 1, 400), 1.0 - labels + random.normal(0, 1, 400), np.ones(400)]
    )

    _, weights = fit_logistic(measures, labels)

    assert weights[0] > 0
    assert weights[1:].tolist() == [0.0, 0.0]


def test_probabilities_are_as_often_right_as_they_say():
    made = calibrate_evidence(drawn(2000, 0.6, 6, 1), drawn(2000, 0.45, 3, 2), left_out=False)
    fresh = [(one, True) for one in drawn(2000, 0.6, 6, 11)] + [
        (one, False) for one in drawn(2000, 0.45, 3, 12)
    ]

    curve = made.curves["hybrid"]
    likely = np.array(
        [max(map(curve.probability, one.similarities().values())) for one, _ in fresh]
    )
    labels = np.array([label for _, label in fresh])

    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (likely >= low) & (likely <= low + 0.2)
        assert labels[inside].mean() == pytest.approx(likely[inside].mean(), abs=0.08)
    assert (likely[labels] >= curve.thresholds["accept_95"].probability).mean() == pytest.approx(
        0.95, abs=0.02
    )


def test_thresholds_say_what_they_let_through():
    made = calibrate_evidence(drawn(200, 0.6, 6, 1), drawn(100, 0.4, 3, 2), left_out=False)

    assert set(made.curves) == {"hybrid", "vector", "text"}
    assert (made.answerable, made.unanswerable, made.left_out) == (200, 100, False)
    for curve in made.curves.values():
        strict, usual, lenient = (curve.thresholds[f"accept_{percent}"] for percent in (90, 95, 99))
        assert strict.probability >= usual.probability >= lenient.probability
        assert (strict.answerable, usual.answerable, lenient.answerable) >= (0.9, 0.95, 0.99)
        assert strict.unanswerable <= usual.unanswerable <= lenient.unanswerable


def test_a_mode_without_evidence_has_no_curve():
    random, same = RANDOM(6), [evidence(0.5, 3.0) for _ in range(40)]
    by_cosine = [[evidence(random.normal(mean, 0.1)) for _ in range(50)] for mean in (0.6, 0.3)]

    made = calibrate_evidence(*by_cosine, left_out=False)

    assert set(made.curves) == {"hybrid", "vector"}
    assert made.curves["hybrid"].words == 0.0 < made.curves["hybrid"].cosine
    assert calibrate_evidence(same, same, left_out=False).curves == {}


def test_leaving_out_the_only_tool_there_is_leaves_nothing():
    answerable = [SearchEvidence([Ranked("right", 0.5 + at / 100, "")], [], 4) for at in range(40)]

    made = calibrate_evidence(
        answerable, [one.without({"right"}) for one in answerable], left_out=True
    )

    assert made.curves["vector"].thresholds["accept_99"].unanswerable == 0.0


def indexed(encoder: Encoder, texts: dict[str, str]) -> MemoryIndex:
    vectors = encoder.encode(list(texts.values()))
    return MemoryIndex(
        pa.table(
            {
                "tool": list(texts),
                "part": ["document"] * len(texts),
                "tokens": [" ".join(tokenize(text)) for text in texts.values()],
                "vector": pa.FixedSizeListArray.from_arrays(
                    pa.array(vectors.ravel()), vectors.shape[1]
                ),
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
        vector, text = searched.both(encoder.encode([query])[0], query_words(query), 5)
        return made.answers(query, {"vector": vector, "text": text})

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
            return [], []

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
