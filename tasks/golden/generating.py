"""Golden queries that an LLM writes: for sampled tools one request each, checked, and never paid
for twice.

Every reply is in a ledger of its own beside the file of queries before anything else happens; a run
that was killed, or that wants more queries, asks only for what is not there.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from pegboard.canonical import digest
from pegboard.errors import BudgetExhausted, CompletionError, PegboardError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.llm import ChatRequest
from pegboard.llm.client import Client
from pegboard.records import Tool
from pegboard.redaction import redact_credentials
from pegboard.search.loaded import LoadedRelease
from tasks.enrichment.ledger import LakeLedger, StoredReply
from tasks.enrichment.models import Models, client_for
from tasks.enrichment.order_book import LANGUAGES
from tasks.enrichment.products import schema_of
from tasks.enrichment.reply_names import OtherNames
from tasks.golden.request_checks import checked_request, new_among
from tasks.golden.request_prompt import RequestPrompt
from tasks.golden.samples import Sample, draw_samples
from tasks.safety.text import fenced
from tasks.safety.tool import tool_data
from tasks.settings.enrichment import EnrichSettings

VERSION = 1
"""Changes when the same replies would be judged otherwise; they are then asked for anew."""
TRIES = 3
"""Requests that are asked for at most for each query that is wanted: where so many are rejected,
more would be, too.
"""
PRODUCT = "golden"


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of it.

    Attributes:
        queries: of origin `generated`, in the order of their samples.
        rejected: how many requests could not be used, by reason.
        asked: calls that were answered in this run; known: replies that were there before.
        stopped: why no more were asked for, if that is so.
    """

    queries: tuple[GoldenQuery, ...]
    rejected: dict[str, int]
    asked: int
    known: int
    failed: int
    cost_usd: float
    unpriced: int
    stopped: PegboardError | None = None


def generate_queries(
    loaded: LoadedRelease,
    settings: EnrichSettings,
    models: Models,
    ledger: LakeLedger,
    *,
    count: int,
    sizes: Sequence[int] = (1, 2),
    seed: int = 0,
    prompt: RequestPrompt | None = None,
    known: Iterable[GoldenQuery] = (),
    advance: Callable[[int], None] = lambda _: None,
) -> Generated:
    """Have requests written until there are so many queries, or no more can be had.

    Args:
        settings: model, context, language, limits and budget; what else they say is about
            enrichment.
        ledger: loaded; it is closed here.
        sizes: numbers of tools in a query, in turn.
        known: queries that there are; a request that is nearly one of theirs is left out.
        advance: told how many more queries there are.

    Raises ConfigurationError for sizes that cannot be.
    """
    samples = draw_samples(loaded, sizes, seed)
    writer = _Writer(
        loaded=loaded,
        settings=settings,
        prompt=prompt or RequestPrompt.read(),
        ledger=ledger,
        client=client_for(settings, models),
        names=OtherNames(name for _, name, _ in loaded.tool_names()),
    )
    made = _Made([], Counter(), [])
    for one in known:
        new_among(one.query, made.seen)
    try:
        asyncio.run(_fill(made, writer, islice(samples, TRIES * count), count, advance))
    finally:
        ledger.close()
    budget = writer.client.budget
    return Generated(
        queries=tuple(made.queries),
        rejected=dict(made.rejected.most_common()),
        asked=budget.replies,
        known=writer.known,
        failed=writer.failed,
        cost_usd=budget.spent_usd,
        unpriced=budget.unpriced,
        stopped=writer.client.stopped,
    )


async def _fill(
    made: "_Made",
    writer: "_Writer",
    samples: Iterable[Sample],
    count: int,
    advance: Callable[[int], None],
) -> None:
    """Ask for as many requests as queries are missing, until none is, or there are no samples
    left.
    """
    samples = iter(samples)
    async with writer.client as client:
        while client.stopped is None and (wave := list(islice(samples, count - len(made.queries)))):
            before = len(made.queries)
            for sample, entry in zip(wave, await writer.replies(wave), strict=True):
                made.take(sample, entry, writer.settings.model)
            advance(len(made.queries) - before)


