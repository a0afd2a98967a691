"""What was measured on a benchmark, as JSON values: rows, differences, published figures."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.machine import machine
from benchmarks.papers.benchmark import Benchmark, QuerySet
from benchmarks.papers.published import DECIDED_BY, PUBLISHED, SETUPS, SHOWN
from benchmarks.papers.reading import unknown_text
from benchmarks.papers.strategies import BASELINE, Chosen, systems_for
from benchmarks.strata import corrected_values, mean_difference, mean_interval
from pegboard.evaluation.comparison import Evaluation, difference_rows, evaluate
from pegboard.evaluation.dependency_errors import (
    DependencyAccount,
    dependency_account,
    follows_dependencies,
)
from pegboard.evaluation.measures import STANDARD, Measure, measures_of
from pegboard.evaluation.overhead import Overhead
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import ReleaseSystem

RETURNED = 10
"""Number of tools that a query about linked tools returns, K of Graph RAG-Tool Fusion."""
AGENT_BASELINE = "agents-hybrid"
"""The baseline of tasks for agents: their own descriptions, by one hybrid search."""


@dataclass(frozen=True, slots=True)
class TaskEvaluation:
    """The evaluation of one system on the queries of one task."""

    task: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Run:
    """A system and the queries that it answers."""

    query_set: QuerySet
    system: ReleaseSystem


@dataclass(slots=True)
class Measured:
    """What the runs of a benchmark gave.

    Attributes:
        overheads: what the answers of each run took.
        accounts: of queries about linked tools, what following dependencies gained.
        seconds: by strategy.
    """

    evaluations: list[TaskEvaluation] = field(default_factory=list[TaskEvaluation])
    overheads: list[Overhead] = field(default_factory=list[Overhead])
    accounts: list[DependencyAccount] = field(default_factory=list[DependencyAccount])
    seconds: dict[str, float] = field(default_factory=dict[str, float])


def runs_of(
    benchmark: Benchmark,
    boards: Mapping[str, Searcher],
    chosen: Chosen | None,
    index: str | None = None,
) -> list[Run]:
    """All systems of a benchmark, or the chosen ones: first those for tools, then for agents.

    Args:
        index: the only index to search; those of the strategies if None.
    """
    query_sets = sorted(benchmark.query_sets, key=lambda query_set: query_set.agents)
    return [
        Run(query_set, system)
        for query_set in query_sets
        for system in systems_for(query_set, boards, chosen, index)
    ]


def measure_runs(
    runs: Sequence[Run],
    measures: Sequence[Measure],
    advance: Callable[[int, str], None] = lambda _count, _strategy: None,
) -> Measured:
    """Measure every run, and split its evaluation by task."""
    measured = Measured()
    for run in runs:
        began, name = time.monotonic(), run.system.strategy_name
        is_accounted = run.query_set.linked and follows_dependencies(run.system)
        system = replace(run.system, explain=True) if is_accounted else run.system
        evaluation = evaluate(
            system,
            run.query_set.queries,
            measures,
            advance=lambda count, name=name: advance(count, name),
        )
        measured.overheads.append(evaluation.overhead)
        if is_accounted:
            account = dependency_account(system, evaluation.results, RETURNED)
            measured.accounts.append(account)
        measured.evaluations += [
            TaskEvaluation(task, evaluation.subset(places))
            for task, places in run.query_set.tasks.items()
        ]
        seconds = time.monotonic() - began
        measured.seconds[name] = measured.seconds.get(name, 0.0) + seconds
    return measured


def default_measures(benchmark: str) -> list[Measure]:
    """The measures of a benchmark where none are chosen."""
    return measures_of([*SHOWN[benchmark], *STANDARD])


def baseline_of(task: str) -> str:
    """The strategy that the others of a task are compared with."""
    return AGENT_BASELINE if "agent" in task else BASELINE


def result_of(
    benchmark: Benchmark,
    measured: Measured,
    measures: Sequence[Measure],
    *,
    boards: Mapping[str, Mapping[str, Any]],
    seconds: Mapping[str, Any],
    problems: Iterable[str] = (),
) -> dict[str, Any]:
    """Everything about one benchmark.

    `rows` have {task, strategy, index, encoder, measure, value, low, high, n}; `differences` how
    far a strategy is above the baseline of its task, with p, and `p_holm` for the number of
    strategies; `overhead` what the answers took; `dependencies` what following them gained on
    linked tools; `published` the figures of papers. Tasks of
    `means` come first.
    """
    evaluations = measured.evaluations
    unknown = dict.fromkeys(name for one in evaluations for name in one.evaluation.unknown)
    if unknown:
        what = "that queries need and no catalog has"
        problems = [*problems, f"counted as not found: {unknown_text(unknown, 'tool', what)}"]
    decided_by = _decided_by(benchmark.name, measures)
    means = [one for name in benchmark.means for one in _means(name, benchmark, evaluations)]
    return {
        "benchmark": benchmark.name,
        "rows": [
            *(row for mean in means for row in mean.rows()),
            *(row for one in evaluations for row in one.evaluation.rows(task=one.task)),
        ],
        "differences": [
            *_mean_differences(means, decided_by),
            *_differences(evaluations, decided_by),
        ],
        "overhead": [overhead.to_dict() for overhead in measured.overheads],
        "dependencies": [account.to_dict() for account in measured.accounts],
        "means": {name: list(tasks) for name, tasks in benchmark.means.items()},
        "published": [row for row in PUBLISHED if row["benchmark"] == benchmark.name],
        "differs": SETUPS[benchmark.name],
        "seconds": dict(seconds),
        "machine": machine(),
        "tools": benchmark.tools,
        "queries": benchmark.queries,
        "boards": {name: dict(board) for name, board in boards.items()},
        "problems": list(dict.fromkeys([*benchmark.problems, *problems])),
    }


@dataclass(frozen=True, slots=True)
class _Mean:
    """What one system reaches on several tasks, each with equal weight."""

    task: str
    parts: tuple[Evaluation, ...]

    def values(self, measure: Measure) -> list[Any]:
        return [part.values[measure] for part in self.parts]

    def rows(self) -> list[dict[str, Any]]:
        first = self.parts[0]
        labels = {"task": self.task, "strategy": first.strategy, "index": first.index}
        labels["encoder"] = first.encoder
        return [
            labels | {"measure": str(measure), **mean_interval(self.values(measure)).to_dict()}
            for measure in first.values
        ]


def _means(
    name: str, benchmark: Benchmark, evaluations: Sequence[TaskEvaluation]
) -> Iterator[_Mean]:
    """That mean of every system; a system that answered only some of its tasks has none."""
    by_system: dict[tuple[str, str], dict[str, Evaluation]] = {}
    for one in evaluations:
        system = (one.evaluation.strategy, one.evaluation.index)
        by_system.setdefault(system, {})[one.task] = one.evaluation
    answered = {one.task for one in evaluations}  # a small sample may lack a task
    tasks = [task for task in benchmark.means[name] if task in answered]
    for parts in by_system.values():
        if tasks and all(task in parts for task in tasks):
            yield _Mean(name, tuple(parts[task] for task in tasks))


def _mean_differences(means: Sequence[_Mean], measure: Measure) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(mean.task for mean in means):
        of_task = [mean for mean in means if mean.task == name]
        baseline = next((one for one in of_task if one.parts[0].strategy == BASELINE), None)
        if baseline is None:
            continue
        against = baseline.values(measure)
        gaps = {
            (one.parts[0].strategy, one.parts[0].index): mean_difference(
                one.values(measure), against
            )
            for one in of_task
            if one is not baseline
        }
        rows += [
            {"strategy": strategy, "index": index, "task": name}
            | {"against": BASELINE, "measure": str(measure), **values}
            for (strategy, index), values in corrected_values(gaps).items()
        ]
    return rows


def _decided_by(benchmark: str, measures: Sequence[Measure]) -> Measure:
    (preferred,) = measures_of([DECIDED_BY.get(benchmark, "Recall@5")])
    return preferred if preferred in measures else measures[0]


def _differences(evaluations: Sequence[TaskEvaluation], measure: Measure) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for task in dict.fromkeys(one.task for one in evaluations):
        own = [one.evaluation for one in evaluations if one.task == task]
        baseline = next((one for one in own if one.strategy == baseline_of(task)), None)
        if baseline is not None:
            labels = {"task": task, "against": baseline.strategy}
            others = [(one, baseline, labels) for one in own if one is not baseline]
            rows += difference_rows(others, measure)
    return rows
