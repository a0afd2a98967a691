"""What `Board.find` and `Board.agents` return."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from pegboard.hits import Hit
from pegboard.records import Agent
from pegboard.retrieval.trace import Trace


@dataclass(frozen=True, slots=True)
class FoundStep:
    """One step of a request, and the tools found for it, best first."""

    text: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found(Sequence[Hit]):
    """The hits of one request, best first: a sequence of them, with what is known about how they
    were found.

    Attributes:
        hits: the tools.
        trace: which parts worked, what each cost and, with `explain=True`, where every tool stood
            after it.
        steps: the steps into which the request was taken apart; none if it was not.
        probability: that at least one of the hits fits, where the index is calibrated; else None.
        release: the id of the release that answered.
    """

    hits: tuple[Hit, ...]
    trace: Trace
    steps: tuple[FoundStep, ...] = ()
    probability: float | None = None
    release: str = ""

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[place]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "release": self.release,
            "probability": self.probability,
            "steps": [{"text": step.text, "tools": list(step.tools)} for step in self.steps],
            "hits": [hit.to_dict() for hit in self.hits],
            "trace": self.trace.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class AgentHit:
    """An agent that was found, its score (higher is better, comparable within one call), and why.

    `why` names what brought it: its own description, or the tool of its that was found, with the
    rank there."""

    agent: Agent
    score: float
    why: Mapping[str, Any] = field(default_factory=dict[str, Any])
    release: str = field(default="", compare=False)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values: id, name, kind, description, score, why."""
        return {
            "id": self.agent.id,
            "name": self.agent.name,
            "kind": self.agent.kind,
            "description": self.agent.description,
            "score": self.score,
            "why": dict(self.why),
        }
