"""What happened while a request was answered: which part did what, what it cost, and which tool it
brought at which rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NO_LLM = "no LLM was given"
"""The commonest of all reasons why a part's counterpart did the work."""


@dataclass(slots=True)
class PartTrace:
    """What one part did.

    Attributes:
        part: its name; `search` for the searches.
        stage: where in the strategy it stands: transform, search, fuse, refine.
        step: the step of the request that it worked on; None for all.
        milliseconds: how long it took, waiting included; the search of several requests at once is
            noted whole with each.
        llm_calls: calls of an LLM, answered or not.
        prompt_tokens, completion_tokens, cost_usd: of those calls, as far as they are known.
        instead_because: why its embedded counterpart did the work; None if the LLM did, or if it
            needs none.
        note: what else is worth knowing.
        queries: the queries after a transform, or those that were searched.
        ranks: the rank of every tool (from 1) after this part; kept with `explain=True` only.
    """

    part: str
    stage: str
    step: int | None = None
    milliseconds: float = 0.0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    instead_because: str | None = None
    note: str = ""
    queries: tuple[str, ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])

    def to_dict(self) -> dict[str, Any]:
        """What is known, as JSON values; what is empty is left out."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["milliseconds"] = round(self.milliseconds, 3)
        values["queries"] = list(self.queries)
        values["ranks"] = dict(self.ranks)
        return {name: value for name, value in values.items() if value not in (None, "", 0, [], {})}


@dataclass(slots=True)
class Trace:
    """All parts in the order in which they worked; sums are properties."""

    strategy: str
    parts: list[PartTrace] = field(default_factory=list[PartTrace])

    @property
    def milliseconds(self) -> float:
        """Of all parts; more than has passed where parts of several steps waited side by side."""
        return sum(part.milliseconds for part in self.parts)

    @property
    def llm_calls(self) -> int:
        """Calls of an LLM, answered or not."""
        return sum(part.llm_calls for part in self.parts)

    @property
    def tokens(self) -> int:
        """Of prompts and replies."""
        return sum(part.prompt_tokens + part.completion_tokens for part in self.parts)

    @property
    def cost_usd(self) -> float | None:
        """None if nobody knows the price of a call that was made."""
        known = [part.cost_usd for part in self.parts if part.llm_calls]
        return None if None in known else sum(cost for cost in known if cost is not None)

    def brought_by(self, tool: str) -> list[tuple[str, int]]:
        """The parts after which a tool was in the ranking, and its rank there; empty without
        `explain=True`.
        """
        return [(part.part, part.ranks[tool]) for part in self.parts if tool in part.ranks]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "strategy": self.strategy,
            "milliseconds": round(self.milliseconds, 3),
            "llm_calls": self.llm_calls,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "parts": [part.to_dict() for part in self.parts],
        }
