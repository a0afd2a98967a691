import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest

from pegboard.errors import QueryError
from pegboard.retrieval.parts import Candidates, ScoredTool
from pegboard.retrieval.results import PartTrace
from pegboard.retrieval.rules.diversity import MaximalMarginalRelevance, WithoutDuplicates

ANGLES = {"mail": 0.0, "mail_copy": 0.01, "post": 0.3, "map": 1.5, "route": 1.4}
"""Radians; tools at a small angle say the same."""


@dataclass
class StubContext:
    trace: PartTrace = field(default_factory=lambda: PartTrace("", "refine"))

    async def vectors(self, ids):
        found = {one: ANGLES[one] for one in ids if one in ANGLES}
        return {
            one: np.array([np.cos(angle), np.sin(angle)], np.float32)
            for one, angle in found.items()
        }


def refined(
    part, ranking: list[ScoredTool], context: StubContext | None = None
) -> list[ScoredTool]:
    return asyncio.run(
        part.refine(Candidates({0: ranking}, ranking, {0: "mail"}), context or StubContext())
    )


def ranking(*tools: str) -> list[ScoredTool]:
    return [ScoredTool(tool, 1 - place / 10) for place, tool in enumerate(tools)]


def order(found: list[ScoredTool]) -> list[str]:
    return [one.tool for one in found]


def test_a_tool_unlike_the_first_passes_a_copy_of_it():
    found = refined(
        MaximalMarginalRelevance(share=0.4), ranking("mail", "mail_copy", "map", "post")
    )

    assert order(found) == ["mail", "map", "mail_copy", "post"] or order(found) == [
        "mail",
        "map",
        "post",
        "mail_copy",
    ]
    assert order(found).index("map") < order(found).index("mail_copy")


def test_scores_still_fall_after_the_order_has_changed():
    before = ranking("mail", "mail_copy", "map", "post")

    found = refined(MaximalMarginalRelevance(share=0.3), before)

    assert order(found) != order(before)
    assert [one.score for one in found] == [one.score for one in before]


def test_with_the_whole_share_the_order_stays():
    before = ranking("mail", "mail_copy", "post", "map")

    assert refined(MaximalMarginalRelevance(share=1.0), before) == before


def test_with_no_share_the_second_is_the_most_different_one():
    assert order(
        refined(MaximalMarginalRelevance(share=0.0), ranking("mail", "post", "route", "map"))
    )[:2] == [
        "mail",
        "map",
    ]


def test_tools_without_a_vector_and_those_behind_the_depth_keep_their_places():
    before = ranking("mail", "unknown", "mail_copy", "map", "post", "route")

    found = order(refined(MaximalMarginalRelevance(share=0.3, depth=4), before))

    assert found == ["mail", "unknown", "map", "mail_copy", "post", "route"]


def test_equal_tools_keep_their_order():
    tools = [ScoredTool("map", 0.5), ScoredTool("mail", 0.5)]

    assert refined(MaximalMarginalRelevance(), tools) == tools


@pytest.mark.parametrize("part", [MaximalMarginalRelevance(), WithoutDuplicates()], ids=str)
def test_an_empty_ranking_stays_empty(part):
    assert refined(part, []) == []
    assert order(refined(part, ranking("unknown", "nobody"))) == ["unknown", "nobody"]


def test_a_duplicate_is_left_out_and_the_trace_says_so():
    context = StubContext()

    found = refined(
        WithoutDuplicates(), ranking("mail", "unknown", "mail_copy", "post", "map"), context
    )

    assert order(found) == ["mail", "unknown", "post", "map"]
    assert "mail_copy" in context.trace.note


def test_what_is_only_alike_stays():
    assert order(refined(WithoutDuplicates(cosine=1.0), ranking("mail", "mail_copy"))) == [
        "mail",
        "mail_copy",
    ]
    assert order(refined(WithoutDuplicates(cosine=0.9), ranking("mail", "post", "mail_copy"))) == [
        "mail"
    ]


def test_duplicates_behind_the_depth_stay():
    found = refined(WithoutDuplicates(depth=2), ranking("mail", "map", "mail_copy"))

    assert order(found) == ["mail", "map", "mail_copy"]


@pytest.mark.parametrize(
    ("part", "options"),
    [
        (MaximalMarginalRelevance, {"share": 1.1}), (MaximalMarginalRelevance, {"depth": 0}),
        (WithoutDuplicates, {"cosine": 0}), (WithoutDuplicates, {"depth": 0}),
    ],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused_by_name(part, options):
    with pytest.raises(QueryError, match=next(iter(options))):
        part(**options)
