"""The results of `Board.find` and `Board.search_agents`, and their traces."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, overload

from pegboard.hits import Hit
from pegboard.records import Agent

Judge = Literal["ranker", "llm"]
"""What can judge that nothing fits."""
NO_LLM = "no LLM was given"
"""The most common fallback reason."""


@dataclass(slots=True)
class PartTrace:
    """The work of one part.

    Attributes:
        part: its name; `search` for the searches.
        stage: the stage of the strategy: transform, search, fuse or refine.
        step: the step of the request that it worked on; None for all.
        milliseconds: elapsed time including waits; a search for several requests at once is
            recorded in full for each.
        llm_calls: the number of LLM calls, answered or not.
        prompt_tokens, completion_tokens, cost_usd: the totals of those calls, as far as known.
        fallback_reason: why the part used its fallback; None if the LLM answered, or if the part
            does not use one.
        note: a remark by the part.
        queries: the queries after a transform, or those searched for.
        searches: the number of texts searched for.
        ranks: the rank of every tool (from 1) after this part; only with `explain=True`.
    """

    part: str
    stage: str
    step: int | None = None
    milliseconds: float = 0.0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    fallback_reason: str | None = None
    note: str = ""
    queries: tuple[str, ...] = ()
    searches: int = 0
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON values, without empty values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["milliseconds"] = round(self.milliseconds, 3)
        values["queries"] = list(self.queries)
        values["ranks"] = dict(self.ranks)
        return {name: value for name, value in values.items() if value not in (None, "", 0, [], {})}


@dataclass(slots=True)
class Trace:
    """The traces of all parts, in the order in which they ran, and their sums."""

    strategy: str
    parts: list[PartTrace] = field(default_factory=list[PartTrace])

    @property
    def milliseconds(self) -> float:
        """The sum over all parts; more than the elapsed time where parts ran concurrently."""
        return sum(part.milliseconds for part in self.parts)

    @property
    def llm_calls(self) -> int:
        """Number of LLM calls, answered or not."""
        return sum(part.llm_calls for part in self.parts)

    @property
    def tokens(self) -> int:
        """Number of tokens in prompts and replies."""
        return sum(part.prompt_tokens + part.completion_tokens for part in self.parts)

    @property
    def cost_usd(self) -> float | None:
        """The cost of all LLM calls; None if the price of one is unknown."""
        costs = [part.cost_usd for part in self.parts if part.llm_calls]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def searches(self) -> int:
        """Number of texts searched for."""
        return sum(part.searches for part in self.parts)

    @property
    def fallbacks(self) -> list[tuple[str, str]]:
        """The name of each part that worked without the LLM, and the reason."""
        return [(part.part, part.fallback_reason) for part in self.parts if part.fallback_reason]

    def ranks_of(self, tool: str) -> list[tuple[str, int]]:
        """Return the rank of a tool after every part that ranked it; needs `explain=True`."""
        return [(part.part, part.ranks[tool]) for part in self.parts if tool in part.ranks]

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON values."""
        return {
            "strategy": self.strategy,
            "milliseconds": round(self.milliseconds, 3),
            "llm_calls": self.llm_calls,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "parts": [part.to_dict() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of a request, and the ids of the tools found for it, best first."""

    text: str
    tools: tuple[str, ...]


Found = TypeVar("Found")


class _Hits(Sequence[Found], Generic[Found]):
    """A result that is the sequence of its `hits`."""

    __slots__ = ()
    hits: tuple[Found, ...]

    @overload
    def __getitem__(self, place: int) -> Found: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Found, ...]: ...
    def __getitem__(self, place: int | slice) -> Found | tuple[Found, ...]:
        return self.hits[place]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Found]:
        return iter(self.hits)


@dataclass(frozen=True, slots=True, repr=False)
class FindResult(_Hits[Hit]):
    """The hits of one request, best first, as a sequence, with their trace.

    Attributes:
        hits: the tools.
        trace: which parts ran, what each cost and, with `explain=True`, the rank of every tool
            after each.
        steps: the steps into which the request was decomposed; empty if it was not.
        probability: the probability that at least one hit fits; None unless the search is hybrid.
        release: the id of the release that answered.
        nothing_fits: whether no tool fits: the probability is below the threshold for that, or an
            LLM looked at the hits and named none.
        judged_by: who judged that: `ranker` or `llm`; None if nothing did.
    """

    hits: tuple[Hit, ...]
    trace: Trace
    steps: tuple[StepResult, ...] = ()
    probability: float | None = None
    release: str = ""
    nothing_fits: bool = False
    judged_by: Judge | None = None

    def __repr__(self) -> str:
        names = ", ".join(hit.tool.name for hit in self.hits[:5])
        more = ", ..." if len(self.hits) > 5 else ""
        likely = "" if self.probability is None else f", probability {self.probability:.0%}"
        return (
            f"<FindResult: {len(self.hits)} hits [{names}{more}]{likely}, "
            f"strategy {self.trace.strategy!r}, release {self.release!r}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "release": self.release,
            "probability": self.probability,
            "nothing_fits": self.nothing_fits,
            "judged_by": self.judged_by,
            "steps": [{"text": step.text, "tools": list(step.tools)} for step in self.steps],
            "hits": [hit.to_dict() for hit in self.hits],
            "trace": self.trace.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class AgentResult(_Hits["AgentHit"]):
    """The agents of one request, best first, as a sequence, with their trace.

    Attributes:
        hits: the agents.
        steps: the texts searched for; empty if that is the request only.
        trace: the trace of the part that wrote the steps: its cost, or why it used its fallback.
        release: the id of the release that answered.
    """

    hits: tuple["AgentHit", ...]
    trace: Trace
    steps: tuple[str, ...] = ()
    release: str = ""

    def __repr__(self) -> str:
        names = ", ".join(hit.agent.name for hit in self.hits)
        return f"<AgentResult: {len(self.hits)} agents [{names}], release {self.release!r}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "release": self.release,
            "steps": list(self.steps),
            "agents": [hit.to_dict() for hit in self.hits],
            "trace": self.trace.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class EntityResult(_Hits["Hit | AgentHit"]):
    """The tools and agents of one request in one ranking, best first, with their trace.

    Attributes:
        hits: a `Hit` where a tool is nearest, an `AgentHit` where an agent is; it stands in place
            of its tools.
        steps, trace, release: as of `AgentResult`.
    """

    hits: "tuple[Hit | AgentHit, ...]"
    trace: Trace
    steps: tuple[str, ...] = ()
    release: str = ""

    @property
    def tools(self) -> tuple[Hit, ...]:
        """The hits that are tools, such as for `as_openai_tools`."""
        return tuple(hit for hit in self.hits if isinstance(hit, Hit))

    @property
    def agents(self) -> "tuple[AgentHit, ...]":
        """The hits that are agents."""
        return tuple(hit for hit in self.hits if isinstance(hit, AgentHit))

    def __repr__(self) -> str:
        names = ", ".join(
            hit.tool.name if isinstance(hit, Hit) else hit.agent.name for hit in self.hits
        )
        return f"<EntityResult: {len(self.hits)} hits [{names}], release {self.release!r}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values; each hit has its `type`, tool or agent."""
        return {
            "release": self.release,
            "steps": list(self.steps),
            "hits": [
                {"type": "tool" if isinstance(hit, Hit) else "agent", **hit.to_dict()}
                for hit in self.hits
            ],
            "trace": self.trace.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class AgentHit:
    """An agent that was found.

    Attributes:
        score: higher is better, comparable within one call.
        why: the rank at which it was found, by its own description or by one of its tools.
        release: the id of the release that answered.
    """

    agent: Agent
    score: float
    why: Mapping[str, Any] = field(default_factory=dict[str, Any])
    release: str = field(default="", compare=False)

    def __repr__(self) -> str:
        tool = self.why.get("tool")
        by = f"by its tool {tool!r}" if tool else "by its description"
        return f"<AgentHit {self.agent.id!r}, score {self.score:.4f}, {by}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values: id, name, kind, description, score, why."""
        return {
            "id": self.agent.id,
            "name": self.agent.name,
            "kind": self.agent.kind,
            "description": self.agent.description,
            "score": self.score,
            "why": dict(self.why),
        }
