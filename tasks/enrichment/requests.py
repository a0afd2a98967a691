"""Requests of an enrichment: one for each product of each tool and agent.

A request knows nothing of time or network. From the replies in the ledger it says what to ask next,
and turns a reply into an entry of the ledger. So a run that was killed continues at the very reply
where it stopped."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pegboard.canonical import canonical_json
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.llm.prompts import Prompt
from pegboard.redaction import redact_credentials
from tasks.enrichment.ledger import LakeLedger, Step, StoredReply
from tasks.enrichment.products import schema_of
from tasks.enrichment.replies import judge
from tasks.enrichment.verdict import Subject
from tasks.settings.enrichment import EnrichSettings, Product

Accepted = Mapping[Product, Any]
"""The values accepted for a tool so far, by product: later products are made from earlier ones."""
REPAIR_CHARACTERS = 6_000
"""Of an invalid reply, shown to the model in the repair."""


@dataclass(frozen=True, slots=True)
class Call:
    """The next LLM call for a request."""

    step: Step
    request: ChatRequest


@dataclass(frozen=True, slots=True)
class ProductPrompts:
    """The common part of all requests for one product."""

    settings: EnrichSettings
    prompt: Prompt
    think: Prompt
    repair: Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRequest:
    """One product for one tool or agent.

    Attributes:
        subject: the id of the tool or agent.
        key: identifies the request in the ledger.
        content: the digest of what it is about, whatever the prompt and the model.
        values: the prompt's values, given what was accepted so far. Called when something is to be
            asked, which for most requests of most runs is never.
        about: what a reply is judged by.
        shown: the neighbours in the prompt, as `id@digest`.
        required: those of them that a reply must have been shown; where one is new, the LLM is
            asked again.
        retry_rejected: ask again even if an earlier run's reply was rejected.
    """

    product: Product
    subject: str
    key: str
    content: str
    prompts: ProductPrompts
    values: Callable[[Accepted], Mapping[str, Any]]
    about: Subject
    shown: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    retry_rejected: bool = False

    @property
    def wording(self) -> str:
        """The prompt's version and the digest of its file, as the ledger records them."""
        return f"{self.prompts.prompt.version}:{self.prompts.prompt.digest[:16]}"

    def final_reply(self, ledger: LakeLedger) -> StoredReply | None:
        """Return the last accepted reply, else the last that was finally rejected, if any."""
        finals = [
            reply
            for reply in ledger.entries(self.key)
            if reply.final and self.required <= set(reply.shown)
        ]
        accepted = [reply for reply in finals if reply.value is not None]
        rejected = [reply for reply in finals if not self.retry_rejected or reply.run == ledger.run]
        return next(reversed(accepted or rejected), None)

    def next_call(self, ledger: LakeLedger, accepted: Accepted) -> Call:
        """Return the next call, given the replies in the ledger."""
        steps = {reply.step: reply for reply in self._unfinished(ledger)}
        schema = self._schema_text() if self.prompts.settings.structured == "text" else ""
        messages = self.prompts.prompt.messages(**self.values(accepted), schema=schema)
        if self.prompts.settings.think:
            first, second = self._thinking(messages)
            if "think" not in steps:
                return Call("think", self._chat_request(first, structured=False))
            messages = (*first, Message("assistant", steps["think"].raw), second)
        if "reply" not in steps:
            return Call("reply", self._chat_request(messages))
        problem = self.prompts.repair.messages(
            problem=steps["reply"].detail, schema=self._schema_text()
        )[-1]
        reply = Message("assistant", steps["reply"].raw[:REPAIR_CHARACTERS])
        return Call("repair", self._chat_request((*messages, reply, problem)))

    def judge_reply(self, step: Step, reply: ChatReply, run: str) -> StoredReply:
        """Return the ledger's entry for a reply: judged, and final if no call is left."""
        stored = stored_reply(
            reply,
            key=self.key,
            step=step,
            product=self.product,
            subject=self.subject,
            prompt=self.wording,
            model=self.prompts.settings.model,
            shown=self.shown,
            content=self.content,
            run=run,
        )
        if step == "think":
            return stored
        verdict = judge(self.product, reply.text, reply.finish_reason, self.about)
        return replace(
            stored,
            final=verdict.value is not None or step == "repair",
            value=None if verdict.value is None else canonical_json(verdict.value),
            reason=verdict.reason,
            detail=verdict.detail,
            dropped=json.dumps([list(item) for item in verdict.dropped], ensure_ascii=False),
        )

    def _unfinished(self, ledger: LakeLedger) -> list[StoredReply]:
        """The replies since the last final one, if the prompt showed the same neighbours."""
        unfinished: list[StoredReply] = []
        for reply in ledger.entries(self.key):
            unfinished = [] if reply.final else [*unfinished, reply]
        return [reply for reply in unfinished if reply.shown == self.shown]

    def _thinking(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], Message]:
        """The messages of the first step, and the one that asks for the structure in the second."""
        think = self.prompts.think.messages(schema=self._schema_text())
        first, second = think[0], think[-1]
        user = Message("user", f"{messages[-1].content}\n\n{first.content}")
        return (*messages[:-1], user), Message("user", second.content)

    def _chat_request(self, messages: Sequence[Message], *, structured: bool = True) -> ChatRequest:
        settings = self.prompts.settings
        schema = schema_of(self.product) if structured and settings.structured == "schema" else None
        return ChatRequest(
            messages=tuple(messages),
            max_tokens=settings.max_reply_tokens,
            temperature=settings.temperature,
            schema=schema,
            schema_name=self.product,
        )

    def _schema_text(self) -> str:
        return json.dumps(schema_of(self.product))


