"""What flows between the parts of a retrieval, and what a part has to be able to do.

    transforms -> searches -> fusion of each step -> refinements of each step -> fusion over the
    steps -> refinements

A part is a small immutable object with a `part` name, by which a strategy is written down
(`strategy.py`). Anything with the members of one of the
protocols below is a valid part: a transform of ten lines can stand in a strategy beside the ones
that come with the library. A part that wants an LLM asks `context.ask`; where there is none, or it
does not answer as it should, the part goes on with what it can do without one and says so in the
trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pegboard.llm import ChatRequest, Message
from pegboard.records import Agent, Tool

if TYPE_CHECKING:
    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.retrieval.results import PartTrace

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


@dataclass(frozen=True, slots=True)
class ScoredTool:
    """A tool's id in a ranking, and its score: higher is better, comparable within that ranking
    only.
    """

    tool: str
    score: float


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


class Context(Protocol):
    """What a part may use while it works for one request. Everything is of one release.

    Attributes:
        request: the request, as it was last rewritten.
        trace: of this part; a part writes into `note` and `fallback_reason`.
        prompts: the texts of the release's own prompts, by name.
        added: for tools that no search found, why a part added them, as JSON values; it becomes
            `Hit.why["dependency"]`.
        agents: all agents by id.
        has_llm: whether there is an LLM to ask.
        cosines: the highest cosine of each tool found to any query searched so far; None if vectors
            were not searched.
        probabilities: for each tool found so far, how likely it fits; None where the index is not
            calibrated.
        thresholds: the probability of every threshold of the index's calibration, by name; None
            where there is none.
    """

    @property
    def request(self) -> Request: ...

    @property
    def trace(self) -> "PartTrace": ...

    @property
    def added(self) -> dict[str, Mapping[str, Any]]: ...

    @property
    def prompts(self) -> Mapping[str, str]: ...

    @property
    def cosines(self) -> Mapping[str, float] | None: ...

    @property
    def probabilities(self) -> Mapping[str, float] | None: ...

    @property
    def thresholds(self) -> Mapping[str, float] | None: ...

    @property
    def agents(self) -> Mapping[str, Agent]: ...

    @property
    def has_llm(self) -> bool: ...

    @property
    def graph(self) -> "ToolGraph":
        """The dependencies between the tools of the release."""
        ...

    async def search(self, queries: Sequence[Query], depth: int) -> list[Ranking]:
        """A ranking for every query, of at most `depth` tools: one call of the encoder and one
        search for all.
        """
        ...

    async def tools(self, ids: Sequence[str]) -> dict[str, Tool]:
        """The tools of those ids; unknown ids are absent."""
        ...

    async def passing(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that the caller's filter lets through; all known ones where there is no
        filter.
        """
        ...

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str | None]:
        """The texts of the LLM's replies, asked for at once. None for one that did not come:
        refused, too late, cut off, no LLM.

        Tokens, cost, calls and the reason of a failure are written into the trace. Never raises for
        a failing LLM."""
        ...


class Transform(Protocol):
    """Makes the queries to search for."""

    part: ClassVar[str]

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The queries to go on with; `queries` holds at least the request itself."""
        ...


class Fusion(Protocol):
    """Makes one ranking of several."""

    part: ClassVar[str]

    def fuse(self, rankings: Sequence[Ranking], weights: Sequence[float]) -> list[ScoredTool]:
        """The tools of all rankings, best first; `weights` has one value for each ranking."""
        ...


class Refinement(Protocol):
    """Changes a ranking: expands it, orders it anew, or leaves tools out."""

    part: ClassVar[str]

    async def refine(self, candidates: Candidates, context: Context) -> list[ScoredTool]:
        """The ranking to go on with, instead of `candidates.ranking`."""
        ...
