"""The cost of a system's answers (searches, LLM calls, tokens, money) and its share of fallbacks.

A strategy whose LLM does not answer continues without it. That is right in production; in a
measurement it would report the fallback's figures under the method's name.
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
"""Maximum number of fallback reasons in a message."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """The total cost of one system's answers.

    Attributes:
        queries: the number of queries with a trace; results reused from an earlier run have none.
        cost_usd: None if the price of a call is unknown.
        fallbacks: the number of queries in which a part worked without the LLM.
        reasons: the number of queries, by `part: reason` of the fallback.
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
        """Return the sums over the results of one system."""
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
        """Return JSON values; counts are over all queries, `fallback_share` lies in 0..1."""
        return {**asdict(self), "fallback_share": self.share}


def latency(system: ReleaseSystem, queries: Sequence[GoldenQuery], k: int) -> tuple[float, float]:
    """Search for queries one at a time; returns the 50th and 95th percentile in milliseconds.

    The first query is searched once before the measurement, so that lazy loading is not timed. No
    query vector is cached, and an LLM is asked again.
    """
    import numpy as np

    vectors = system.searcher.vectors.uncached()
    system = replace(system, searcher=replace(system.searcher, vectors=vectors))
    milliseconds: list[float] = []
    for query in [*queries[:1], *queries]:
        start = time.perf_counter()
        system.search([query], k)
        milliseconds.append((time.perf_counter() - start) * 1000)
    p50, p95 = np.percentile(milliseconds[1:], [50, 95]).tolist()
    return p50, p95


def check_llm(strategies: Mapping[str, Strategy], max_fallbacks: float) -> None:
    """Check strategies, by name, that are to be measured without an LLM.

    Raises ConfigurationError for strategies that ask an LLM, unless all fallbacks are allowed.
    """
    names = [name for name, strategy in strategies.items() if asks_llm(strategy)]
    check_llm_given(names, max_fallbacks)


def check_llm_given(names: Sequence[str], max_fallbacks: float) -> None:
    """Raise ConfigurationError for strategies, by name, that ask an LLM, where there is none,
    unless all fallbacks are allowed.
    """
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
        f"  - {overhead.strategy} in {overhead.index}: {overhead.fallbacks} of "
        f"{overhead.queries} queries ({overhead.share:.0%}); {_reasons(overhead)}"
        for overhead in overheads
        if overhead.share > max_fallbacks
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
    """Whether a part of a strategy asks an LLM; such parts have an option `reply_tokens`."""
    return any(hasattr(part, "reply_tokens") for part in strategy.parts())


def _reasons(overhead: Overhead) -> str:
    shown = list(overhead.reasons.items())[:REASONS_SHOWN]
    return "; ".join(f"{reason} ({count})" for reason, count in shown)


OVERHEAD_TITLE = "what the answers took: means of a query; cost and fallbacks of all"


OVERHEAD = ("system", "searches", "LLM calls", "tokens", "USD", "fallbacks")
"""The head of the table of what answers took."""


def overhead_lines(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The lines of a table under `OVERHEAD`; none if no LLM was asked or missed.

    Args:
        rows: as `Overhead.to_dict` gives them; `pool` beside it is part of the system's name.
    """
    if not any(row["llm_calls"] or row["fallbacks"] for row in rows):
        return []
    return [
        [
            _system_text(row),
            *(f"{row[name] / row['queries']:,.1f}" for name in ("searches", "llm_calls", "tokens")),
            "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:.4f}",
            f"{row['fallbacks']} of {row['queries']}",
        ]
        for row in rows
        if row["queries"]
    ]


def _system_text(row: Mapping[str, Any]) -> str:
    pool = f", pool {row['pool']}" if "pool" in row else ""
    return f"{row['strategy']} in {row['index']}{pool}"
