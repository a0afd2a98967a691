"""The cross-encoder: through its protocol, and without the extra. No weights come with a package,
so none are loaded here.
"""

import importlib.util
import sys
import types
from dataclasses import dataclass
from typing import ClassVar

import pytest

from pegboard.errors import EncoderError
from pegboard.records import Enrichment, Tool
from pegboard.retrieval.rules.cross_encoding import (
    CrossEncoderRerank,
    PairScorer,
    load_scorer,
    reranked_by,
)
from tests.pegboard.retrieval.stubs import candidates, context, refined

REQUEST = "tides at Whitby"
SEA = ["sea/find_berth", "sea/list_tides", "sea/book_berth"]
TIDES = candidates({1: SEA}, {1: "tides"})


class Words:
    """Scores a document by the words of the query in it."""

    def __init__(self):
        self.calls = []

    def scores(self, query, documents):
        self.calls.append((query, list(documents)))
        words = query.lower().split()
        return [sum(word in document.lower() for word in words) for document in documents]


@dataclass(frozen=True, slots=True)
class OwnRerank:
    """A user's part around a scorer."""

    part: ClassVar[str] = "own"
    scorer: PairScorer
    depth: int = 30

    async def refine(self, candidates, context):
        return await reranked_by(self.scorer, candidates, context, self.depth)


@pytest.fixture(autouse=True)
def forgotten():
    yield
    load_scorer.cache_clear()


def test_tools_come_in_the_order_of_their_scores_and_equal_ones_keep_theirs():
    scorer = Words()

    assert refined(OwnRerank(scorer), TIDES, context(REQUEST)) == [SEA[1], SEA[0], SEA[2]]
    [(query, documents)] = scorer.calls
    assert query == "tides"  # the step's own text
    assert documents[1] == "list tides. High and low tide at a harbour."


def test_tools_behind_the_depth_and_unknown_ones_stay_behind():
    step = candidates({1: [*SEA[:1], "sea/gone", *SEA[1:]]}, {1: "tides book"})

    order = refined(OwnRerank(Words(), depth=3), step, context(REQUEST))

    assert order == [SEA[1], SEA[0], "sea/gone", SEA[2]]


def test_the_whole_request_is_scored_over_several_steps_and_enriched_text_is_preferred():
    written = Enrichment(description="Short.")
    catalog = {
        "long": Tool("long", "kit", "sea", "long", "word " * 1000),
        "written": Tool("written", "kit", "sea", "written", "word " * 1000, enrichment=written),
    }
    scorer, tools = Words(), [*catalog]

    refined(
        OwnRerank(scorer),
        candidates({0: tools, 1: tools, 2: tools}),
        context(REQUEST, catalog=catalog),
    )

    [(query, documents)] = scorer.calls
    assert query == REQUEST
    assert [len(document) for document in documents] == [1000, len("written. Short.")]


def test_a_wrong_number_of_scores_is_an_error():
    class Few:
        def scores(self, query, documents):
            return [1.0]

    with pytest.raises(EncoderError, match="1 scores for 3 tools"):
        refined(OwnRerank(Few()), TIDES, context(REQUEST))


@pytest.mark.skipif(
    importlib.util.find_spec("fastembed") is not None, reason="fastembed is installed"
)
def test_without_the_extra_the_error_says_how_to_install_it():
    with pytest.raises(
        EncoderError,
        match=r"package fastembed, which is not installed.*pip install 'pegboard\[fastembed\]'",
    ):
        refined(CrossEncoderRerank(), TIDES, context(REQUEST))


@pytest.fixture
def fastembed(monkeypatch):
    """The part of fastembed that is used, without weights: the package may not be installed, and
    would fetch them from a hub.
    """

    class TextCrossEncoder:
        def __init__(self, model_name, threads):
            if model_name == "hub/away":
                raise ValueError("Could not load model from any source")

        @staticmethod
        def list_supported_models():
            return [{"model": "hub/words"}, {"model": "hub/away"}]

        def rerank(self, query, documents):
            return iter(Words().scores(query, documents))

    parts = ("fastembed", "fastembed.rerank", "fastembed.rerank.cross_encoder")
    for name in parts:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[parts[-1]].TextCrossEncoder = TextCrossEncoder


def test_a_model_of_fastembed_orders_the_tools_and_is_loaded_once(fastembed):
    part = CrossEncoderRerank(model="fastembed/hub/words")

    assert refined(part, TIDES, context(REQUEST)) == [SEA[1], SEA[0], SEA[2]]
    assert load_scorer(part.model) is load_scorer(part.model)
    assert refined(part, candidates({1: SEA[:1]}), context(REQUEST)) == SEA[:1]


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("unknown", "knows no cross-encoder 'unknown'. It knows: hub/words, hub/away"),
        ("hub/away", "'hub/away': Could not load model from any source. It is fetched from a hub"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_an_error(fastembed, model, problem):
    with pytest.raises(EncoderError, match=problem):
        refined(CrossEncoderRerank(model=f"fastembed/{model}"), TIDES, context(REQUEST))
