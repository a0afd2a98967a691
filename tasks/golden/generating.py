"""Golden queries that an LLM writes: a request for each sample of tools, checked.

Every reply is in a ledger beside the file of queries before anything else happens; a run that was
killed, or that wants more queries, asks only for what is not there.

Requests that cannot be golden queries are left out, and counted by reason: those of
`tasks/enrichment/replies.py`, and

    copies-description   six words in a row are those of a tool's description
    names-itself         the name of a tool of three words and more, in a row
    duplicate            nearly the request of another query
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pegboard.canonical import digest
from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError, PegboardError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.llm import ChatRequest, Completer
from pegboard.llm.client import Budget, Client
from pegboard.llm.prompts import Prompt, PromptFormat, read_prompt
from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease
from pegboard.search.text import identifier_words, singular_words
from pegboard.toml_settings import problems_of
from tasks.enrichment.ledger import LakeLedger, StoredReply
from tasks.enrichment.models import client_for
from tasks.enrichment.near_duplicates import near_duplicate, word_set, words_in
from tasks.enrichment.products import schema_of
from tasks.enrichment.prompts import language_words
from tasks.enrichment.replies import Subject, ToolNameMatcher, judge
from tasks.enrichment.requests import stored_reply
from tasks.golden.checking import COPIED_WORDS
from tasks.lake.files import Lake
from tasks.safety.prompt_tool import tool_data
from tasks.safety.untrusted import fence_untrusted
from tasks.settings.enrichment import EnrichSettings

VERSION = 1
"""Changes when the same replies would be judged otherwise; they are then asked for anew."""
MAX_SAMPLES_PER_QUERY = 3
"""Samples that are tried for each query that is wanted, since some requests are rejected."""
PRODUCT = "golden"
BUILTIN_PROMPT = Path(__file__).parent / "prompts" / "requests.md"
PROMPT_FORMAT = PromptFormat(
    ("tools", "count", "kind", "form", "language", "schema"), required=("tools",)
)
"""`tools` is JSON inside <data>, `count` their number, `kind` single, parallel or sequential,
`form` the form of the request, `schema` that of the reply as text where the model takes none."""
Kind = Literal["single", "parallel", "sequential"]

FORMS = (
    "a question",
    "a command",
    "a few search words, without a verb",
    "one or two sentences with the reason behind it",
    "the goal or the problem only, which leaves it to the reader to see what is needed",
    "a short and careless message, as to a colleague",
)
"""How people put requests; each query has one of them."""
ROUNDS = 8
"""How often every tool is sampled, at most."""
SEED = 0
COPIES_DESCRIPTION = "copies-description"
MIN_NAME_WORDS = 3
"""Words of a name that do not occur in a row by chance; people do say `list files`."""


# Samples of tools that queries are written about: reproducible, without repetition.


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request is to need.

    Attributes:
        tools: ids.
        kind: how it needs them.
        form: the form of the request, one of `FORMS`.
        round: how often its first tool was sampled before.
    """

    tools: tuple[str, ...]
    kind: Kind
    form: str
    round: int


