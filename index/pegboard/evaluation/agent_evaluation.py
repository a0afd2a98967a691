"""The Toolshed evaluation of a release with an agent: its tool calls, and what retrieval adds.

Two steps: `prepare` searches the release and decides which requests the agent gets, which costs
nothing; `evaluate_agent` sends them.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pegboard.errors import ConfigurationError
from pegboard.evaluation.agent_requests import CallOptions
from pegboard.evaluation.agent_results import AgentEvaluation, curve_of, scores_by_size
from pegboard.evaluation.agent_runs import AgentRun, Trial, trials_of
from pegboard.evaluation.agent_tools import Case, LeftOut, ToolDefinitions, cases_of, given_tools
from pegboard.evaluation.comparison import Evaluation
from pegboard.evaluation.expected import ExpectedAccuracy
from pegboard.evaluation.experiment import evaluate
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.measures import Measure
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import Advance, ReleaseSystem
from pegboard.hits import Descriptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOOLS = 128
"""Tools that OpenAI, Anthropic and Google accepted in one request when the paper was written."""
MISSING_SHOWN = 5
"""Missing tools that a message names."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What is evaluated.

    Attributes:
        sizes: how many tools the agent is given: those that a query needs, and distractors. A query
            that needs more gets these.
        ks: how many retrieved tools the model of the expected accuracy gives it.
        among: sizes of samples of the release that are searched, too, as if there were no other
            tools.
        retrieved: also give the agent the retrieved tools, at those of `ks` that are in `sizes`.
        kind: the measure of retrieval: `Recall`, which goes with a mean over the right calls, or
            `Complete`.
        strategy, index: how the release is searched; its own if None.
        limit: ask this many of the queries, drawn by `seed`; all if None.
        max_tools: larger sizes are left out.
        max_tokens: the most tokens of a prompt for a k to be chosen.
    """

    sizes: tuple[int, ...] = (1, 5, 10, 20)
    ks: tuple[int, ...] = tuple(range(1, 21))
    among: tuple[int, ...] = ()
    retrieved: bool = False
    kind: Literal["Recall", "Complete"] = "Recall"
    strategy: Any = None
    index: str | None = None
    limit: int | None = None
    seed: int = 0
    max_tools: int = MAX_TOOLS
    max_tokens: int | None = None
    descriptions: Descriptions = "catalog"


@dataclass(frozen=True, slots=True)
class Prepared:
    """The queries and sets of tools, with what retrieval found.

    Attributes:
        sizes: the numbers of tools that are tried.
        dropped: which others are not, and why.
        retrieval: the evaluation over the queries of `cases`, in their order.
        restricted: the same in samples of the release, by their number of tools.
    """

    spec: AgentSpec
    searcher: Searcher
    definitions: ToolDefinitions
    cases: tuple[Case, ...]
    left_out: LeftOut
    sizes: tuple[int, ...]
    dropped: tuple[str, ...]
    retrieval: Evaluation
    restricted: Mapping[int, Evaluation]

    def needed_sets(self) -> list[dict[int, tuple[str, ...]]]:
        """For each query the tools of each size of set, all needed ones among them."""
        tools = sorted(self.searcher.names.catalogs)
        return [given_tools(case, self.sizes, tools, self.spec.seed) for case in self.cases]

    def retrieved_sets(self) -> list[dict[int, tuple[str, ...]]]:
        """For each query the first k retrieved tools, for each k to try."""
        ks = sorted(set(self.sizes) & set(self.spec.ks)) if self.spec.retrieved else []
        return [
            {k: tuple(tool.id for tool in result.retrieved[:k]) for k in ks}
            for result in self.retrieval.results
        ]

    def trials(self, options: CallOptions, model: str) -> tuple[list[Trial], list[Trial]]:
        """The requests to the agent: with sets of each size, and with retrieved tools."""
        return (
            trials_of(self.cases, self.needed_sets(), self.definitions, options, model),
            trials_of(self.cases, self.retrieved_sets(), self.definitions, options, model),
        )


def prepare(
    searcher: Searcher,
    queries: Sequence[GoldenQuery],
    spec: AgentSpec,
    advance: Advance = lambda _: None,
) -> Prepared:
    """Choose the queries and the sets of tools, and search the release for each query.

    Args:
        advance: called with the number of queries searched since the last call.

    Raises ConfigurationError if no query has right calls with tools of the release, or no number of
    tools can be tried.
    """
    cases, left_out = cases_of(searcher, queries)
    if not cases:
        raise ConfigurationError(_no_cases_message(len(queries), left_out))
    if spec.limit is not None and spec.limit < len(cases):
        dice = random.Random(spec.seed)  # noqa: S311  a sample, no secret
        cases = [cases[place] for place in sorted(dice.sample(range(len(cases)), spec.limit))]
    tools = sorted(searcher.names.catalogs)
    sizes, dropped = _possible_sizes(spec, len(tools))
    measures = [Measure(spec.kind, k) for k in spec.ks]
    usable = [case.query for case in cases]

    def retrieve(searcher: Searcher) -> Evaluation:
        system = ReleaseSystem.resolve(searcher, spec.strategy, spec.index)
        return evaluate(system, usable, measures, advance=advance)

    restricted: dict[int, Evaluation] = {}
    for size in spec.among:
        sample = _sample(cases, tools, size, spec.seed)
        if sample is None:
            dropped.append(
                f"among {size} tools: the queries need more, or the release has fewer "
                f"({len(tools)})"
            )
        else:
            restricted[size] = retrieve(searcher.restricted(sample))
    return Prepared(
        spec=spec,
        searcher=searcher,
        definitions=ToolDefinitions(searcher, spec.descriptions),
        cases=tuple(cases),
        left_out=left_out,
        sizes=sizes,
        dropped=tuple(dropped),
        retrieval=retrieve(searcher),
        restricted=restricted,
    )


def evaluate_agent(
    prepared: Prepared,
    run: AgentRun,
    options: CallOptions,
    model: str,
    advance: Callable[[int], None] = lambda _: None,
) -> AgentEvaluation:
    """Ask the agent what was not asked before, score it, and multiply with retrieval.

    Args:
        advance: called with the number of requests finished since the last call.

    Raises as `AgentRun.ask` does.
    """
    with_needed, with_retrieved = prepared.trials(options, model)
    run.ask([*with_needed, *with_retrieved], advance)
    needed, retrieved = run.score(with_needed), run.score(with_retrieved)
    curve = curve_of(needed)
    tools = len(prepared.searcher.names.catalogs)
    expected = ExpectedAccuracy(curve, _by_k(prepared.retrieval), tools)
    rows = expected.with_measured(scores_by_size(retrieved))
    for size, evaluation in sorted(prepared.restricted.items()):
        rows += ExpectedAccuracy(curve, _by_k(evaluation), size).rows
    chosen = expected.chosen(prepared.spec.max_tokens)
    if chosen is not None:
        chosen = replace(chosen, row=next(row for row in rows if row.k == chosen.row.k))
    return AgentEvaluation(
        model=model,
        options=options,
        retrieval=prepared.retrieval,
        kind=prepared.spec.kind,
        seed=prepared.spec.seed,
        left_out=prepared.left_out,
        dropped=prepared.dropped,
        needed=tuple(needed),
        retrieved=tuple(retrieved),
        expected=tuple(rows),
        chosen=chosen,
        spent_usd=run.spent_usd,
        failures=dict(run.failures),
    )


def _by_k(evaluation: Evaluation) -> "dict[int, NDArray[np.float64]]":
    return {measure.k: values for measure, values in evaluation.values.items() if measure.k}


def _possible_sizes(spec: AgentSpec, tools: int) -> tuple[tuple[int, ...], list[str]]:
    """The sizes that can be tried, and why the others cannot."""
    sizes: list[int] = []
    dropped: list[str] = []
    for size in sorted(set(spec.sizes)):
        if size > spec.max_tools:
            dropped.append(
                f"{size} tools: more than a model takes in one request ({spec.max_tools})"
            )
        elif size > tools:
            dropped.append(f"{size} tools: the release has only {tools} tools")
        else:
            sizes.append(size)
    if not sizes:
        raise ConfigurationError(
            f"No number of tools can be tried: {'; '.join(dropped)}. Name smaller ones."
        )
    return tuple(sizes), dropped


def _sample(cases: Sequence[Case], tools: Sequence[str], size: int, seed: int) -> list[str] | None:
    """A sample of the release with all needed tools, larger ones containing smaller ones.

    None if the queries need more tools, or the release has fewer.
    """
    needed = {tool for case in cases for tool in case.right}
    if not len(needed) <= size <= len(tools):
        return None
    others = [tool for tool in tools if tool not in needed]
    random.Random(f"{seed}:among").shuffle(others)  # noqa: S311  a sample, no secret
    return sorted(needed) + others[: size - len(needed)]


def _no_cases_message(queries: int, left_out: LeftOut) -> str:
    lines = [f"No golden query can be put to an agent ({queries} in all):"]
    if left_out.without_calls:
        lines.append(f"  - {left_out.without_calls} have no right calls")
    if left_out.without_tools:
        names = ", ".join(left_out.missing[:MISSING_SHOWN])
        lines.append(f"  - {left_out.without_tools} need tools that the release lacks: {names}")
    example = (
        '{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"], '
        '"calls": [{"tool": "convert_currency", "arguments": {"amount": 30, "to": "JPY"}}]}'
    )
    return "\n".join(lines) + f"\nExpected lines such as {example}."
