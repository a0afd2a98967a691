"""What there is to buy: an order for each product of each tool and agent, and how an order goes
from question to answer.

An order knows nothing of time or network. From what the ledger holds it says what to ask next, and
turns a reply into an entry of the ledger; so a run that was killed goes on at the very reply where
it stopped, live and in batches alike."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pegboard.canonical import canonical_json
from pegboard.llm import ChatReply, ChatRequest, Message
from pegboard.redaction import redact_credentials
from tasks.enrichment.ledger import LakeLedger, Step, StoredReply
from tasks.enrichment.products import schema_of
from tasks.enrichment.prompts import Prompt
from tasks.enrichment.replies import Subject, judge
from tasks.settings.enrichment import EnrichSettings, Product

Made = Mapping[Product, Any]
"""What was accepted for a tool so far in this run, by product: topics are made from questions,
questions from descriptions.
"""
REPAIR_CHARACTERS = 6_000
"""How much of a reply that did not validate is shown to the model again."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The next thing to ask for an order."""

    step: Step
    request: ChatRequest


@dataclass(frozen=True, slots=True)
class Stationery:
    """What all orders of one product are written with."""

    settings: EnrichSettings
    prompt: Prompt
    think: Prompt
    repair: Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One product for one tool or agent.

    Attributes:
        subject: the id of the tool or agent.
        key: what the ledger knows it by.
        values: what the prompt's placeholders stand for, given what was made for the tool so far.
            Asked for when something is to be bought, which for most orders of most runs is never.
        about: what a reply is judged by.
        shown: the neighbours in the prompt, as `id@digest`.
        required: those of them that a reply must have been shown; if one is a newcomer, the reply
            is bought anew.
        fresh: ask again even if an earlier run's reply was rejected.
    """

    product: Product
    subject: str
    key: str
    stationery: Stationery
    values: Callable[[Made], Mapping[str, Any]]
    about: Subject
    shown: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    fresh: bool = False

    @property
    def wording(self) -> str:
        """The prompt's version and the digest of its file, as the ledger notes them beside a
        reply.
        """
        return f"{self.stationery.prompt.version}:{self.stationery.prompt.digest[:16]}"

    def answer(self, ledger: LakeLedger) -> StoredReply | None:
        """The reply that stands for this order: the last that was accepted, else the last that was
        rejected for good.
        """
        finals = [
            entry
            for entry in ledger.entries(self.key)
            if entry.final and self.required <= set(entry.shown)
        ]
        accepted = [entry for entry in finals if entry.value is not None]
        rejected = [entry for entry in finals if not self.fresh or entry.run == ledger.run]
        return next(reversed(accepted or rejected), None)

    def next(self, ledger: LakeLedger, made: Made) -> Ask:
        """What to ask now, after the replies that are there already."""
        steps = {entry.step: entry for entry in self._under_way(ledger)}
        schema = self._schema_text() if self.stationery.settings.structured == "text" else ""
        messages = self.stationery.prompt.messages(**self.values(made), schema=schema)
        if self.stationery.settings.think:
            first, second = self._thinking(messages)
            if "think" not in steps:
                return Ask("think", self._request(first, structured=False))
            messages = (*first, Message("assistant", steps["think"].raw), second)
        if "reply" not in steps:
            return Ask("reply", self._request(messages))
        problem = self.stationery.repair.messages(
            problem=steps["reply"].detail, schema=self._schema_text()
        )[-1]
        said = Message("assistant", steps["reply"].raw[:REPAIR_CHARACTERS])
        return Ask("repair", self._request((*messages, said, problem)))

    def receive(self, step: Step, reply: ChatReply, run: str) -> StoredReply:
        """The ledger's entry for a reply: judged, and final if there is nothing more to ask."""
        entry = StoredReply(
            key=self.key,
            step=step,
            product=self.product,
            subject=self.subject,
            prompt=self.wording,
            model=self.stationery.settings.model,
            answered_by=reply.model,
            shown=self.shown,
            raw=redact_credentials(reply.text),
            finish_reason=reply.finish_reason,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost_usd=reply.cost_usd,
            seconds=round(reply.seconds, 3),
            at=datetime.now(UTC).isoformat(timespec="microseconds"),
            run=run,
        )
        if step == "think":
            return entry
        verdict = judge(self.product, reply.text, reply.finish_reason, self.about)
        return replace(
            entry,
            final=verdict.value is not None or step == "repair",
            value=None if verdict.value is None else canonical_json(verdict.value),
            reason=verdict.reason,
            detail=verdict.detail,
            dropped=json.dumps([list(one) for one in verdict.dropped], ensure_ascii=False),
        )

    def _under_way(self, ledger: LakeLedger) -> list[StoredReply]:
        """The replies of a question that was begun and not ended, if it was put in the same
        words.
        """
        begun: list[StoredReply] = []
        for entry in ledger.entries(self.key):
            begun = [] if entry.final else [*begun, entry]
        return [entry for entry in begun if entry.shown == self.shown]

    def _thinking(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], Message]:
        """The messages of the first step, and the one that asks for the structure in the second."""
        think = self.stationery.think.messages(schema=self._schema_text())
        first, second = think[0], think[-1]
        user = Message("user", f"{messages[-1].content}\n\n{first.content}")
        return (*messages[:-1], user), Message("user", second.content)

    def _request(self, messages: Sequence[Message], *, structured: bool = True) -> ChatRequest:
        settings = self.stationery.settings
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
