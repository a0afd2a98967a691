"""Asking an agent golden queries with different tools at hand: in bounded time and concurrency,
within a budget, no reply paid for twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.evaluation.agent_asking import PROBE, Calling, Manner, agent_request, calls_of, key_of
from pegboard.evaluation.agent_budget import Purse
from pegboard.evaluation.agent_replies import AgentReplies, AgentReply, agent_reply
from pegboard.evaluation.agent_tools import Case, Shelf
from pegboard.evaluation.tool_calls import CallScore, made_call, score_calls
from pegboard.llm import ChatRequest, Completer
from pegboard.llm.retry import asynchronous
from pegboard.redaction import redact_line
from pegboard.tokens import token_bound

HOPELESS = frozenset({"key", "model", "quota"})
"""Failures that every later call would meet too."""
SILENT_CALLS = 5
"""So many calls given up before any was answered, and the model is taken to be away."""
LOST_CALLS = 20
"""The same once it has answered."""
PATIENCE_SECONDS = 180.0
"""How long one call is tried again in all. A server that asks for more is asked by the next run."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a run.

    Attributes:
        concurrency: the most calls on their way at once.
        attempts: how often a call is made in all, where its failure may pass.
        budget_usd: the most that the run may spend; None is no limit.
    """

    concurrency: int = 8
    attempts: int = 4
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One query with the tools of one size of set; `key` is None where there is no tool to give,
    and nothing to ask.
    """

    case: Case
    size: int
    tools: tuple[str, ...]
    key: str | None


@dataclass(frozen=True, slots=True)
class Scored:
    """What became of a trial.

    Attributes:
        reply: what the agent said; None if it was not asked, or did not answer.
        calls: how many calls it made; None if its reply could not be read as calls.
        why: which kind of failure (a key of `llm.failures.NEXT_STEPS`) left it without a reply, if
            one did.
    """

    trial: Trial
    score: CallScore
    reply: AgentReply | None
    calls: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """What a run would cost at most.

    Attributes:
        calls: how many have to be made.
        answered: how many more were answered before.
        prompt_tokens, completion_tokens: of the calls to be made, where every reply is as long as
            it may be.
        cost_usd: None if nobody knows.
    """

    calls: int
    answered: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def trials_of(
    cases: Sequence[Case],
    given: Sequence[Mapping[int, tuple[str, ...]]],
    shelf: Shelf,
    manner: Manner,
    model: str,
) -> list[Trial]:
    """A trial for each query and each size of its sets of tools."""
    shelf.fetch({tool for sets in given for tools in sets.values() for tool in tools})
    return [
        Trial(case, size, tools, _key(case, tools, shelf, manner, model))
        for case, sets in zip(cases, given, strict=True)
        for size, tools in sets.items()
    ]


def probed_calling(completer: Completer, replies: AgentReplies, limits: Limits) -> Calling:
    """How a model is to be asked: `native` if it answers a request that has to be answered by a
    tool call with one, else `prompt`.

    Raises CompletionError if it does not answer.
    """
    key = key_of(completer.name, PROBE)
    reply = replies.get(key)
    if reply is None:
        try:
            asked = asyncio.run(_closing(completer, _attempts(completer, PROBE, limits.attempts)))
        except CompletionError as error:
            if error.kind != "request":
                raise
            return "prompt"
        reply = agent_reply(asked, key=key, calling="native", query="probe", tools=1)
        replies.add(reply)
    return "native" if any(call.name == "say" for call in reply.calls) else "prompt"


