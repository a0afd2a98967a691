"""Run golden queries on an agent with different tools, and score its calls.

The LLM client bounds time, concurrency and money; replies are in a ledger, so that none is paid for
twice.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.evaluation.agent_requests import (
    PROBE,
    Calling,
    CallOptions,
    agent_request,
    read_calls,
    request_key,
)
from pegboard.evaluation.agent_tools import Case, ToolDefinitions
from pegboard.evaluation.tool_calls import CallScore, made_call, score_calls
from pegboard.llm import ChatReply, ChatRequest, Completer, ToolCall
from pegboard.llm.budget import Budget
from pegboard.llm.chat_format import prompt_text
from pegboard.llm.client import Client, price_of
from pegboard.llm.ledger import JsonlFile, Ledger
from pegboard.llm.pacing import Pacing
from pegboard.redaction import redact_line
from pegboard.tokens import token_bound

REPLIES = "replies.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """One reply of an agent, unchanged; an entry of the ledger.

    Attributes:
        key: of the request (`request_key`).
        query: the id of the golden query.
        tools: how many tools the agent was given.
        counted: whether the server counted the tokens of the prompt; otherwise they are an
            estimate.
    """

    key: str
    model: str
    calling: str
    query: str
    tools: int
    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    counted: bool
    cost_usd: float | None
    seconds: float
    at: str

    @classmethod
    def of(
        cls, reply: ChatReply, *, key: str, calling: str, query: str, tools: int
    ) -> "AgentReply":
        """The entry for a completer's reply."""
        return cls(
            key=key,
            model=reply.model,
            calling=calling,
            query=query,
            tools=tools,
            text=reply.text,
            calls=reply.calls,
            finish_reason=reply.finish_reason,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            counted=reply.counted,
            cost_usd=reply.cost_usd,
            seconds=round(reply.seconds, 3),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One query with the tools of one size of set; `key` is None if there is no tool to give."""

    case: Case
    size: int
    tools: tuple[str, ...]
    key: str | None


@dataclass(frozen=True, slots=True)
class ScoredTrial:
    """A trial with its score.

    Attributes:
        reply: None if the agent was not asked, or did not answer.
        calls: how many calls the agent made; None if its reply could not be read as calls.
        failure: the kind of failure (a key of `llm.failures.NEXT_STEPS`) that left it without a
            reply, if one did.
    """

    trial: Trial
    score: CallScore
    reply: AgentReply | None
    calls: int | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would cost at most.

    Attributes:
        calls: how many have to be made.
        answered: how many more were answered before.
        prompt_tokens, completion_tokens: of the calls to be made; every reply as long as allowed.
        cost_usd: None if the price is unknown.
    """

    calls: int
    answered: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def open_ledger(folder: str | Path) -> Ledger[AgentReply]:
    """The replies of a folder. Raises ConfigurationError if they cannot be read."""
    return Ledger(JsonlFile(Path(folder) / REPLIES, _decode)).load()


def trials_of(
    cases: Sequence[Case],
    given: Sequence[Mapping[int, tuple[str, ...]]],
    definitions: ToolDefinitions,
    options: CallOptions,
    model: str,
) -> list[Trial]:
    """A trial for each query and each size of its sets of tools."""
    definitions.fetch({tool for sets in given for tools in sets.values() for tool in tools})

    def key(case: Case, tools: tuple[str, ...]) -> str | None:
        if not tools:
            return None
        return request_key(model, agent_request(case.query, definitions.offered(tools), options))

    return [
        Trial(case, size, tools, key(case, tools))
        for case, sets in zip(cases, given, strict=True)
        for size, tools in sets.items()
    ]


def probe_calling(completer: Completer, ledger: Ledger[AgentReply], pacing: Pacing) -> Calling:
    """How to ask a model: `native` if it answers a request for a tool call with one, else `prompt`.

    Raises CompletionError if it does not answer.
    """
    key = request_key(completer.name, PROBE)
    if ledger.last(key) is None:

        async def probe() -> None:
            async with Client([completer], pacing=pacing) as client:
                reply = await client.ask(PROBE)
            await ledger.add(
                AgentReply.of(reply, key=key, calling="native", query="probe", tools=1)
            )

        try:
            asyncio.run(probe())
        except CompletionError as error:
            if error.kind != "request":
                raise
            return "prompt"
    reply = ledger.last(key)
    called = reply is not None and any(call.name == "say" for call in reply.calls)
    return "native" if called else "prompt"


class AgentRun:
    """Asks an agent, and scores its replies.

    Args:
        completer: the agent's model; closed with the event loop of each `ask`.
        ledger: the replies of earlier runs, and of this one.
        budget_usd: the most that the run may spend; None is no limit.
        exact: compare texts of arguments character by character.

    Attributes:
        failures: for each kind of failure the message of the first.

    Raises ConfigurationError for a budget if the price is unknown.
    """

    def __init__(
        self,
        completer: Completer,
        definitions: ToolDefinitions,
        ledger: Ledger[AgentReply],
        options: CallOptions,
        pacing: Pacing,
        budget_usd: float | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self._completer, self._definitions, self._ledger = completer, definitions, ledger
        self._options, self._pacing, self._exact = options, pacing, exact
        self._price = price_of(completer)
        if budget_usd is not None and self._price is None:
            raise ConfigurationError(
                f"The price of {completer.name} is unknown, so a budget cannot be kept. Give its "
                "price (--price IN,OUT: USD for a million tokens of prompt and of reply), or no "
                "budget."
            )
        self._budget = Budget(usd=budget_usd)
        self.failures: dict[str, str] = {}
        self._failed: dict[str, CompletionError] = {}

    @property
    def spent_usd(self) -> float | None:
        """What this run paid; None if the price is unknown."""
        return None if self._price is None else self._budget.spent_usd

    def estimate(self, trials: Sequence[Trial]) -> Estimate:
        """What asking would cost at most: prompts by the completer's own count, whole replies."""
        pending, answered = self._pending(trials)
        count: Callable[[str], int] = getattr(self._completer, "count_tokens", token_bound)
        requests = [self._request(trial) for trial in pending]
        texts = [
            text
            for request in requests
            for text in (prompt_text(request), str(request.schema or ""))
        ]
        prompt = sum(map(count, texts))
        completion = len(pending) * self._options.max_tokens
        cost = self._price and prompt * self._price[0] + completion * self._price[1]
        return Estimate(len(pending), answered, prompt, completion, cost)

    def ask(self, trials: Sequence[Trial], advance: Callable[[int], None] = lambda _: None) -> None:
        """Ask what the ledger does not answer.

        Args:
            advance: called with the number of requests finished since the last call.

        Raises:
            CompletionError: the model cannot be reached, or refuses every call; replies are kept.
            BudgetExhausted: the next call does not fit into the budget.
        """
        pending, answered = self._pending(trials)
        advance(answered)
        stopped = asyncio.run(self._ask_all(pending, advance)) if pending else None
        errors = list(self._failed.values())
        # Nothing but refusals is no result either, if the ledger has no reply of this model.
        passing = all(error.may_pass for error in errors)
        if errors and not self._budget.replies and (passing or not answered):
            stopped = stopped or errors[0]
        if stopped is not None:
            raise stopped

    def score(self, trials: Iterable[Trial]) -> list[ScoredTrial]:
        """Score the trials; one without a reply scores 0."""
        return [self._scored(trial) for trial in trials]

    def _pending(self, trials: Sequence[Trial]) -> tuple[list[Trial], int]:
        """The trials to ask, each request once, and how many requests were answered before."""
        by_key = {trial.key: trial for trial in trials if trial.key is not None}
        pending = [trial for key, trial in by_key.items() if self._ledger.last(key) is None]
        return pending, len(by_key) - len(pending)

    def _request(self, trial: Trial) -> ChatRequest:
        offered = self._definitions.offered(trial.tools)
        return agent_request(trial.case.query, offered, self._options)

    async def _ask_all(
        self, trials: Sequence[Trial], advance: Callable[[int], None]
    ) -> CompletionError | None:
        """Ask all trials; returns why the client stopped, if it did."""

        async def ask(trial: Trial) -> None:
            await self._ask(client, trial)
            advance(1)

        client = Client([self._completer], budget=self._budget, pacing=self._pacing)
        async with client:
            try:
                await client.for_each(trials, ask)
            except BaseExceptionGroup as group:  # such as a ledger that cannot be written
                raise group.exceptions[0] from None
        return client.stopped

    async def _ask(self, client: Client, trial: Trial) -> None:
        assert trial.key is not None
        try:
            reply = await client.ask(self._request(trial))
        except BudgetExhausted:
            return  # the client has stopped
        except CompletionError as error:
            self._failed[trial.key] = error
            self.failures.setdefault(error.kind, redact_line(str(error)))
            return
        entry = AgentReply.of(
            reply,
            key=trial.key,
            calling=self._options.calling,
            query=trial.case.query.id,
            tools=len(trial.tools),
        )
        await self._ledger.add(entry)

    def _scored(self, trial: Trial) -> ScoredTrial:
        reply = self._ledger.last(trial.key) if trial.key is not None else None
        if reply is None:
            score = score_calls(trial.case.calls, [], exact=self._exact)
            return ScoredTrial(trial, score, None, 0, self._failure(trial))
        calls = read_calls(reply.text, reply.calls, self._options.calling)
        ids = self._definitions.offered(trial.tools).ids
        made = [made_call(call.name, call.arguments, ids) for call in calls or ()]
        score = score_calls(trial.case.calls, made, exact=self._exact)
        return ScoredTrial(trial, score, reply, None if calls is None else len(made))

    def _failure(self, trial: Trial) -> str:
        if trial.key is None:
            return ""
        return self._failed[trial.key].kind if trial.key in self._failed else "not asked"


def _decode(row: dict[str, Any]) -> AgentReply:
    row["calls"] = tuple(ToolCall(**call) for call in row["calls"])
    return AgentReply(**row)
