"""The Toolshed evaluation of a release with an agent: its tool calls, and what retrieval adds.

Each query is put to the agent once with each number of tools: all that it needs, and distractors,
by the API's own tool calling. What an agent with retrieved tools is expected to reach is a product
(Toolshed, appendix E):

    E[agent with retrieval at k of M tools] = E[agent with k tools] x E[retrieval at k of M tools]

The second factor is the recall at k. Both come from the same queries, which are resampled together.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.evaluation.comparison import Evaluation, evaluate
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.intervals import ONE_SIDED, bootstrap_bounds, interval, is_no_worse
from pegboard.evaluation.measures import Measure
from pegboard.evaluation.overhead import check_fallbacks
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import Advance, ReleaseSystem
from pegboard.evaluation.tool_calls import CallScore, RightCall, score_calls
from pegboard.hits import Hit, as_openai_tools, call_names
from pegboard.llm import ChatReply, ChatRequest, Completer, Message
from pegboard.llm.client import Budget, Client, price_of
from pegboard.text.redaction import redact_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEASURES = {
    "CallScore": "weighted",
    "ToolName": "name",
    "ArgumentNames": "arguments",
    "ArgumentValues": "values",
}
"""Fields of `CallScore`, by the name of the measure that reports them."""
SIZES = (1, 5, 10, 20)
"""Default numbers of tools that the agent is given."""
REPLY_TOKENS = 1024
"""Default maximum of tokens in a reply."""
MARGIN = 0.02
"""Largest loss of expected accuracy accepted for a smaller number of tools, as in a sweep."""
SEED = 0
"""Seed of the random distractors, fixed so that every run draws the same ones."""
MISSING_SHOWN = 5
"""Maximum number of missing tools that an error message names."""
EXAMPLE = (
    '{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"], '
    '"calls": [{"tool": "convert_currency", "arguments": {"amount": 30, "to": "JPY"}}]}'
)
INSTRUCTION = (
    "You act for the user through tools. Answer the last message with tool calls: one for "
    "everything that has to be done, all of them at once, each with the arguments that the message "
    "gives. Call only the tools that are needed. Nobody can answer questions; where a value "
    "depends on the result of another call, say so in a few words as the value."
)


@dataclass(frozen=True, slots=True)
class Case:
    """A golden query with its right calls, among the tools of a release.

    Attributes:
        query: the query; its `tools` are all names in the query or in one of its calls.
        needed: one id for each tool named.
        right: the ids of all tools that satisfy a name; none of them may be a distractor.
    """

    query: GoldenQuery
    calls: tuple[RightCall, ...]
    needed: tuple[str, ...]
    right: frozenset[str]


@dataclass(eq=False, slots=True)
class Trial:
    """One query with one set of tools, and the agent's answer.

    Attributes:
        size: the requested number of tools; a query that needs more gets more.
        names: the ids of the tools, by the names that the agent sees.
        reply: None if the agent did not answer, which scores 0.
        failure: why the agent did not answer, as a key of `llm.failures.NEXT_STEPS`.
    """

    case: Case
    size: int
    names: Mapping[str, str]
    request: ChatRequest
    reply: ChatReply | None = None
    failure: str = ""

    def score(self) -> CallScore:
        """Return the score of the calls in the reply."""
        calls = self.reply.calls if self.reply else ()
        made_calls = [(self.names.get(call.name.strip()), call.arguments) for call in calls]
        return score_calls(self.case.calls, made_calls)


def evaluate_agent(
    searcher: Searcher,
    queries: Sequence[GoldenQuery],
    completer: Completer,
    sizes: Sequence[int] = SIZES,
    *,
    strategy: Any = None,
    index: str | None = None,
    max_fallbacks: float = 0.0,
    reply_tokens: int = REPLY_TOKENS,
    budget_usd: float | None = None,
    advance: Advance = lambda _: None,
) -> dict[str, Any]:
    """Search a release for queries, ask the agent, and multiply its scores with the recall.

    Args:
        queries: those without right calls, or that need a tool which the release lacks, are
            skipped.
        completer: the agent's model.
        sizes: the numbers of tools that the agent is given, and that are retrieved.
        strategy, index: how the release is searched; its own if None.
        max_fallbacks: the share of the queries that the strategy may answer without its LLM.
        reply_tokens: the most tokens of a reply.
        budget_usd: the most that the agent may spend; None is no limit.
        advance: called with the number of requests finished since the last call.

    Returns:
        JSON values: `rows`, one for each number of tools (see `_row`); `chosen`, the number to take
        and the best; `scores` of each query with each number; `skipped`, which queries were not
        asked; `failures` of requests; and how they were measured.

    Raises:
        ConfigurationError: no query can be put to an agent, or a budget is given for a model whose
            price is unknown.
        CompletionError: the model cannot be reached, or refuses every call.
        BudgetExhausted: the next call does not fit into the budget.
    """
    price = price_of(completer)
    if budget_usd is not None and price is None:
        raise ConfigurationError(
            f"The price of {completer.name} is unknown to LiteLLM, so a budget cannot be kept. "
            "Give its price (--price), or leave the budget out and begin with few queries."
        )
    cases, skipped = find_cases(searcher, queries)
    if not cases:
        raise ConfigurationError(
            f"No golden query can be put to an agent: {skipped}. Expected lines such as {EXAMPLE}."
        )
    sizes = sorted({min(size, len(searcher.names.catalogs)) for size in sizes})
    system = ReleaseSystem.resolve(searcher, strategy, index)
    recalls = [Measure("Recall", size) for size in sizes]
    retrieval = evaluate(system, [case.query for case in cases], recalls)
    check_fallbacks([retrieval.overhead], max_fallbacks)
    trials = make_trials(searcher, cases, sizes, reply_tokens)
    budget = Budget(usd=budget_usd)
    failures = asyncio.run(_ask_all(trials, completer, budget, advance))
    return {
        "model": completer.name,
        "release": retrieval.release,
        "strategy": retrieval.strategy,
        "index": retrieval.index,
        "encoder": retrieval.encoder,
        "reply_tokens": reply_tokens,
        "queries": len(cases),
        "skipped": skipped,
        **_results(trials, retrieval),
        "failures": failures,
        "spent_usd": None if price is None else budget.spent_usd,
    }


def find_cases(searcher: Searcher, queries: Sequence[GoldenQuery]) -> tuple[list[Case], str]:
    """Return the queries that can be put to an agent, and why the others were skipped."""
    cases: list[Case] = []
    missing: dict[str, None] = {}
    for query in queries:
        called = [call["tool"] for call in query.calls]
        names = dict.fromkeys((*query.tools, *(name for name in called if name not in query.names)))
        needed = searcher.names.resolve(names)
        missing |= dict.fromkeys(needed.unknown)
        if called and not needed.unknown:
            calls = tuple(_right_call(searcher, call) for call in query.calls)
            ids = dict.fromkeys(map(min, needed.tools.values()))
            right = frozenset[str]().union(*needed.tools.values())
            cases.append(Case(replace(query, tools=tuple(names)), calls, tuple(ids), right))
    if len(cases) == len(queries):
        return cases, ""
    lacking = f", or need tools that the release lacks: {', '.join([*missing][:MISSING_SHOWN])}"
    return cases, (
        f"{len(queries) - len(cases)} of {len(queries)} golden queries have no right calls"
        f"{lacking if missing else ''}"
    )


def _right_call(searcher: Searcher, call: Mapping[str, Any]) -> RightCall:
    tools = searcher.names.resolve([call["tool"]]).tools.values()
    return RightCall(frozenset().union(*tools), call.get("arguments", {}))


def make_trials(
    searcher: Searcher, cases: Sequence[Case], sizes: Sequence[int], reply_tokens: int
) -> list[Trial]:
    """Return a trial for each query and number of tools."""
    loaded = searcher.loaded
    all_ids = sorted(searcher.names.catalogs)
    system = Message("system", INSTRUCTION)
    trials: list[Trial] = []
    for case in cases:
        ids_by_size = given_tools(case, sizes, all_ids)
        tools = loaded.tools(sorted(set[str]().union(*ids_by_size.values())))
        history = [
            Message(cast("Any", message["role"]), message["content"])
            for message in case.query.history
        ]
        for size, ids in ids_by_size.items():
            hits = [
                Hit(tools[tool_id], loaded.agents[tools[tool_id].agent], 0.0, {}) for tool_id in ids
            ]
            named = call_names(hits)
            names = {name: hit.tool.id for name, hit in named.items()}
            request = ChatRequest(
                messages=(system, *history, Message("user", case.query.query)),
                max_tokens=reply_tokens,
                temperature=0.0,
                tools=tuple(as_openai_tools(named)),
            )
            trials.append(Trial(case, size, names, request))
    return trials


def given_tools(
    case: Case, sizes: Sequence[int], tools: Sequence[str]
) -> dict[int, tuple[str, ...]]:
    """Return the ids that the agent is given for each number of tools: needed tools and
    distractors.

    A query that needs more tools than the number gets all of them. A larger set contains every
    smaller one; the order is random.

    Args:
        tools: the ids of all tools of the release, in an order that does not change.
    """
    generator = random.Random(f"{SEED}:{case.query.id}")  # noqa: S311  a sample, not a secret
    candidates = [tool for tool in tools if tool not in case.right]
    distractors = generator.sample(candidates, min(max(sizes), len(candidates)))
    position = {tool: generator.random() for tool in (*case.needed, *distractors)}
    ids_by_size: dict[int, tuple[str, ...]] = {}
    for size in sizes:
        added = distractors[: max(size - len(case.needed), 0)]
        ids_by_size[size] = tuple(sorted((*case.needed, *added), key=position.__getitem__))
    return ids_by_size


async def _ask_all(
    trials: Sequence[Trial], completer: Completer, budget: Budget, advance: Advance
) -> dict[str, str]:
    """Send each request once and store its reply in the trial; returns the first message of each
    kind of failure.
    """
    errors: list[CompletionError] = []

    async def ask(trial: Trial) -> None:
        try:
            trial.reply = await client.ask(trial.request)
        except BudgetExhausted:
            return  # the client has stopped
        except CompletionError as error:
            errors.append(error)
            trial.failure = error.kind
        advance(1)

    async with Client(completer, budget=budget) as client:
        await client.for_each(trials, ask)
    failed = [error for error in errors if error.kind != "unrecorded"]
    if client.stopped is not None or (failed and not budget.replies):
        raise client.stopped or failed[0]
    return {error.kind: redact_line(str(error)) for error in reversed(errors)}


def _results(trials: Sequence[Trial], retrieval: Evaluation) -> dict[str, Any]:
    import numpy as np

    recalls = {measure.k or 0: values for measure, values in retrieval.values.items()}
    by_size: dict[int, list[tuple[Trial, CallScore]]] = {size: [] for size in recalls}
    for trial in trials:
        by_size[trial.size].append((trial, trial.score()))
    scores = {
        size: np.array([score.weighted for _, score in scored]) for size, scored in by_size.items()
    }
    return {
        "rows": [
            {"tools": size}
            | _row(by_size[size])
            | {"retrieval": float(recalls[size].mean())}
            | {"expected": expected_accuracy(scores[size], recalls[size])}
            for size in by_size
        ],
        "chosen": choose(scores, recalls),
        "scores": [
            {"query": trial.case.query.id, "tools": size, "unanswered": trial.failure}
            | asdict(score)
            for size, scored in by_size.items()
            for trial, score in scored
        ],
    }


def _row(trials: Sequence[tuple[Trial, CallScore]]) -> dict[str, Any]:
    """Return the measurements of one number of tools.

    Returns: for each of `MEASURES` its mean with low, high and n; the number of `calls` made, and
        as `precision` the share of them that match a right call; the number of requests
        `unanswered` by kind, and of replies `cut_off`; the mean of `prompt_tokens`.
    """
    scores = [score for _, score in trials]
    replies = [trial.reply for trial, _ in trials if trial.reply]
    calls = sum(score.made for score in scores)
    tokens = sum(reply.prompt_tokens for reply in replies)
    return {
        **{
            measure: interval([getattr(score, field) for score in scores]).to_dict()
            for measure, field in MEASURES.items()
        },
        "calls": calls,
        "precision": sum(score.matched for score in scores) / calls if calls else None,
        "unanswered": dict(Counter(trial.failure for trial, _ in trials if trial.failure)),
        "cut_off": sum(reply.finish_reason == "length" for reply in replies),
        "prompt_tokens": tokens / len(replies) if replies else None,
    }


def expected_accuracy(
    scores: "NDArray[np.float64]", recalls: "NDArray[np.float64]"
) -> dict[str, Any]:
    """Return the product of the means, with its 95 % interval, as a row of `Interval`."""
    value = float(_product(scores, recalls))
    if len(scores) > 1:
        low, high = bootstrap_bounds([scores, recalls], _product)
    else:
        low = high = value
    return {"value": value, "low": low, "high": high, "n": len(scores)}


def choose(
    scores: "Mapping[int, NDArray[np.float64]]",
    recalls: "Mapping[int, NDArray[np.float64]]",
    margin: float = MARGIN,
) -> dict[str, Any]:
    """Choose the number of tools by the rule of a sweep.

    Args:
        scores: the agent's scores by its number of tools, of shape (queries,).
        recalls: the recall at each of these numbers, of the same queries in the same order.

    Returns: `best`, the number with the highest product; `k`, the smallest number shown not to be
        worse than `best` by more than `margin`; and `margin`.
    """
    values = {k: float(_product(scores[k], recalls[k])) for k in sorted(scores)}
    best = max(values, key=lambda k: (values[k], -k))

    def is_close(k: int) -> bool:
        samples = [scores[k], recalls[k], scores[best], recalls[best]]
        return len(scores[k]) > 1 and is_no_worse(
            bootstrap_bounds(samples, _gap, ONE_SIDED)[0], margin
        )

    chosen = next(k for k in values if k == best or is_close(k))
    return {"k": chosen, "best": best, "margin": margin}


def _product(scores: Any, recalls: Any, axis: int = -1) -> Any:
    return scores.mean(axis=axis) * recalls.mean(axis=axis)


def _gap(scores: Any, recalls: Any, best_scores: Any, best_recalls: Any, axis: int = -1) -> Any:
    return _product(scores, recalls, axis) - _product(best_scores, best_recalls, axis)