class AgentRun:
    """Asks an agent, and scores what it says.

    Args:
        completer: the agent's model; asked in an event loop of its own, and closed with it.
        replies: what was answered before, and what will be.
        exact: compare texts of arguments character by character.

    Attributes:
        failures: what the first call said that failed in each way.

    Raises ConfigurationError for a budget where nobody knows the price.
    """

    def __init__(
        self,
        completer: Completer,
        shelf: Shelf,
        replies: AgentReplies,
        manner: Manner,
        limits: Limits,
        *,
        exact: bool = False,
    ) -> None:
        self._completer, self._shelf, self._replies = completer, shelf, replies
        self._manner, self._limits, self._exact = manner, limits, exact
        self._price: tuple[float, float] | None = getattr(
            completer, "price_per_token", lambda: None
        )()
        if limits.budget_usd is not None and self._price is None:
            raise ConfigurationError(
                f"Nobody knows what {completer.name} costs, so a budget cannot be kept. Give its "
                f"price (--price IN,OUT: USD for a "
                "million tokens of prompt and of reply), or no budget."
            )
        self.failures: dict[str, str] = {}
        self._why: dict[str, str] = {}
        self._fatal: CompletionError | None = None
        self._errors: list[CompletionError] = []
        self._given_up = self._answered = 0
        self._purse = Purse(limits.budget_usd)

    @property
    def spent_usd(self) -> float | None:
        """What this run paid; None if nobody knows."""
        return None if self._price is None else self._purse.spent

    def estimate(self, trials: Sequence[Trial]) -> Bill:
        """What asking would cost at most: whole replies, prompts by the completer's own count."""
        open_ones, known = self._open(trials)
        count: Callable[[str], int] = getattr(self._completer, "count_tokens", token_bound)
        prompt = sum(sum(count(text) for text in _texts(self._request(one))) for one in open_ones)
        completion = len(open_ones) * self._manner.max_tokens
        cost = self._price and prompt * self._price[0] + completion * self._price[1]
        return Bill(len(open_ones), known, prompt, completion, cost)

    def ask(self, trials: Sequence[Trial], advance: Callable[[int], None] = lambda _: None) -> None:
        """Ask what was not answered before.

        Args:
            advance: told how many more questions are done with.

        Raises:
            CompletionError: the model cannot be reached at all, or refuses every call; what was
                answered is kept.
            BudgetExhausted: the next call does not fit into the budget.
        """
        open_ones, known = self._open(trials)
        advance(known)
        if open_ones:
            asyncio.run(_closing(self._completer, self._all(iter(open_ones), advance)))
        # Nothing but refusals is no result either, if nothing else is known of this model.
        passing = all(error.may_pass for error in self._errors)
        if self._errors and not self._answered and (passing or not known):
            self._fatal = self._fatal or self._errors[0]
        if self._fatal is not None:
            raise self._fatal

    def score(self, trials: Sequence[Trial]) -> list[Scored]:
        """What became of the trials; a call that was not answered scores 0."""
        return [self._scored(one) for one in trials]

    def _open(self, trials: Sequence[Trial]) -> tuple[list[Trial], int]:
        """The trials that have to be asked, each question once, and how many questions were
        answered before.
        """
        by_key = {one.key: one for one in trials if one.key is not None}
        open_ones = [one for key, one in by_key.items() if self._replies.get(key) is None]
        return open_ones, len(by_key) - len(open_ones)

    def _request(self, trial: Trial) -> ChatRequest:
        return agent_request(trial.case.query, self._shelf.offered(trial.tools), self._manner)

    async def _all(self, waiting: Iterator[Trial], advance: Callable[[int], None]) -> None:
        async def work() -> None:
            for trial in waiting:
                if self._fatal is not None:
                    return
                await self._one(trial)
                advance(1)

        await asyncio.gather(*(work() for _ in range(self._limits.concurrency)))

    async def _one(self, trial: Trial) -> None:
        assert trial.key is not None
        request = self._request(trial)
        reserve = self._reserve(request)
        try:
            await self._purse.take(reserve)
        except BudgetExhausted as error:
            self._fatal = self._fatal or error
            return
        cost = 0.0
        try:
            answered = await _attempts(self._completer, request, self._limits.attempts)
            cost = answered.cost_usd or 0.0
            query, calling = trial.case.query.id, self._manner.calling
            self._replies.add(
                agent_reply(
                    answered, key=trial.key, calling=calling, query=query, tools=len(trial.tools)
                )
            )
            self._answered += 1
            self._given_up = 0
        except CompletionError as error:
            self._note(trial.key, error)
        finally:
            await self._purse.settle(reserve, cost)

    def _note(self, key: str, error: CompletionError) -> None:
        self._why[key] = error.kind
        self.failures.setdefault(error.kind, redact_line(str(error)))
        self._errors.append(error)
        self._given_up += error.may_pass
        if error.kind in HOPELESS or self._given_up >= (
            LOST_CALLS if self._answered else SILENT_CALLS
        ):
            self._fatal = self._fatal or error

    def _reserve(self, request: ChatRequest) -> float:
        if self._price is None:
            return 0.0
        prompt = token_bound(*_texts(request)) + 16
        return prompt * self._price[0] + request.max_tokens * self._price[1]

    def _scored(self, trial: Trial) -> Scored:
        reply = self._replies.get(trial.key) if trial.key is not None else None
        if reply is None:
            why = self._why.get(trial.key, "not asked") if trial.key is not None else ""
            return Scored(trial, score_calls(trial.case.calls, [], exact=self._exact), None, 0, why)
        written = calls_of(reply.text, reply.calls, self._manner.calling)
        names = self._shelf.offered(trial.tools).ids
        made = [made_call(call.name, call.arguments, names) for call in written or ()]
        score = score_calls(trial.case.calls, made, exact=self._exact)
        return Scored(trial, score, reply, None if written is None else len(made))


def _key(
    case: Case, tools: tuple[str, ...], shelf: Shelf, manner: Manner, model: str
) -> str | None:
    return key_of(model, agent_request(case.query, shelf.offered(tools), manner)) if tools else None


def _texts(request: ChatRequest) -> list[str]:
    from pegboard.llm.chat_format import prompt_text

    return [prompt_text(request), str(request.schema or "")]


async def _attempts(completer: Completer, request: ChatRequest, attempts: int) -> Any:
    return await asynchronous(attempts, PATIENCE_SECONDS)(completer.complete, request)


async def _closing(completer: Completer, work: Awaitable[Any]) -> Any:
    try:
        return await work
    finally:
        if close := getattr(completer, "aclose", None):
            await close()
