import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest

from pegboard.errors import QueryError
from pegboard.retrieval.parts import Candidates, Context, ScoredTool
from pegboard.retrieval.results import PartTrace
from pegboard.retrieval.rules.scores import AtLeast

RANKING = [ScoredTool("a", 1.0), ScoredTool("b", 0.8), ScoredTool("c", 0.6)]


@dataclass
class Knowing:
    """A context that knows what its search found."""

    cosines: Mapping[str, float] | None = None
    probabilities: Mapping[str, float] | None = None
    thresholds: Mapping[str, float] | None = None
    trace: PartTrace = field(default_factory=lambda: PartTrace("at-least", "refine"))


def kept(part: AtLeast, context: Knowing, ranking: list[ScoredTool] = RANKING) -> str:
    found = asyncio.run(
        part.refine(Candidates({0: ranking}, ranking, {0: "?"}), cast("Context", context))
    )
    return "".join(one.tool for one in found)


def test_every_tool_above_the_cosine_is_kept_in_the_order_of_the_ranking():
    context = Knowing(cosines={"a": 0.5, "b": 0.9, "c": 0.49})

    assert kept(AtLeast(), context) == "ab"
    assert context.trace.note == "2 of 3 tools reach 0.5"
    assert kept(AtLeast(score=0.6), context) == "b"
    assert kept(AtLeast(score=0.95), context) == ""


def test_every_tool_above_the_probability_is_kept_by_number_or_by_name():
    context = Knowing(probabilities={"a": 0.9, "b": 0.4, "c": 0.2}, thresholds={"accept_95": 0.3})

    assert kept(AtLeast(probability=0.9), context) == "a"
    assert kept(AtLeast(probability="accept_95"), context) == "ab"
    assert kept(AtLeast(probability=0.0), context) == "abc"


def test_a_tool_that_no_search_found_is_left_out():
    assert kept(AtLeast(probability=0.0), Knowing(probabilities={"b": 0.4})) == "b"
    assert kept(AtLeast(score=-1.0), Knowing(cosines={"c": -1.0})) == "c"


def test_an_empty_ranking_needs_no_threshold():
    assert kept(AtLeast(probability=0.5), Knowing(), []) == ""


def test_what_the_index_cannot_tell_is_said():
    with pytest.raises(
        QueryError,
        match=r"index is not calibrated\. Build the release with golden queries, or give `score`",
    ):
        kept(AtLeast(probability=0.5), Knowing(cosines={"a": 1.0}))
    with pytest.raises(
        QueryError, match=r"'accept_50', but the index's calibration has: accept_95"
    ):
        kept(
            AtLeast(probability="accept_50"),
            Knowing(probabilities={"a": 1.0}, thresholds={"accept_95": 0.3}),
        )
    with pytest.raises(QueryError, match=r"vectors were not searched\. Search in mode 'hybrid'"):
        kept(AtLeast(), Knowing(probabilities={"a": 1.0}))


def test_a_part_that_cannot_work_names_all_that_is_wrong():
    with pytest.raises(
        QueryError, match=r"both given; expected one of them; probability is 1\.5; .* score is 7"
    ):
        AtLeast(probability=1.5, score=7)