Chain = tuple[ProductRequest, ...]
"""The requests of one tool or agent, each of which may use the values accepted before it."""


@dataclass(frozen=True, slots=True)
class RequestSet:
    """All requests of a run.

    Attributes:
        chains: tools first, agents last.
        shared: keys of requests that several tools have in common.
    """

    chains: tuple[Chain, ...]
    shared: frozenset[str]

    def __iter__(self) -> Iterator[ProductRequest]:
        return (request for chain in self.chains for request in chain)

    def any_missing(self, ledger: LakeLedger) -> bool:
        """Return whether any request has no final reply."""
        return any(request.final_reply(ledger) is None for request in self)


class AcceptedValues:
    """The accepted values of requests, and what an earlier prompt or model wrote until they exist.

    Attributes:
        kept: values that are an earlier prompt's or model's, by product.
    """

    def __init__(self, ledger: LakeLedger) -> None:
        self.kept: Counter[Product] = Counter()
        self._ledger = ledger
        self._earlier: dict[tuple[str, str], StoredReply] = {}
        for reply in sorted(ledger.all(), key=lambda reply: reply.at):
            if reply.value is not None and reply.content:
                self._earlier[reply.product, reply.content] = reply

    def of(self, chain: Chain) -> dict[Product, Any]:
        """Return the values of a chain by product."""
        values: dict[Product, Any] = {}
        for request in chain:
            reply = request.final_reply(self._ledger)
            if reply is None or reply.value is None:
                reply = self._earlier.get((request.product, request.content))
                self.kept[request.product] += reply is not None
            if reply is not None and reply.value is not None:
                values[request.product] = json.loads(reply.value)
        return values


def stored_reply(reply: ChatReply, *, model: str, **fields: Any) -> StoredReply:
    """Return a reply as the ledger stores it, without credentials.

    Args:
        model: the configured model; another one may have answered.
        fields: the other fields of `StoredReply`.
    """
    return StoredReply(
        model=model,
        answered_by=reply.model,
        raw=redact_credentials(reply.text),
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost_usd=reply.cost_usd,
        seconds=round(reply.seconds, 3),
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        **fields,
    )
