"""The Toolshed evaluation of a release with an agent: its tool calls, and what retrieval adds.

`prepare` chooses the queries and sets of tools and searches the release, which costs nothing.
`evaluate_agent` asks the agent within a budget, scores its replies and multiplies them with
retrieval. Tools are offered by the API's own tool calling.
"""

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, cast

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.evaluation.comparison import Evaluation, evaluate
from pegboard.evaluation.expected import ExpectedAccuracy
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.intervals import interval
from pegboard.evaluation.measures import Measure
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.systems import Advance, ReleaseSystem
from pegboard.evaluation.tool_calls import CallScore, RightCall, made_call, score_calls
from pegboard.hits import Hit, as_openai_tools, call_names
from pegboard.llm import ChatReply, ChatRequest, Completer, Message
from pegboard.llm.client import Budget, Client, price_of
from pegboard.redaction import redact_line

MEASURES = {
    "CallScore": "weighted",
    "ToolName": "name",
    "ArgumentNames": "arguments",
    "ArgumentValues": "values",
}
"""For each measure of tool calls the field of a query's score."""
SEED = 0
"""Of the distractors that are drawn: every run draws the same ones."""
MISSING_SHOWN = 5
"""Missing tools that a message names."""
INSTRUCTION = (
    "You act for the user through tools. Answer the last message with tool calls: one for "
    "everything that has to be done, all of them at once, each with the arguments that the message "
    "gives. Call only the tools that are needed. Nobody can answer questions; where a value "
    "depends on the result of another call, say so in a few words as the value."
)


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What is evaluated.

    Attributes:
        sizes: how many tools the agent is given: those that a query needs, and distractors. A query
            that needs more gets these. Retrieval is measured at the same numbers.
        strategy, index: how the release is searched; its own if None.
        margin: by how much the chosen k may be worse than the best; the default of a sweep.
        reply_tokens: the most tokens of a reply.
    """

    sizes: tuple[int, ...] = (1, 5, 10, 20)
    strategy: Any = None
    index: str | None = None
    margin: float = 0.02
    reply_tokens: int = 1024


@dataclass(frozen=True, slots=True)
class Case:
    """A golden query with its right calls, among the tools of a release.

    Attributes:
        query: the query; its `tools` are all that it or one of its calls names.
        needed: ids, one for each tool that is named.
        right: the ids of all tools that would do for one that is named; none is a distractor.
    """

    query: GoldenQuery
    calls: tuple[RightCall, ...]
    needed: tuple[str, ...]
    right: frozenset[str]


@dataclass(eq=False)
class Trial:
    """One query with one set of tools, and the agent's answer.

    Attributes:
        size: the number of tools that was tried; a query that needs more has more.
        names: the ids of the tools by the names that the agent sees.
        reply: None if the agent did not answer; it then scores 0.
        failure: why it did not, as a key of `llm.failures.NEXT_STEPS`.
    """

    case: Case
    size: int
    names: Mapping[str, str]
    request: ChatRequest
    reply: ChatReply | None = None
    failure: str = ""

    @cached_property
    def score(self) -> CallScore:
        """The score of the calls in the reply."""
        calls = self.reply.calls if self.reply else ()
        made = [made_call(call.name, call.arguments, self.names) for call in calls]
        return score_calls(self.case.calls, made)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The queries and sets of tools, with what retrieval found.

    Attributes:
        sizes: the numbers of tools that are tried.
        skipped: which queries and numbers of tools are not, and why, as lines.
        retrieval: the evaluation over the queries of `cases`, in their order.
    """

    spec: AgentSpec
    searcher: Searcher
    cases: tuple[Case, ...]
    sizes: tuple[int, ...]
    skipped: tuple[str, ...]
    retrieval: Evaluation

    def trials(self) -> list[Trial]:
        """One for each query and set of tools."""
        loaded = self.searcher.loaded
        every = sorted(self.searcher.names.catalogs)
        given = [
            (case, size, tools)
            for case in self.cases
            for size, tools in given_tools(case, self.sizes, every).items()
        ]
        used = sorted({tool for _, _, tools in given for tool in tools})
        hits = {
            identity: Hit(tool, loaded.agents[tool.agent], 0.0, {})
            for identity, tool in loaded.tools(used).items()
        }
        return [
            self._trial(case, size, call_names([hits[tool] for tool in tools]))
            for case, size, tools in given
        ]

    def _trial(self, case: Case, size: int, named: Mapping[str, Hit]) -> Trial:
        request = agent_request(case.query, as_openai_tools(named), self.spec.reply_tokens)
        return Trial(case, size, {name: hit.tool.id for name, hit in named.items()}, request)


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
    cases, skipped = cases_of(searcher, queries)
    if not cases:
        raise ConfigurationError(_no_cases_message(skipped))
    tools = len(searcher.names.catalogs)
    sizes = tuple(size for size in sorted(set(spec.sizes)) if size <= tools)
    if larger := ", ".join(map(str, sorted(set(spec.sizes) - set(sizes)))):
        skipped = [*skipped, f"sets of {larger} tools: the release has only {tools}"]
    if not sizes:
        raise ConfigurationError(
            f"No number of tools can be tried: {skipped[-1]}. Name smaller ones."
        )
    system = ReleaseSystem.resolve(searcher, spec.strategy, spec.index)
    measures = [Measure("Recall", size) for size in sizes]
    retrieval = evaluate(system, [case.query for case in cases], measures, advance=advance)
    return Prepared(spec, searcher, tuple(cases), sizes, tuple(skipped), retrieval)


