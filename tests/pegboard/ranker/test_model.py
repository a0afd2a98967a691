"""The ranker: order, probability, JSON, and what it refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pegboard.encoders import DEFAULT_ENCODER
from pegboard.errors import ContractMismatch
from pegboard.ranker.features import FEATURES, Measures, feature_matrix
from pegboard.ranker.model import OTHERS, Ranker, default_ranker
from pegboard.ranking import ScoredTool


def found(**changes):
    """Two candidates that differ in what a test changes only."""
    values = {
        "vector": [ScoredTool("b", 0.5), ScoredTool("a", 0.5)],
        "text": [],
        "tools": ["b", "a"],
        **dict.fromkeys(("document", "summary"), np.array([0.5, 0.5])),
        **dict.fromkeys(("bm25", "in_document", "in_name", "name_idf"), np.array([2.0, 2.0])),
        **dict.fromkeys(("abbreviated", "named_agent"), np.array([0.0, 0.0])),
        "request_idf": 4.0,
        "actions": [frozenset(), frozenset()],
    }
    return Measures(**{**values, **changes})


def test_equal_candidates_are_ordered_by_id_and_nothing_found_is_nothing():
    nothing = np.array([])
    measures = ("document", "summary", "bm25", "in_document", "in_name", "name_idf")
    measures += ("abbreviated", "named_agent")
    empty = found(vector=[], tools=[], actions=[], **dict.fromkeys(measures, nothing))

    assert [row.tool for row in default_ranker().rank("x", found())] == ["a", "b"]
    assert default_ranker().rank("x", empty) == []


@pytest.mark.parametrize(
    "better",
    [
        {"document": np.array([0.6, 0.5])},
        {"summary": np.array([0.6, 0.5])},
        {"bm25": np.array([3.0, 2.0])},
        {"in_document": np.array([3.0, 2.0])},
        {"abbreviated": np.array([1.0, 0.0])},
        {"named_agent": np.array([1.0, 0.0])},
        {"actions": [frozenset({"create"}), frozenset({"get"})]},
        {"actions": [frozenset({"update"}), frozenset({"delete"})]},
    ],
    ids=lambda better: next(iter(better)),
)
def test_more_likeness_is_never_worse(better):
    assert default_ranker().rank("create an issue", found(**better))[0].tool == "b"


def test_shares_are_of_the_words_there_are():
    bare = found(
        request_idf=0.0,
        **dict.fromkeys(("in_document", "in_name", "name_idf"), np.array([0.0, 0.0])),
    )

    shares = feature_matrix(found(), ())[:, list(FEATURES).index("request_in_document")]

    assert shares.tolist() == [0.5, 0.5]
    assert np.isfinite(feature_matrix(bare, ())).all()


def test_what_features_add_makes_up_the_score():
    ranker, candidates = default_ranker(), found(document=np.array([0.1, 0.9]))
    added = ranker.contributions("get it", candidates)

    for row in ranker.rank("get it", candidates):
        assert set(added[row.tool]) == set(FEATURES)
        assert sum(added[row.tool].values()) == pytest.approx(row.score, abs=1e-4)


def test_the_probability_rises_with_the_score_and_stays_within_0_and_1():
    likely = [default_ranker().probability(score) for score in (-1e9, -3, 0, 3, 9, 15, 1e9)]

    assert likely == sorted(likely)
    assert (likely[0], likely[-1]) == (0.0, 1.0)


def test_a_ranker_is_the_same_after_a_way_through_json():
    ranker = default_ranker()

    assert Ranker.from_dict(json.loads(json.dumps(ranker.to_dict()))) == ranker
    assert 0 < ranker.thresholds["nothing_fits"] < ranker.thresholds["accept_95"] < 1


@pytest.mark.parametrize("change", [{"version": 9}, {"weights": {"charm": 1.0}}])
def test_a_ranker_of_other_features_is_refused(change):
    with pytest.raises(ContractMismatch, match=r"this library reads 1.*build the release again"):
        Ranker.from_dict(default_ranker().to_dict() | change)


def test_the_table_contract_describes_every_feature():
    contract = Path(__file__).parents[3] / "docs" / "reference" / "table-contract.md"
    hybrid = contract.read_text("utf-8").partition("**Hybrid.**")[2].partition("\n**")[0]

    assert re.findall(r"^\| (\w+) \|", hybrid, re.MULTILINE)[1:] == list(FEATURES)


def test_an_encoder_has_the_ranker_that_was_fitted_to_it_and_others_that_of_a_general_one():
    own, general = default_ranker(DEFAULT_ENCODER), default_ranker(OTHERS)

    assert own.weights != general.weights
    assert default_ranker("openai/text-embedding-3-small") == default_ranker() == general
    assert default_ranker(DEFAULT_ENCODER, legible=0.2) == default_ranker("hashing/64", legible=0.2)
