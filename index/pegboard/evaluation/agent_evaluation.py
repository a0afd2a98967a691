"""The Toolshed evaluation of a release with an agent: its tool calls with M tools at hand, what
retrieval finds, and what both make together.

Two steps: `prepare` asks the release and says which questions the agent has to be asked, which
costs nothing; `evaluate_agent` asks them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pegboard.errors import ConfigurationError
from pegboard.evaluation.agent_asking import Manner
from pegboard.evaluation.agent_results import AgentEvaluation, by_size, curve_of
from pegboard.evaluation.agent_runs import AgentRun, Trial, trials_of
from pegboard.evaluation.agent_tools import Case, LeftOut, Shelf, cases_of, given_tools
from pegboard.evaluation.expected import ExpectedAccuracy
from pegboard.evaluation.experiment import ReleaseSystem, evaluate
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.measures import Measure
from pegboard.evaluation.results import Evaluation
from pegboard.evaluation.searcher import Searcher
from pegboard.hits import Descriptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOOLS = 128
"""Tools that OpenAI, Anthropic and Google took in one request when the paper was written; an agent
with more has no answer at all.
"""


@dataclass(frozen=True, slots=True)
class AgentQuestions:
    """What is to be found out.

    Attributes:
        sizes: with how many tools the agent is tried: those that a query needs, and distractors. A
            query that needs more gets these.
        ks: how many tools the retriever may give it, in the model.
        among: sizes of samples of the release in which is searched, too, as if there were no other
            tools.
        retrieved: also give the agent the tools that are found, at those of `ks` that are among
            `sizes`.
        kind: the measure of retrieval: `Recall`, which goes with a mean over the right calls, or
            `Complete`.
        strategy, index: how the release is searched; its own ways if None.
        limit: ask so many of the queries, drawn by `seed`; all if None.
        max_tools: sizes above are left out.
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
    """The questions, with what the release found.

    Attributes:
        sizes: the numbers of tools that are tried.
        dropped: which others are not, and why.
        retrieval: what was found for the queries of `cases`, in their order.
        restricted: the same in samples of the release, by their number of tools.
    """

    wanted: AgentQuestions
    searcher: Searcher
    shelf: Shelf
    cases: tuple[Case, ...]
    left_out: LeftOut
    sizes: tuple[int, ...]
    dropped: tuple[str, ...]
    retrieval: Evaluation
    restricted: Mapping[int, Evaluation]

    def given(self) -> list[dict[int, tuple[str, ...]]]:
        """For each query the tools of each size of set."""
        tools = sorted(self.searcher.names.catalogs)
        return [given_tools(case, self.sizes, tools, self.wanted.seed) for case in self.cases]

    def found(self) -> list[dict[int, tuple[str, ...]]]:
        """For each query the first k tools that were found, for each k at which that is to be
        tried.
        """
        tried = sorted(set(self.sizes) & set(self.wanted.ks)) if self.wanted.retrieved else []
        return [
            {k: tuple(one.id for one in answer.retrieved[:k]) for k in tried}
            for answer in self.retrieval.results
        ]

    def trials(self, manner: Manner, model: str) -> tuple[list[Trial], list[Trial]]:
        """What the agent has to be asked: with sets of tools of each size, and with the tools that
        were found.
        """
        return (
            trials_of(self.cases, self.given(), self.shelf, manner, model),
            trials_of(self.cases, self.found(), self.shelf, manner, model),
        )


