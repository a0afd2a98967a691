"""The ranker: order, probabilities, JSON, and rankers that are refused."""

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


def measures_of_two(**changes):
    """Return the measures of two candidates that are equal but for the changes."""
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


def test_equal_candidates_are_ordered_by_id_and_no_candidates_give_no_ranking():
    nothing = np.array([])
    measures = ("document", "summary", "bm25", "in_document", "in_name", "name_idf")
    measures += ("abbreviated", "named_agent")
    empty = measures_of_two(vector=[], tools=[], actions=[], **dict.fromkeys(measures, nothing))

    assert [row.tool for row in default_ranker().rank("x", measures_of_two())] == ["a", "b"]
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
def test_a_candidate_that_matches_better_ranks_first(better):
    assert default_ranker().rank("create an issue", measures_of_two(**better))[0].tool == "b"


def test_shares_of_words_are_finite_without_words():
    bare = measures_of_two(
        request_idf=0.0,
        **dict.fromkeys(("in_document", "in_name", "name_idf"), np.array([0.0, 0.0])),
    )

    shares = feature_matrix(measures_of_two(), ())[:, list(FEATURES).index("request_in_document")]

    assert shares.tolist() == [0.5, 0.5]
    assert np.isfinite(feature_matrix(bare, ())).all()


def test_contributions_add_up_to_the_score():
    ranker = default_ranker()
    candidates = measures_of_two(document=np.array([0.1, 0.9]))
    contributions = ranker.contributions("get it", candidates)

    for row in ranker.rank("get it", candidates):
        assert set(contributions[row.tool]) == set(FEATURES)
        assert sum(contributions[row.tool].values()) == pytest.approx(row.score, abs=1e-4)


def test_the_probability_rises_with_the_score_and_stays_within_0_and_1():
    probabilities = [default_ranker().probability(score) for score in (-1e9, -3, 0, 3, 9, 15, 1e9)]

    assert probabilities == sorted(probabilities)
    assert (probabilities[0], probabilities[-1]) == (0.0, 1.0)


def test_a_ranker_round_trips_through_json():
    ranker = default_ranker()

    assert Ranker.from_dict(json.loads(json.dumps(ranker.to_dict()))) == ranker
    assert 0 < ranker.thresholds["nothing_fits"] < ranker.thresholds["accept_95"] < 1


@pytest.mark.parametrize("change", [{"version": 9}, {"weights": {"charm": 1.0}}])
def test_a_ranker_with_unknown_features_or_version_is_refused(change):
    with pytest.raises(ContractMismatch, match=r"this library reads 1.*build the release again"):
        Ranker.from_dict(default_ranker().to_dict() | change)


def test_the_table_contract_describes_every_feature():
    contract = Path(__file__).parents[3] / "docs" / "reference" / "table-contract.md"
    hybrid = contract.read_text("utf-8").partition("**Hybrid.**")[2].partition("\n**")[0]

    assert re.findall(r"^\| (\w+) \|", hybrid, re.MULTILINE)[1:] == list(FEATURES)


def test_encoders_without_a_ranker_of_their_own_get_the_general_one():
    embedded = default_ranker(DEFAULT_ENCODER)
    general = default_ranker(OTHERS)

    assert embedded.weights != general.weights
    assert default_ranker("openai/text-embedding-3-small") == default_ranker() == general
    assert default_ranker(DEFAULT_ENCODER, legible=0.2) == default_ranker("hashing/64", legible=0.2)