def draw_samples(loaded: LoadedRelease) -> Iterator[Sample]:
    """Yield samples of one tool and of two in turn; each tool comes first once in a round.

    The second tool is another one of the same agent, if it has any.
    """
    ids = sorted(tool for tool, _, _ in loaded.tool_names())
    seen: set[frozenset[str]] = set()
    for round_ in range(ROUNDS):
        for place, tool in enumerate(_shuffled(ids, round_)):
            tools = (tool,)
            if (place + round_) % 2:
                agent = tool.rpartition("/")[0]
                own = [other for other in ids if other != tool and other.startswith(f"{agent}/")]
                others = own or [other for other in ids if other != tool]
                tools = (tool, *_shuffled(others, round_, tool)[:1])
                if frozenset(tools) in seen:
                    continue
                seen.add(frozenset(tools))
            chance = int(digest(SEED, round_, tools)[:8], 16)
            several: tuple[Kind, Kind] = ("parallel", "sequential")
            kind: Kind = "single" if len(tools) == 1 else several[chance % 2]
            yield Sample(tools, kind, FORMS[(chance // 2) % len(FORMS)], round_)


def _shuffled(ids: Sequence[str], *salt: object) -> list[str]:
    return sorted(ids, key=lambda tool: digest(SEED, *salt, tool))


def generate_queries(
    loaded: LoadedRelease,
    settings: EnrichSettings,
    completer: Completer,
    ledger: LakeLedger,
    *,
    count: int,
    existing: Iterable[GoldenQuery] = (),
    advance: Callable[[int], None] = lambda _: None,
) -> "Generated":
    """Have requests written until there are `count` queries, or no more samples.

    Args:
        settings: model, context, language, limits and budget; the rest is about enrichment.
        ledger: loaded; it is closed here.
        existing: queries; a request that is nearly one of theirs is left out.
        advance: called with the number of further queries.
    """
    generated = Generated(
        loaded=loaded,
        settings=settings,
        prompt=read_prompt(BUILTIN_PROMPT, PROMPT_FORMAT),
        ledger=ledger,
        client=client_for(settings, completer),
        names=ToolNameMatcher(name for _, name, _ in loaded.tool_names()),
    )
    for query in existing:
        check_new(query.query, generated.word_sets)
    try:
        limited = islice(draw_samples(loaded), MAX_SAMPLES_PER_QUERY * count)
        asyncio.run(generated.fill(limited, count, advance))
    finally:
        ledger.close()
    return generated


def model_settings(model: str, **options: Any) -> EnrichSettings:
    """Return the settings of a model from command line options, those that are None left out.

    Raises:
        ConfigurationError: lists every invalid option.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return EnrichSettings(model=model, **given)
    except ValidationError as error:
        problems = problems_of(error, EnrichSettings)
        raise ConfigurationError.from_problems("The model", problems) from error


def ledger_beside(file: Path) -> LakeLedger:
    """Return the ledger of a file of golden queries: the folder `.<name>.ledger` beside it."""
    return LakeLedger(Lake(str(file.resolve().with_name(f".{file.name}.ledger")))).load()


@dataclass(slots=True, kw_only=True)
class Generated:
    """A run and its result.

    Attributes:
        reused: replies that were in the ledger before.
        failed: calls without a reply.
        queries: of origin `generated`, in the order of their samples.
        rejected: how many requests could not be used, by reason.
    """

    loaded: LoadedRelease
    settings: EnrichSettings
    prompt: Prompt
    ledger: LakeLedger
    client: Client
    names: ToolNameMatcher
    reused: int = 0
    failed: int = 0
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    queries: list[GoldenQuery] = field(default_factory=list[GoldenQuery])
    rejected: Counter[str] = field(default_factory=Counter[str])
    word_sets: list[frozenset[str]] = field(default_factory=list[frozenset[str]])

    async def fill(
        self, samples: Iterable[Sample], count: int, advance: Callable[[int], None]
    ) -> None:
        """Ask for as many requests as queries are missing, until none is or samples run out."""
        samples = iter(samples)
        async with self.client as client:
            while client.stopped is None:
                wave = list(islice(samples, count - len(self.queries)))
                if not wave:
                    return
                before = len(self.queries)
                for sample, reply in zip(wave, await self._replies(wave), strict=True):
                    self._use(sample, reply)
                advance(len(self.queries) - before)

    @property
    def budget(self) -> Budget:
        """The replies of this run, and what they cost."""
        return self.client.budget

    @property
    def stopped(self) -> PegboardError | None:
        """Why the run ended early, if it did."""
        return self.client.stopped

    def _use(self, sample: Sample, reply: StoredReply | None) -> None:
        if reply is None:
            return
        reason = reply.reason if reply.value is None else check_new(reply.value, self.word_sets)
        if reason or reply.value is None:
            self.rejected[reason] += 1
            return
        by = reply.answered_by or self.settings.model
        self.queries.append(
            GoldenQuery(reply.value, sample.tools, kind=sample.kind, origin="generated", by=by)
        )

    async def _replies(self, samples: Sequence[Sample]) -> list[StoredReply | None]:
        """The reply to each sample; None where none could be had this time."""
        missing = {tool for sample in samples for tool in sample.tools} - self.tools.keys()
        self.tools |= self.loaded.tools(sorted(missing))
        replies: list[StoredReply | None] = [None] * len(samples)

        async def ask(at: int) -> None:
            replies[at] = await self._reply(samples[at])

        await self.client.for_each(range(len(samples)), ask)
        return replies

    async def _reply(self, sample: Sample) -> StoredReply | None:
        tools = [self.tools[tool] for tool in sample.tools]
        key = self._key(sample, tools)
        if (stored := self.ledger.last(key)) is not None:
            self.reused += 1
            return stored
        try:
            reply = await self.client.ask(self._request(sample, tools))
        except BudgetExhausted:
            return None
        except CompletionError:
            self.failed += 1
            return None
        request, reason = check_request(
            reply.text, reply.finish_reason, tools, self.names, self.settings.language
        )
        stored = stored_reply(
            reply,
            key=key,
            step="reply",
            product=PRODUCT,
            subject=" ".join(sample.tools),
            prompt=self.prompt.digest[:16],
            model=self.settings.model,
            final=True,
            value=request,
            reason=reason,
            run=self.ledger.run,
        )
        await self.ledger.add(stored)
        return stored

    def _key(self, sample: Sample, tools: Sequence[Tool]) -> str:
        settings = self.settings
        wording = [self.prompt.digest, settings.context, settings.language, settings.structured]
        parameters = [settings.model, settings.temperature, settings.max_reply_tokens]
        contents = [tool.digest for tool in tools]
        drawn = sample.kind, sample.form, sample.round
        return digest(PRODUCT, VERSION, wording, parameters, contents, *drawn)

    def _request(self, sample: Sample, tools: Sequence[Tool]) -> ChatRequest:
        settings, schema = self.settings, schema_of("questions")
        messages = self.prompt.messages(
            tools=fence_untrusted("tools", [tool_data(tool) for tool in tools]),
            count=len(tools),
            kind=sample.kind,
            form=sample.form,
            context=settings.context,
            language=language_words(settings.language, "the language of the descriptions"),
            schema=json.dumps(schema) if settings.structured == "text" else "",
        )
        return ChatRequest(
            messages=messages,
            max_tokens=settings.max_reply_tokens,
            temperature=settings.temperature,
            schema=schema if settings.structured == "schema" else None,
            schema_name="questions",
        )


def check_request(
    raw: str,
    finish_reason: str,
    tools: Sequence[Tool],
    names: ToolNameMatcher,
    language: str | None = None,
) -> tuple[str | None, str]:
    """Return the request of a reply and "", or None and the reason why it cannot be used.

    Args:
        tools: that the request is to need.
        names: of all tools.
        language: the code that was requested; None expects the language of the descriptions.
    """
    examples = [
        text
        for tool in tools
        for text in (*tool.examples, *(tool.enrichment.questions if tool.enrichment else ()))
    ]
    subject = Subject(
        product="questions",
        name=tools[0].name,
        description=" ".join(tool.description for tool in tools),
        examples=tuple(examples),
        tool_names=names,
        language=language,
        count=1,
    )
    verdict = judge(raw, finish_reason, subject)
    if verdict.value is None:
        return None, verdict.reason
    request: str = verdict.value[0]
    if any(_shares_run(request, tool.description) for tool in tools):
        return None, COPIES_DESCRIPTION
    if any(_contains_name(request, tool.name) for tool in tools):
        return None, "names-itself"
    return request, ""


def check_new(request: str, word_sets: list[frozenset[str]]) -> str:
    """Return why a request is no new one; "" if it is, and its words are added to `word_sets`."""
    words = word_set(request)
    if near_duplicate(words, word_sets):
        return "duplicate"
    word_sets.append(words)
    return ""


def _shares_run(text: str, description: str) -> bool:
    return bool(_runs(words_in(text)) & _runs(words_in(description)))


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + COPIED_WORDS]) for at in range(len(words) - COPIED_WORDS + 1)}


def _contains_name(text: str, name: str) -> bool:
    words = singular_words(identifier_words(name))
    name_words = f" {' '.join(words)} "
    return len(words) >= MIN_NAME_WORDS and name_words in f" {' '.join(singular_words(text))} "