def cases_of(searcher: Searcher, queries: Sequence[GoldenQuery]) -> tuple[list[Case], list[str]]:
    """The queries that an agent can be asked, and how many it cannot for which reason."""
    cases: list[Case] = []
    without_calls = without_tools = 0
    missing: dict[str, None] = {}
    for query in queries:
        if not query.calls:
            without_calls += 1
            continue
        called = [call["tool"] for call in query.calls]
        names = dict.fromkeys((*query.tools, *(name for name in called if name not in query.names)))
        needed = searcher.names.resolve(names)
        if needed.unknown:
            without_tools += 1
            missing |= dict.fromkeys(needed.unknown)
            continue
        preferred = frozenset[str]().union(*searcher.names.resolve(called).tools.values())
        ids = dict.fromkeys(min(tools & preferred or tools) for tools in needed.tools.values())
        cases.append(
            Case(
                replace(query, tools=tuple(names)),
                tuple(_right_call(searcher, call) for call in query.calls),
                tuple(ids),
                frozenset().union(*needed.tools.values()),
            )
        )
    names = ", ".join([*missing][:MISSING_SHOWN])
    by_reason = {
        "no right calls": without_calls,
        f"the release lacks tools that they need: {names}": without_tools,
    }
    return cases, [
        f"{count} of {len(queries)} golden queries: {reason}"
        for reason, count in by_reason.items()
        if count
    ]


def given_tools(
    case: Case, sizes: Sequence[int], tools: Sequence[str]
) -> dict[int, tuple[str, ...]]:
    """For each number of tools the ids of those that the agent gets: needed ones and distractors.

    A query that needs more tools gets all that it needs. A larger set contains the smaller
    ones; the order is random.

    Args:
        tools: the ids of all tools of the release, in an order that does not change.
    """
    dice = random.Random(f"{SEED}:{case.query.id}")  # noqa: S311  a sample, no secret
    most = max(sizes, default=0) - len(case.needed)
    # A few more than needed, since tools that are right for the query are removed.
    drawn = dice.sample(tools, min(len(tools), max(most, 0) + len(case.right)))
    others = [tool for tool in drawn if tool not in case.right]
    order = {tool: _place(case.query.id, tool) for tool in (*case.needed, *others)}
    given: dict[int, tuple[str, ...]] = {}
    for size in sizes:
        tools_of_size = (*case.needed, *others[: max(size - len(case.needed), 0)])
        given[size] = tuple(sorted(tools_of_size, key=order.__getitem__))
    return given