def prepare(
    searcher: Searcher,
    queries: Sequence[GoldenQuery],
    wanted: AgentQuestions,
    advance: Callable[[int], None] = lambda _: None,
) -> Prepared:
    """Choose the queries and the tools, and search the release for each query.

    Args:
        advance: told how many more queries were searched for.

    Raises ConfigurationError if no query has right calls with tools of the release, or no number of
    tools can be tried."""
    cases, left_out = cases_of(searcher, queries)
    if not cases:
        raise ConfigurationError(_no_cases(len(queries), left_out))
    if wanted.limit is not None and wanted.limit < len(cases):
        dice = random.Random(wanted.seed)  # noqa: S311  a sample, no secret
        cases = [cases[at] for at in sorted(dice.sample(range(len(cases)), wanted.limit))]
    tools = sorted(searcher.names.catalogs)
    not_tried = {
        size: why
        for size in sorted(set(wanted.sizes))
        if (why := _dropped(size, len(tools), wanted.max_tools))
    }
    dropped = [f"{size} tools: {why}" for size, why in not_tried.items()]
    sizes = tuple(sorted(set(wanted.sizes) - set(not_tried)))
    if not sizes:
        raise ConfigurationError(
            f"No number of tools can be tried: {'; '.join(dropped)}. Name smaller ones."
        )
    measures = [Measure(wanted.kind, k) for k in wanted.ks]
    asked = [case.query for case in cases]

    def search(among: Searcher) -> Evaluation:
        system = ReleaseSystem.resolve(among, wanted.strategy, wanted.index)
        return evaluate(system, asked, measures, advance=advance)

    restricted: dict[int, Evaluation] = {}
    for size in wanted.among:
        sample = _sample(cases, tools, size, wanted.seed)
        if sample is None:
            dropped.append(
                f"among {size} tools: the queries need more, or the release has fewer "
                f"({len(tools)})"
            )
        else:
            restricted[size] = search(searcher.restricted(sample))
    shelf = Shelf(searcher, wanted.descriptions)
    found = search(searcher)
    return Prepared(
        wanted, searcher, shelf, tuple(cases), left_out, sizes, tuple(dropped), found, restricted
    )


def evaluate_agent(
    prepared: Prepared,
    run: AgentRun,
    manner: Manner,
    model: str,
    advance: Callable[[int], None] = lambda _: None,
) -> AgentEvaluation:
    """Ask the agent what was not asked before, score it, and multiply with what was found.

    Args:
        advance: told how many more questions are done with.

    Raises as `AgentRun.ask` does.
    """
    with_sets, with_found = prepared.trials(manner, model)
    run.ask([*with_sets, *with_found], advance)
    scored, found = run.score(with_sets), run.score(with_found)
    curve = curve_of(scored)
    expected = ExpectedAccuracy(
        curve, _by_k(prepared.retrieval), len(prepared.searcher.names.catalogs)
    )
    rows = expected.with_measured(by_size(found))
    for size, evaluation in sorted(prepared.restricted.items()):
        rows += ExpectedAccuracy(curve, _by_k(evaluation), size).rows
    chosen = expected.chosen(prepared.wanted.max_tokens)
    return AgentEvaluation(
        model=model,
        manner=manner,
        retrieval=prepared.retrieval,
        kind=prepared.wanted.kind,
        seed=prepared.wanted.seed,
        left_out=prepared.left_out,
        dropped=prepared.dropped,
        scored=tuple(scored),
        found=tuple(found),
        expected=tuple(rows),
        chosen=chosen and replace(chosen, row=next(one for one in rows if one.k == chosen.row.k)),
        spent_usd=run.spent_usd,
        failures=dict(run.failures),
    )


def _by_k(evaluation: Evaluation) -> "dict[int, NDArray[np.float64]]":
    return {measure.k: values for measure, values in evaluation.values.items() if measure.k}


def _dropped(size: int, tools: int, max_tools: int) -> str:
    if size > max_tools:
        return f"more than a model takes in one request ({max_tools})"
    return f"the release has only {tools} tools" if size > tools else ""


def _sample(cases: Sequence[Case], tools: Sequence[str], size: int, seed: int) -> list[str] | None:
    """The ids of a sample of the release with all that the queries need, larger samples holding
    smaller ones; None if that is no sample.
    """
    needed = {one for case in cases for one in case.right}
    if not len(needed) <= size <= len(tools):
        return None
    others = [one for one in tools if one not in needed]
    random.Random(f"{seed}:among").shuffle(others)  # noqa: S311  a sample, no secret
    return sorted(needed) + others[: size - len(needed)]


def _no_cases(queries: int, left_out: LeftOut) -> str:
    lines = [f"No golden query can be put to an agent ({queries} in all):"]
    if left_out.without_calls:
        lines.append(f"  - {left_out.without_calls} say no right calls")
    if left_out.without_tools:
        names = ", ".join(left_out.missing[:5])
        lines.append(f"  - {left_out.without_tools} need tools that the release has not: {names}")
    return (
        "\n".join(lines)
        + '\nExpected lines such as {"query": "what are 30 dollars in yen?", "tools": '
        '["convert_currency"], '
        '"calls": [{"tool": "convert_currency", "arguments": {"amount": 30, "to": "JPY"}}]}.'
    )
