"""What passes between the parts of a strategy: the request, its queries, the tools found so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pegboard.llm import Message
from pegboard.ranking import ScoredTool

Role = Literal["request", "rewrite", "clause", "step", "variation", "step-back", "missing"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to find tools for.

    Attributes:
        text: in the words of the person who has it, or as a transform rewrote it.
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
        step: the step of the request that it belongs to, from 1; 0 is the request as a whole.
            Queries of one step are fused first.
        role: where it comes from.
        weight: what its ranking counts beside the others of its step, in fusions that weigh.
    """

    text: str
    step: int = 0
    role: Role = "request"
    weight: float = 1.0


Ranking = Sequence[ScoredTool]
"""Tools, best first, none twice."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The tools found so far.

    Attributes:
        steps: the ranking of every step, by its number; a request that was not decomposed has one.
        ranking: of all steps together.
        texts: the text of every step; of step 0, the request as it was last rewritten.
        searches: the ranking of every query of a step, by the query's text.
    """

    steps: Mapping[int, Ranking]
    ranking: Ranking
    texts: Mapping[int, str]
    searches: Mapping[int, Mapping[str, Ranking]] = field(
        default_factory=dict[int, Mapping[str, Ranking]]
    )