def agent_request(
    query: GoldenQuery, tools: Sequence[Mapping[str, Any]], reply_tokens: int
) -> ChatRequest:
    """The request to the agent: the query after its conversation, with tools in OpenAI's form."""
    history = [
        Message(cast("Any", message["role"]), message["content"]) for message in query.history
    ]
    return ChatRequest(
        messages=(Message("system", INSTRUCTION), *history, Message("user", query.query)),
        max_tokens=reply_tokens,
        temperature=0.0,
        tools=tuple(tools),
        tool_choice="auto",
    )


@dataclass(frozen=True, slots=True)
class AgentEvaluation:
    """What was measured of an agent.

    Attributes:
        trials: in the order of `Prepared.trials`.
        spent_usd: None if the price is unknown.
        failures: for each kind of failure the message of the first.
    """

    model: str
    prepared: Prepared
    trials: tuple[Trial, ...]
    expected: ExpectedAccuracy
    spent_usd: float | None
    failures: Mapping[str, str]

    def rows(self) -> list[dict[str, Any]]:
        """One row for each number of tools.

        Returns: rows {tools; for each of `MEASURES` its mean with low, high and n; what `counts`
        has; retrieval: Recall at that number; expected: the product with low, high and n}.
        """
        recalls = _by_k(self.prepared.retrieval)
        return [
            {"tools": size}
            | {
                measure: interval([getattr(trial.score, field) for trial in trials]).to_dict()
                for measure, field in MEASURES.items()
            }
            | counts(trials)
            | {
                "retrieval": float(recalls[size].mean()),
                "expected": self.expected.by_k[size].to_dict(),
            }
            for size, trials in _by_size(self.trials).items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; `scores` has the score of each query with each number of tools."""
        retrieval = self.prepared.retrieval
        return {
            "model": self.model,
            "release": retrieval.release,
            "tools": len(self.prepared.searcher.names.catalogs),
            "strategy": retrieval.strategy,
            "index": retrieval.index,
            "encoder": retrieval.encoder,
            "overhead": retrieval.overhead.to_dict(),
            "reply_tokens": self.prepared.spec.reply_tokens,
            "queries": len(retrieval.results),
            "skipped": list(self.prepared.skipped),
            "rows": self.rows(),
            "chosen": self.expected.to_dict(),
            "spent_usd": self.spent_usd,
            "failures": dict(self.failures),
            "scores": [
                {"query": trial.case.query.id, "tools": trial.size}
                | asdict(trial.score)
                | {"unanswered": trial.failure}
                for trial in self.trials
            ],
        }


def evaluate_agent(
    prepared: Prepared,
    completer: Completer,
    concurrency: int = 8,
    budget_usd: float | None = None,
    advance: Advance = lambda _: None,
) -> AgentEvaluation:
    """Ask the agent, score its replies, and multiply the scores with retrieval.

    Args:
        completer: the agent's model.
        concurrency: the most calls under way at once.
        budget_usd: the most that may be spent; None is no limit.
        advance: called with the number of requests finished since the last call.

    Raises:
        ConfigurationError: a budget for a model whose price is unknown.
        CompletionError: the model cannot be reached, or refuses every call.
        BudgetExhausted: the next call does not fit into the budget.
    """
    import numpy as np

    price = price_of(completer)
    if budget_usd is not None and price is None:
        raise ConfigurationError(
            f"The price of {completer.name} is unknown, so a budget cannot be kept. Give its price "
            "(--price IN,OUT: USD for a million tokens of prompt and of reply), or no budget."
        )
    budget, trials = Budget(usd=budget_usd), prepared.trials()
    failures = asyncio.run(_ask_all(trials, completer, budget, concurrency, advance))
    scores = {
        size: np.array([trial.score.weighted for trial in own])
        for size, own in _by_size(trials).items()
    }
    expected = ExpectedAccuracy.of(scores, _by_k(prepared.retrieval), prepared.spec.margin)
    spent = None if price is None else budget.spent_usd
    return AgentEvaluation(completer.name, prepared, tuple(trials), expected, spent, failures)


async def _ask_all(
    trials: Sequence[Trial],
    completer: Completer,
    budget: Budget,
    concurrency: int,
    advance: Advance,
) -> dict[str, str]:
    """Ask each request once, and keep its reply; returns for each kind of failure the message of
    the first.
    """
    same: dict[tuple[int, int], list[Trial]] = {}
    for trial in trials:  # a query that needs more tools than two sizes has one set for both
        same.setdefault((id(trial.case), len(trial.names)), []).append(trial)
    errors: list[CompletionError] = []

    async def ask(group: Sequence[Trial]) -> None:
        try:
            reply = await client.ask(group[0].request)
        except BudgetExhausted:
            return  # the client has stopped
        except CompletionError as error:
            errors.append(error)
            for trial in group:
                trial.failure = error.kind
        else:
            for trial in group:
                trial.reply = reply
        advance(1)

    async with Client(completer, budget=budget, concurrency=concurrency) as client:
        await client.for_each(same.values(), ask)
    if client.stopped is not None or (errors and not budget.replies):
        raise client.stopped or errors[0]
    return {error.kind: redact_line(str(error)) for error in reversed(errors)}


def counts(trials: Sequence[Trial]) -> dict[str, Any]:
    """What became of trials: totals; tokens are means of an answered one.

    `precision` is the share of the calls made that match a right one. `tokens_by` says who counted
    the tokens of the prompts.
    """
    replies = [trial.reply for trial in trials if trial.reply is not None]
    scores = [trial.score for trial in trials]
    made, matched = sum(score.made for score in scores), sum(score.matched for score in scores)
    return {
        "answered": len(replies),
        "unanswered": dict(Counter(trial.failure for trial in trials if trial.failure)),
        "without_a_call": sum(not reply.calls for reply in replies),
        "cut_off": sum(reply.finish_reason == "length" for reply in replies),
        "precision": matched / made if made else None,
        "unknown_tools": sum(score.unknown for score in scores),
        "malformed": sum(score.malformed for score in scores),
        "prompt_tokens": _mean([reply.prompt_tokens for reply in replies]),
        "completion_tokens": _mean([reply.completion_tokens for reply in replies]),
        "tokens_by": "server" if all(reply.counted for reply in replies) else "estimate",
    }


def _by_size(trials: Iterable[Trial]) -> dict[int, list[Trial]]:
    """The trials by their number of tools, in the order of the queries."""
    groups: dict[int, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.size, []).append(trial)
    return groups


def _by_k(retrieval: Evaluation) -> dict[int, Any]:
    return {measure.k: values for measure, values in retrieval.values.items() if measure.k}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _right_call(searcher: Searcher, call: Mapping[str, Any]) -> RightCall:
    tools = searcher.names.resolve([call["tool"]]).tools.values()
    return RightCall(frozenset().union(*tools), call.get("arguments", {}))


def _place(query: str, tool: str) -> bytes:
    return hashlib.sha256(f"{SEED}\n{query}\n{tool}".encode()).digest()


def _no_cases_message(reasons: Sequence[str]) -> str:
    lines = ["No golden query can be put to an agent:"]
    lines += [f"  - {reason}" for reason in reasons]
    example = (
        '{"query": "what are 30 dollars in yen?", "tools": ["convert_currency"], '
        '"calls": [{"tool": "convert_currency", "arguments": {"amount": 30, "to": "JPY"}}]}'
    )
    return "\n".join(lines) + f"\nExpected lines such as {example}."
