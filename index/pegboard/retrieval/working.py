"""What the parts of a strategy work with while one request is answered: the `Context` of
`parts.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pegboard.llm import ChatRequest
from pegboard.records import Agent, Tool
from pegboard.retrieval.parts import Query, Ranking, Request, Scored
from pegboard.retrieval.searching import Searches, Seen
from pegboard.retrieval.trace import NO_LLM, PartTrace, Trace
from pegboard.retrieval.waits import Waits
from pegboard.search.loaded import LoadedRelease

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegboard.graph.tool_graph import ToolGraph
    from pegboard.retrieval.llm.asking import LlmCaller


@dataclass(slots=True)
class Work:
    """One request while it is answered.

    Attributes:
        seen: everything that was searched for it.
        added: why parts added tools that no search found.
        llm_silent: why the LLM is not asked any more: a part waited for it in vain, and every other
            part would, too.
        explain: whether the trace keeps the rank of every tool after every part.
    """

    request: Request
    searches: Searches
    waits: Waits
    trace: Trace
    caller: "LlmCaller | None" = None
    explain: bool = False
    seen: list[Seen] = field(default_factory=list[Seen])
    added: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    llm_silent: str = ""

    @property
    def loaded(self) -> LoadedRelease:
        """The release that answers."""
        return self.searches.loaded

    def note_search(self, seen: Sequence[Seen]) -> list[Scored]:
        """Remember what was found for one query, and give its ranking as far as it was searched."""
        self.seen.extend(seen)
        return self.searches.ranking(
            seen, max((len(one) for each in seen for one in each.rankings.values()), default=0)
        )

    @property
    def cosines(self) -> dict[str, float] | None:
        """The highest cosine of each tool found to any query; None if vectors were not searched."""
        if not any("vector" in one.rankings for one in self.seen):
            return None
        best: dict[str, float] = {}
        for one in self.seen:
            for row in one.rankings.get("vector", ()):
                best[row.tool] = max(row.score, best.get(row.tool, -1.0))
        return best

    @property
    def probabilities(self) -> dict[str, float] | None:
        """The highest probability of each tool found, over the queries; None if an index that was
        searched is not calibrated so.
        """
        best: dict[str, float] = {}
        for one in self.seen:
            calibration = self.loaded.calibration(one.index)
            if calibration is None or not calibration.knows(one.rankings):
                return None
            for tool, probability in calibration.probabilities(one.query, one.rankings).items():
                best[tool] = max(probability, best.get(tool, 0.0))
        return best

    @property
    def thresholds(self) -> dict[str, float] | None:
        """The calibration's thresholds by name, of the first index that is searched; None if it is
        not calibrated so.
        """
        calibration = self.loaded.calibration(self.searches.indexes[0])
        modes = self.searches.ways
        return (
            calibration.thresholds(modes)
            if calibration is not None and calibration.knows(modes)
            else None
        )


class PartContext:
    """The context of one part: the work on a request, and the part's own trace."""

    def __init__(self, work: Work, trace: PartTrace) -> None:
        self._work = work
        self.request = work.request
        self.trace = trace
        self.added = work.added

    @property
    def agents(self) -> Mapping[str, Agent]:
        """All agents by id."""
        return self._work.loaded.agents

    @property
    def has_llm(self) -> bool:
        """Whether `ask` can ask anyone."""
        return self._work.caller is not None

    @property
    def graph(self) -> "ToolGraph":
        """The dependencies between the tools of the release."""
        return self._work.loaded.graph

    @property
    def cosines(self) -> Mapping[str, float] | None:
        """The highest cosine of each tool found to any query; None if vectors were not searched."""
        return self._work.cosines

    @property
    def probabilities(self) -> Mapping[str, float] | None:
        """For each tool found, how likely it fits; None if an index that was searched is not
        calibrated.
        """
        return self._work.probabilities

    @property
    def thresholds(self) -> Mapping[str, float] | None:
        """The probability of every threshold of the calibration, by name; None if there is none."""
        return self._work.thresholds

    async def search(self, queries: Sequence[Query], depth: int) -> list[Ranking]:
        """A ranking for every query: one call of the encoder and one search for all."""
        work = self._work
        texts = [query.text for query in queries]
        seen = await work.waits.run(lambda: work.searches.search(texts, depth))
        return [work.note_search(one)[:depth] for one in seen]

    async def tools(self, ids: Sequence[str]) -> dict[str, Tool]:
        """The tools of those ids; unknown ids are absent."""
        return await self._work.waits.run(lambda: self._work.loaded.tools(ids))

    async def passing(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that the caller's filter lets through."""
        where = self._work.searches.where
        tools = await self.tools(ids)
        agents = self._work.loaded.agents
        return {
            one
            for one, tool in tools.items()
            if where is None or where.passes(tool, agents[tool.agent].kind)
        }

    async def vectors(self, ids: Sequence[str]) -> "dict[str, NDArray[np.float32]]":
        """The unit vectors of those tools, each of shape (dimensions,); the first row's where a
        tool has several.
        """
        return {tool: rows[0] for tool, rows in (await self.rows_of(ids)).items()}

    async def units(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The unit vectors of texts as queries, of shape (texts, dimensions)."""
        work = self._work
        index = work.searches.indexes[0]
        return await work.waits.run(lambda: work.searches.vectors.units(work.loaded, index, texts))

    async def rows_of(self, ids: Sequence[str]) -> "dict[str, NDArray[np.float32]]":
        """The unit vectors of all rows of those tools, in the first index that is searched."""
        work = self._work
        return await work.waits.run(
            lambda: work.loaded.index(work.searches.indexes[0]).rows_of(ids)
        )

    async def ask(self, requests: Sequence[ChatRequest]) -> list[str | None]:
        """The texts of the LLM's replies, asked for at once; None for one that did not come."""
        caller, trace = self._work.caller, self.trace
        if caller is None or self._work.llm_silent:
            trace.instead_because = self._work.llm_silent or NO_LLM
            return [None] * len(requests)
        answers = await caller.ask(requests)
        if requests and all(answer.timed_out for answer in answers):
            self._work.llm_silent = f"the LLM was not asked again: it {answers[0].why}"
        for answer in answers:
            trace.llm_calls += 1
            trace.prompt_tokens += answer.prompt_tokens
            trace.completion_tokens += answer.completion_tokens
            if answer.cost_usd is not None:
                trace.cost_usd = (trace.cost_usd or 0.0) + answer.cost_usd
            if answer.text is None:
                trace.instead_because = answer.why
        return [answer.text for answer in answers]
