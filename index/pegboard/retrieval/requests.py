"""The records that the parts of a strategy exchange: the request, its queries, the candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pegboard.llm import Message
from pegboard.ranking import ScoredTool

Role = Literal[
    "request", "rewrite", "agent-query", "clause", "step", "variation", "step-back", "missing"
]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to find tools for.

    Attributes:
        text: the text as the caller wrote it, or as a transform rewrote it.
        k: the number of tools that the caller wants.
        history: the conversation before it, oldest first.
    """

    text: str
    k: int
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One text to search for.

    Attributes:
        step: the step of the request that it belongs to, from 1; 0 is the whole request. The
            queries of each step are fused first.
        role: its origin.
        weight: the weight of its ranking within its step, for fusions that use weights.
    """

    text: str
    step: int = 0
    role: Role = "request"
    weight: float = 1.0


Ranking = Sequence[ScoredTool]
"""Tools, best first, without duplicates."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The tools found so far.

    Attributes:
        steps: the ranking of every step, by its number; a single one without decomposition.
        ranking: the ranking over all steps.
        texts: the text of every step; that of step 0 is the request as last rewritten.
        searches: the rankings of the queries of each step, by the query's text.
    """

    steps: Mapping[int, Ranking]
    ranking: Ranking
    texts: Mapping[int, str]
    searches: Mapping[int, Mapping[str, Ranking]] = field(
        default_factory=dict[int, Mapping[str, Ranking]]
    )
