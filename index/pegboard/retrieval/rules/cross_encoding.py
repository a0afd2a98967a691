"""Ordering tools by a cross-encoder, which reads the request and a tool together: the reranker that
needs no LLM (Toolshed, section 3.4.3).

    fastembed/Xenova/ms-marco-MiniLM-L-6-v2    runs here, weights from a hub at first use, 80 MB
    pegboard[fastembed]

A scorer is anything with the one method of `PairScorer`; a part of one's own hands it to
`reranked_by`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from pegboard.encoders import import_extra, missing_extra
from pegboard.errors import EncoderError, QueryError
from pegboard.records import Tool
from pegboard.retrieval.llm.questions import subject
from pegboard.retrieval.parts import Candidates, Context, ScoredTool
from pegboard.search.text import identifier_words

DOCUMENT_CHARACTERS = 1_000
"""About 250 tokens; with the request beside it, a model of 512 reads it whole."""
_KIND = "fastembed"


class PairScorer(Protocol):
    """Scores documents for a query."""

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """One score for each document, in their order; higher is better, of any range."""
        ...


@dataclass(frozen=True, slots=True)
class CrossEncoderRerank:
    """A refinement: a cross-encoder orders the first tools of the ranking, of one step or of the
    whole request.

    The ranking's first `depth` tools have the scores of the cross-encoder afterwards; those behind
    keep their order, below them.

    Attributes:
        model: `fastembed/` and a model as fastembed lists it.
        depth: the tools that are scored; each takes some milliseconds.
    """

    part: ClassVar[str] = "cross-encoder-rerank"
    model: str = "fastembed/Xenova/ms-marco-MiniLM-L-6-v2"
    depth: int = 30

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise QueryError(f"The part '{self.part}': depth is {self.depth}, expected 1 or more.")
        if not self.model.removeprefix(f"{_KIND}/").strip() or not self.model.startswith(
            f"{_KIND}/"
        ):
            raise QueryError(
                f"The part '{self.part}': model = {self.model!r} names no cross-encoder. Expected "
                f"'fastembed/' and a model of its list."
            )

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """The ranking, with its first tools in the order of their scores.

        Raises:
            EncoderError: fastembed is not installed, does not know the model, or cannot fetch it.
        """
        if len(candidates.ranking) < 2:
            return list(candidates.ranking)
        return await reranked_by(load_scorer(self.model), candidates, context, self.depth)


async def reranked_by(
    scorer: PairScorer, candidates: Candidates, context: Context, depth: int
) -> list[ScoredTool]:
    """The ranking, with its first `depth` tools in the order of a scorer's scores; equal ones keep
    their order.
    """
    tools = await context.tools([row.tool for row in candidates.ranking[:depth]])
    ids = [row.tool for row in candidates.ranking[:depth] if row.tool in tools]
    rest = [row.tool for row in candidates.ranking if row.tool not in tools]
    query = subject(candidates, context)
    scores = scorer.scores(query, [_document(tools[tool]) for tool in ids])
    if len(scores) != len(ids):
        raise EncoderError(
            f"The cross-encoder gave {len(scores)} scores for {len(ids)} tools; expected one "
            f"for each."
        )
    first = sorted(
        (ScoredTool(tool, float(score)) for tool, score in zip(ids, scores, strict=True)),
        key=lambda row: -row.score,
    )
    lowest = first[-1].score if first else 0.0
    return [*first, *(ScoredTool(tool, lowest - place) for place, tool in enumerate(rest, start=1))]


@lru_cache(maxsize=2)
def load_scorer(model: str) -> PairScorer:
    """The scorer of that name; loaded once, since it takes a second and some hundred megabytes.

    Raises:
        EncoderError: fastembed is not installed, does not know the model, or cannot fetch it.
    """
    try:
        encoder = import_extra("fastembed.rerank.cross_encoder").TextCrossEncoder
    except EncoderError as error:
        if isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name == _KIND:
            raise missing_extra(_KIND) from None
        raise
    name = model.removeprefix(f"{_KIND}/")
    ids = [str(row["model"]) for row in encoder.list_supported_models()]
    if name not in ids:
        raise EncoderError(
            f"fastembed knows no cross-encoder {name!r}. It knows: {', '.join(ids)}."
        )
    try:
        return _FastembedScorer(encoder(model_name=name, threads=2))
    except Exception as error:  # what it raises depends on the hub's client
        raise EncoderError(
            f"fastembed could not load {name!r}: {error}. It is fetched from a hub at first use: "
            f"check the network, or bring its cache."
        ) from error


class _FastembedScorer:
    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        return [float(score) for score in self._encoder.rerank(query, list(documents))]


def _document(tool: Tool) -> str:
    written = tool.enrichment.description if tool.enrichment else ""
    return f"{identifier_words(tool.name)}. {written or tool.description}"[:DOCUMENT_CHARACTERS]
