"""What a system's answers take: searches, LLM calls, tokens and cost; and how many are fallbacks.

A strategy whose LLM does not answer goes on without it. In use that is right; in a measurement it
would publish the figures of the fallback under the name of the method.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pegboard.errors import CompletionError, ConfigurationError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.systems import QueryResult, ReleaseSystem
from pegboard.retrieval.strategy import Strategy

REASONS_SHOWN = 3
"""Reasons for fallbacks that a message gives."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the answers of one system took, in all.

    Attributes:
        queries: those with a trace: results kept from an earlier run have none.
        cost_usd: None if the price of a call is unknown.
        fallbacks: queries in which a part did its work without the LLM.
        reasons: for each `part: reason` of a fallback the number of queries.
    """

    strategy: str
    index: str
    queries: int
    searches: int
    llm_calls: int
    tokens: int
    cost_usd: float | None
    fallbacks: int
    reasons: Mapping[str, int]

    @classmethod
    def of(cls, strategy: str, index: str, results: Iterable[QueryResult]) -> "Overhead":
        """The sums over the results of one system."""
        traces = [result.trace for result in results if result.trace]
        costs = [trace.cost_usd for trace in traces]
        reasons = Counter(
            f"{part}: {reason}" for trace in traces for part, reason in {*trace.fallbacks}
        )
        return cls(
            strategy,
            index,
            len(traces),
            sum(trace.searches for trace in traces),
            sum(trace.llm_calls for trace in traces),
            sum(trace.tokens for trace in traces),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            sum(bool(trace.fallbacks) for trace in traces),
            dict(reasons.most_common()),
        )

    @property
    def share(self) -> float:
        """The share of the queries that fallbacks answered."""
        return self.fallbacks / self.queries if self.queries else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; counts are of all queries, `fallback_share` is of 1."""
        return {**asdict(self), "fallback_share": self.share}


def latency(system: ReleaseSystem, queries: Sequence[GoldenQuery], k: int) -> tuple[float, float]:
    """Search for queries one at a time; returns the 50th and 95th percentile in milliseconds.

    The first query is searched once more in front: what it loads is loaded once. No query vector is
    remembered; an LLM is asked again.
    """
    import numpy as np

    searcher = replace(system.searcher, vectors=system.searcher.vectors.uncached())
    spent: list[float] = []
    for query in [*queries[:1], *queries]:
        began = time.perf_counter()
        searcher.search([query], k, strategy=system.strategy, index=system.index)
        spent.append((time.perf_counter() - began) * 1000)
    p50, p95 = np.percentile(spent[1:], [50, 95]).tolist()
    return p50, p95


def check_llm(strategies: Mapping[str, Strategy], max_fallbacks: float) -> None:
    """Check strategies that are to be measured without an LLM, by their names.

    Raises ConfigurationError for those that ask one.
    """
    names = [name for name, strategy in strategies.items() if asks_llm(strategy)]
    if names and max_fallbacks < 1:
        raise ConfigurationError(
            f"{', '.join(names)}: asks an LLM, and none was given. Expected --llm MODEL; or "
            f"--max-fallbacks 1, to measure what its parts do without one."
        )


def check_fallbacks(
    overheads: Sequence[Overhead],
    max_fallbacks: float,
    next_step: str = "measure again, or allow a share: --max-fallbacks 0.05",
) -> None:
    """Raise CompletionError if fallbacks answered more than a share of a system's queries."""
    problems = [
        f"  - {one.strategy} in {one.index}: {one.fallbacks} of {one.queries} queries "
        f"({one.share:.0%}); {_reasons(one)}"
        for one in overheads
        if one.share > max_fallbacks
    ]
    if problems:
        lines = (
            f"Parts of strategies worked without the LLM for more than {max_fallbacks:.0%} of the "
            f"queries. These figures are not those of the method:",
            *problems,
            f"Mend what the LLM reports and {next_step}",
        )
        raise CompletionError("\n".join(lines))


def asks_llm(strategy: Strategy) -> bool:
    """Whether a part of it asks an LLM if there is one: such parts bound its replies."""
    return any(hasattr(part, "reply_tokens") for part in strategy.parts())


def _reasons(overhead: Overhead) -> str:
    shown = list(overhead.reasons.items())[:REASONS_SHOWN]
    return "; ".join(f"{reason} ({count})" for reason, count in shown)
