"""Asking the boards of a benchmark by every strategy, and measuring each task."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.papers.agents import evaluate_agents
from benchmarks.papers.benchmark import AgentsAsked, Asked, Benchmark, Variant
from benchmarks.papers.strategies import AGENT_STRATEGIES, AgentStrategy, Chosen, variants_of
from pegboard.evaluation.experiment import ReleaseSystem, evaluate
from pegboard.evaluation.measures import Measure
from pegboard.evaluation.results import Evaluation
from pegboard.evaluation.searcher import Searcher


@dataclass(frozen=True, slots=True)
class Measured:
    """What one strategy found for the queries of one task."""

    task: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to ask, in order."""

    tools: tuple[tuple[Asked, Variant], ...] = ()
    agents: tuple[tuple[AgentsAsked, AgentStrategy], ...] = ()

    @property
    def queries(self) -> int:
        """How many queries that is."""
        return sum(len(asked.queries) for asked, _ in self.tools) + sum(
            len(asked.requests) for asked, _ in self.agents
        )


def work_of(benchmark: Benchmark, boards: Mapping[str, Searcher], chosen: Chosen | None) -> Work:
    """Everything that the benchmark asks by default, or the strategies of it that were chosen."""
    tools = [
        (asked, variant)
        for asked in benchmark.asked
        for variant in variants_of(asked, boards[asked.board], chosen)
    ]
    agents = [
        (asked, strategy)
        for asked in benchmark.agents
        for strategy in AGENT_STRATEGIES
        if (chosen is None or strategy.name in chosen.names) and _fits(strategy, asked)
    ]
    return Work(tuple(tools), tuple(agents))


def measure(
    work: Work,
    boards: Mapping[str, Searcher],
    measures: Sequence[Measure],
    advance: Callable[[int, str], None] = lambda _count, _strategy: None,
    seconds: dict[str, float] | None = None,
) -> list[Measured]:
    """Every task by every strategy.

    Args:
        advance: told how many more queries were answered, and by which strategy.
        seconds: gets the seconds that each strategy took.
    """
    measured: list[Measured] = []
    for asked, variant in work.tools:
        began = time.monotonic()
        found = evaluate(
            ReleaseSystem.resolve(
                boards[variant.board or asked.board], variant.strategy, variant.index, variant.name
            ),
            asked.queries,
            measures,
            advance=lambda count, name=variant.name: advance(count, name),
        )
        measured += [Measured(task, found.subset(places)) for task, places in asked.tasks.items()]
        _took(seconds, variant.name, began)
    for asked, strategy in work.agents:
        began = time.monotonic()
        measured.append(
            Measured(
                asked.task, evaluate_agents(boards[asked.board], asked.requests, strategy, measures)
            )
        )
        advance(len(asked.requests), strategy.name)
        _took(seconds, strategy.name, began)
    return measured


def _fits(strategy: AgentStrategy, asked: AgentsAsked) -> bool:
    """Steps and clauses are of whole questions only."""
    return not strategy.texts or any(one.steps for one in asked.requests)


def _took(seconds: dict[str, float] | None, name: str, began: float) -> None:
    if seconds is not None:
        seconds[name] = seconds.get(name, 0.0) + time.monotonic() - began
