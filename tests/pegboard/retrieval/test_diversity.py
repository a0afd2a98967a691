import numpy as np
import pytest

from pegboard.retrieval.rules.diversity import MaximalMarginalRelevance, WithoutDuplicates
from tests.pegboard.retrieval.stubs import StubContext, one_step, ranking, refined, scored

# Radians; tools at a small angle say the same.
ANGLES = {"mail": 0.0, "mail_copy": 0.01, "post": 0.3, "map": 1.5, "route": 1.4}
VECTORS = {
    tool: np.array([np.cos(angle), np.sin(angle)], np.float32) for tool, angle in ANGLES.items()
}


@pytest.mark.parametrize(
    ("part", "before", "after"),
    [
        (MaximalMarginalRelevance(share=0.4), "mail mail_copy map post", "mail map mail_copy post"),
        (MaximalMarginalRelevance(share=1.0), "mail mail_copy post map", "mail mail_copy post map"),
        (MaximalMarginalRelevance(share=0.0), "mail post route map", "mail map post route"),
        # Tools without a vector and those behind the depth keep their places.
        (
            MaximalMarginalRelevance(share=0.3, depth=4),
            "mail unknown mail_copy map post route",
            "mail unknown map mail_copy post route",
        ),
        (MaximalMarginalRelevance(), "", ""),
        (MaximalMarginalRelevance(), "unknown nobody", "unknown nobody"),
        (WithoutDuplicates(), "", ""),
        (WithoutDuplicates(), "unknown nobody", "unknown nobody"),
        (WithoutDuplicates(), "mail unknown mail_copy post map", "mail unknown post map"),
        (WithoutDuplicates(cosine=1.0), "mail mail_copy", "mail mail_copy"),
        (WithoutDuplicates(cosine=0.9), "mail post mail_copy", "mail"),
        (WithoutDuplicates(depth=2), "mail map mail_copy", "mail map mail_copy"),
    ],
    ids=str,
)
def test_copies_give_way_to_tools_that_differ(part, before, after):
    assert (
        refined(part, one_step(before.split()), StubContext(unit_vectors=VECTORS)) == after.split()
    )


def test_reordered_tools_take_the_scores_of_their_places_and_equal_ones_keep_their_order():
    step = one_step(["mail", "mail_copy", "map", "post"])
    rows = scored(MaximalMarginalRelevance(share=0.3), step, StubContext(unit_vectors=VECTORS))

    assert [row.tool for row in rows] != [row.tool for row in step.ranking]
    assert [row.score for row in rows] == [row.score for row in ranking(range(4))]


def test_the_trace_names_the_duplicates():
    context = StubContext(unit_vectors=VECTORS)

    refined(WithoutDuplicates(), one_step(["mail", "mail_copy"]), context)

    assert context.trace.note == "left out as duplicates: mail_copy"
