"""The cross-encoder: through its protocol, and what a missing extra says. No weights come with a
package, so none are loaded here.
"""

import importlib.util
import sys
import types
from dataclasses import dataclass
from typing import ClassVar

import pytest

from pegboard.errors import EncoderError, QueryError
from pegboard.records import Enrichment, Tool
from pegboard.retrieval.rules.cross_encoding import (
    CrossEncoderRerank,
    PairScorer,
    load_scorer,
    reranked_by,
)

REQUEST = "tides at Whitby"
SEA = ["sea/find_berth", "sea/list_tides", "sea/book_berth"]


class Words:
    """Scores a document by the words of the query in it."""

    def __init__(self):
        self.seen = []

    def scores(self, query, documents):
        self.seen.append((query, list(documents)))
        return [
            sum(word in document.lower() for word in query.lower().split())
            for document in documents
        ]


@dataclass(frozen=True, slots=True)
class Mine:
    """A part of one's own."""

    part: ClassVar[str] = "mine"
    scorer: PairScorer
    depth: int = 30

    async def refine(self, candidates, context):
        return await reranked_by(self.scorer, candidates, context, self.depth)


@pytest.fixture(autouse=True)
def forgotten():
    yield
    load_scorer.cache_clear()


def test_tools_come_in_the_order_of_their_scores_and_equal_ones_keep_theirs(desk):
    scorer = Words()
    candidates = desk.candidates({1: SEA}, {1: "tides"})

    assert desk.refine(Mine(scorer), candidates, desk.context(REQUEST)) == [SEA[1], SEA[0], SEA[2]]
    [(query, documents)] = scorer.seen
    assert query == "tides"  # the step's own text
    assert documents[1] == "list tides. High and low tide at a harbour."


def test_tools_behind_the_depth_and_unknown_ones_stay_behind(desk):
    candidates = desk.candidates({1: [*SEA[:1], "sea/gone", *SEA[1:]]}, {1: "tides book"})

    order = desk.refine(Mine(Words(), depth=3), candidates, desk.context(REQUEST))

    assert order == [SEA[1], SEA[0], "sea/gone", SEA[2]]


def test_over_several_steps_the_whole_request_is_scored(desk):
    scorer = Words()

    desk.refine(Mine(scorer), desk.candidates({0: SEA, 1: SEA, 2: SEA}), desk.context(REQUEST))

    assert scorer.seen[0][0] == REQUEST


def test_a_long_document_is_cut_and_what_an_llm_wrote_is_preferred(desk):
    tools = {
        f"kit/sea/{name}": Tool(
            f"kit/sea/{name}", "kit", "kit/sea", name, "word " * 1000, enrichment=written
        )
        for name, written in (("long", None), ("written", Enrichment(description="Short.")))
    }
    scorer = Words()

    desk.refine(
        Mine(scorer),
        desk.candidates({1: ["sea/long", "sea/written"]}),
        desk.context(REQUEST, tools=tools),
    )

    assert [len(document) for document in scorer.seen[0][1]] == [1000, len("written. Short.")]


def test_a_scorer_that_gives_too_few_scores_is_said(desk):
    class Few:
        def scores(self, query, documents):
            return [1.0]

    with pytest.raises(EncoderError, match="1 scores for 3 tools"):
        desk.refine(Mine(Few()), desk.candidates({1: SEA}), desk.context(REQUEST))


@pytest.mark.skipif(
    importlib.util.find_spec("fastembed") is not None, reason="fastembed is installed"
)
def test_without_the_extra_it_says_how_to_install_it(desk):
    with pytest.raises(
        EncoderError,
        match=r"package fastembed, which is not installed.*pip install 'pegboard\[fastembed\]'",
    ):
        desk.refine(CrossEncoderRerank(), desk.candidates({1: SEA}), desk.context(REQUEST))


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


def test_a_model_of_fastembed_orders_the_tools_and_is_loaded_once(desk, fastembed):
    part = CrossEncoderRerank(model="fastembed/hub/words")

    assert desk.refine(part, desk.candidates({1: SEA}, {1: "tides"}), desk.context(REQUEST)) == [
        SEA[1],
        SEA[0],
        SEA[2],
    ]
    assert load_scorer(part.model) is load_scorer(part.model)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("fastembed/unknown", "knows no cross-encoder 'unknown'. It knows: hub/words, hub/away"),
        (
            "fastembed/hub/away",
            "could not load 'hub/away': Could not load model from any source. It is fetched from "
            "a hub",
        ),
    ],
)
def test_a_model_that_cannot_be_loaded_is_said(desk, fastembed, model, problem):
    with pytest.raises(EncoderError, match=problem):
        desk.refine(
            CrossEncoderRerank(model=model), desk.candidates({1: SEA}), desk.context(REQUEST)
        )


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"model": "ms-marco"}, "names no cross-encoder"), ({"depth": 0}, "depth is 0")],
)
def test_wrong_options_are_said(options, problem):
    with pytest.raises(QueryError, match=problem):
        CrossEncoderRerank(**options)