@dataclass(slots=True)
class _Made:
    """The queries so far, the words of each and of those that were there, and why others are not
    among them.
    """

    queries: list[GoldenQuery]
    rejected: Counter[str]
    seen: list[frozenset[str]]

    def take(self, sample: Sample, entry: StoredReply | None, model: str) -> None:
        if entry is None:
            return
        reason = entry.reason if entry.value is None else new_among(entry.value, self.seen)
        if reason or entry.value is None:
            self.rejected[reason] += 1
            return
        self.queries.append(
            GoldenQuery(
                entry.value,
                sample.tools,
                kind=sample.kind,
                origin="generated",
                by=entry.answered_by or model,
            )
        )


@dataclass(slots=True, kw_only=True)
class _Writer:
    loaded: LoadedRelease
    settings: EnrichSettings
    prompt: RequestPrompt
    ledger: LakeLedger
    client: Client
    names: OtherNames
    known: int = 0
    failed: int = 0
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])

    async def replies(self, samples: Sequence[Sample]) -> list[StoredReply | None]:
        """For each sample its reply; None where none could be had this time."""
        missing = {tool for sample in samples for tool in sample.tools} - self.tools.keys()
        self.tools |= self.loaded.tools(sorted(missing))
        found: list[StoredReply | None] = [None] * len(samples)

        async def ask(at: int) -> None:
            found[at] = await self._reply(samples[at])

        try:
            await self.client.for_each(range(len(samples)), ask)
        finally:
            await self.ledger.flush()
        return found

    async def _reply(self, sample: Sample) -> StoredReply | None:
        tools = [self.tools[one] for one in sample.tools]
        key = self._key(sample, tools)
        if entries := self.ledger.entries(key):
            self.known += 1
            return entries[-1]
        try:
            reply = await self.client.ask(self._request(sample, tools))
        except BudgetExhausted:
            return None
        except CompletionError:
            self.failed += 1
            return None
        request, reason = checked_request(
            reply.text,
            reply.finish_reason,
            tools,
            self.names,
            self.prompt.text,
            self.settings.language,
        )
        entry = StoredReply(
            key=key,
            step="reply",
            product=PRODUCT,
            subject=" ".join(sample.tools),
            prompt=self.prompt.digest[:16],
            model=self.settings.model,
            answered_by=reply.model,
            final=True,
            value=request,
            reason=reason,
            raw=redact_credentials(reply.text),
            finish_reason=reply.finish_reason,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost_usd=reply.cost_usd,
            seconds=round(reply.seconds, 3),
            at=datetime.now(UTC).isoformat(timespec="microseconds"),
            run=self.ledger.run,
        )
        await self.ledger.add(entry)
        return entry

    def _key(self, sample: Sample, tools: Sequence[Tool]) -> str:
        settings = self.settings
        wording = [self.prompt.digest, settings.context, settings.language, settings.structured]
        asked = [settings.model, settings.temperature, settings.max_reply_tokens]
        return digest(
            PRODUCT,
            VERSION,
            wording,
            asked,
            [one.digest for one in tools],
            sample.kind,
            sample.form,
            sample.round,
        )

    def _request(self, sample: Sample, tools: Sequence[Tool]) -> ChatRequest:
        settings, schema = self.settings, schema_of("questions")
        language = settings.language
        messages = self.prompt.messages(
            tools=fenced("tools", [tool_data(tool) for tool in tools]),
            count=len(tools),
            kind=sample.kind,
            form=sample.form,
            context=settings.context,
            language=LANGUAGES.get(language, language)
            if language
            else "the language of the descriptions",
            schema=json.dumps(schema) if settings.structured == "text" else "",
        )
        return ChatRequest(
            messages=messages,
            max_tokens=settings.max_reply_tokens,
            temperature=settings.temperature,
            schema=schema if settings.structured == "schema" else None,
            schema_name="questions",
        )
