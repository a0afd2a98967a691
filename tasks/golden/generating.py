"""Golden queries that an LLM writes: a request for each sample of tools, checked.

The file of queries is written as they come; a run that was killed, or that wants more of them, goes
on with the samples that are not there.

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
from pegboard.errors import BudgetExhausted, CompletionError, ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, write_queries
from pegboard.llm import ChatReply, ChatRequest, Completer
from pegboard.llm.client import MAX_FAILURES, Client
from pegboard.llm.prompts import Prompt, PromptFormat, read_prompt
from pegboard.records import Tool
from pegboard.search.loaded import LoadedRelease
from pegboard.text.words import identifier_words, singular_words
from pegboard.toml_settings import problems_of
from tasks.enrichment.models import client_for, spent_budgets
from tasks.enrichment.near_duplicates import near_duplicate, word_set, words_in
from tasks.enrichment.products import schema_of
from tasks.enrichment.prompts import language_words
from tasks.enrichment.replies import Subject, ToolNameMatcher, judge
from tasks.golden.checking import COPIED_WORDS
from tasks.safety.prompt_tool import tool_data
from tasks.safety.untrusted import fence_untrusted
from tasks.settings.enrichment import EnrichSettings

WAVE = 32
"""Requests that are generated at once; the file is written after each wave."""
MAX_SAMPLES_PER_QUERY = 3
"""Maximum samples for each query, since some requests are rejected."""
BUILTIN_PROMPT = Path(__file__).parent / "prompts" / "requests.md"
PROMPT_FORMAT = PromptFormat(
    ("tools", "count", "kind", "form", "language", "schema"), required=("tools",)
)
"""`tools` is JSON inside <data>, `count` their number, `kind` that of a `Sample`,
`form` the form of the request, `schema` that of the reply as text where the model takes none."""
Kind = Literal["single", "parallel", "sequential", "dependent"]
"""How a request needs its tools; a dependent one is about the first of them, which needs the others
in its turn.
"""

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
"""Maximum samples of each tool."""
SEED = 0
MIN_NAME_WORDS = 3
"""Minimum words of a name that a request must not contain; people do say `list files`."""


# Samples of tools that queries are written about: reproducible, without repetition.


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request is to need.

    Attributes:
        tools: ids.
        kind: how it needs them.
        form: the form of the request, one of `FORMS`.
    """

    tools: tuple[str, ...]
    kind: Kind
    form: str


def draw_samples(loaded: LoadedRelease) -> Iterator[Sample]:
    """Yield samples of one tool and of two in turn; each tool comes first once in a round.

    The second tool is another one of the same agent, if it has any.
    """
    ids = sorted(tool for tool, _, _ in loaded.tool_names())
    drawn_pairs: set[frozenset[str]] = set()
    for round_ in range(ROUNDS):
        for place, tool in enumerate(_shuffled(ids, round_)):
            tools = (tool,)
            if (place + round_) % 2:
                agent = tool.rpartition("/")[0]
                siblings = [
                    other for other in ids if other != tool and other.startswith(f"{agent}/")
                ]
                others = siblings or [other for other in ids if other != tool]
                tools = (tool, *_shuffled(others, round_, tool)[:1])
                if frozenset(tools) in drawn_pairs:
                    continue
                drawn_pairs.add(frozenset(tools))
            chance = int(digest(SEED, round_, tools)[:8], 16)
            several: tuple[Kind, Kind] = ("parallel", "sequential")
            kind: Kind = "single" if len(tools) == 1 else several[chance % 2]
            yield Sample(tools, kind, FORMS[(chance // 2) % len(FORMS)])


def draw_dependent_samples(loaded: LoadedRelease) -> Iterator[Sample]:
    """Yield each tool with declared dependencies and everything that it depends on, directly or
    through others: what its golden query needs (Lumer et al., "Graph RAG-Tool Fusion", figure 8).

    Each tool comes once in a round. Raises ConfigurationError if no tool has such dependencies.
    """
    ids = sorted(tool for tool, _, _ in loaded.tool_names())
    in_release = set(ids)
    graph = loaded.graph
    closures = {
        tool: tuple(
            edge.target
            for edge in graph.dependencies(tool, None, ("declared",), in_release.__contains__)
        )
        for tool in ids
    }
    main_tools = [tool for tool in ids if closures[tool]]
    if not main_tools:
        raise ConfigurationError(
            "No tool of the release has declared dependencies, along which requests could be "
            "drawn. Declare some in the catalogs, or leave out --dependencies."
        )
    for round_ in range(ROUNDS):
        for tool in _shuffled(main_tools, round_):
            chance = int(digest(SEED, round_, tool)[:8], 16)
            yield Sample((tool, *closures[tool]), "dependent", FORMS[chance % len(FORMS)])


def _shuffled(ids: Sequence[str], *salt: object) -> list[str]:
    return sorted(ids, key=lambda tool: digest(SEED, *salt, tool))


def generate_queries(
    loaded: LoadedRelease,
    settings: EnrichSettings,
    completer: Completer,
    out: Path,
    *,
    count: int,
    existing: Sequence[GoldenQuery] = (),
    dependencies: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> "Generated":
    """Have requests written until a file has `count` generated queries, or no more samples.

    Args:
        settings: model, context, language, limits and budget; the rest is about enrichment.
        out: the file.
        existing: its queries; a request that is nearly one of theirs is left out, and the samples
            of generated ones are not drawn again.
        dependencies: whether samples are tools with all that they depend on.
        advance: called with the number of further queries.
    """
    done = Counter(query.tools for query in existing if query.origin == "generated")
    generated = Generated(
        out=out,
        existing=existing,
        missing=max(0, count - done.total()),
        loaded=loaded,
        settings=settings,
        prompt=read_prompt(BUILTIN_PROMPT, PROMPT_FORMAT),
        client=client_for(settings, completer),
        names=ToolNameMatcher(name for _, name, _ in loaded.tool_names()),
    )
    for query in existing:
        check_new(query.query, generated.word_sets)
    max_samples = MAX_SAMPLES_PER_QUERY * generated.missing
    drawn = draw_dependent_samples(loaded) if dependencies else draw_samples(loaded)
    samples = islice(_without(drawn, done), max_samples)
    asyncio.run(generated.fill(samples, advance))
    return generated


def _without(samples: Iterable[Sample], done: Counter[tuple[str, ...]]) -> Iterator[Sample]:
    """The samples but for those of which there are queries."""
    for sample in samples:
        if done[sample.tools]:
            done[sample.tools] -= 1
        else:
            yield sample


def model_settings(model: str, **options: Any) -> EnrichSettings:
    """Return the settings of a model from command line options, those that are None left out.

    Raises:
        ConfigurationError: lists every invalid option.
    """
    set_options = {name: value for name, value in options.items() if value is not None}
    try:
        return EnrichSettings(model=model, **set_options)
    except ValidationError as error:
        problems = problems_of(error, EnrichSettings)
        raise ConfigurationError.from_problems("The model", problems) from error


@dataclass(slots=True, kw_only=True)
class Generated:
    """A run and its result.

    Attributes:
        client: what it spent, and why the run ended early, if it did.
        missing: queries that are still to be written.
        failed: calls without a reply.
        unrecorded: requests that lack a recorded reply, where the model may not be asked.
        spent: the last replies in a row that spent their budget before any text.
        queries: of origin `generated`, in the order of their samples.
        rejected: how many requests could not be used, by reason.
    """

    out: Path
    existing: Sequence[GoldenQuery]
    loaded: LoadedRelease
    settings: EnrichSettings
    prompt: Prompt
    client: Client
    names: ToolNameMatcher
    missing: int
    failed: int = 0
    unrecorded: int = 0
    spent: int = 0
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    queries: list[GoldenQuery] = field(default_factory=list[GoldenQuery])
    rejected: Counter[str] = field(default_factory=Counter[str])
    word_sets: list[frozenset[str]] = field(default_factory=list[frozenset[str]])

    async def fill(self, samples: Iterable[Sample], advance: Callable[[int], None]) -> None:
        """Ask for as many requests as queries are missing, until none is or samples run out."""
        samples = iter(samples)
        async with self.client as client:
            while client.stopped is None:
                wave = list(islice(samples, min(WAVE, self.missing - self.unrecorded)))
                if not wave:
                    return
                missing_before = self.missing
                replies: list[ChatReply | None] = [None] * len(wave)
                try:
                    await self._ask(wave, replies)
                finally:  # interrupted or not: what was paid for is written
                    for sample, reply in zip(wave, replies, strict=True):
                        self._use(sample, reply)
                    if self.queries:
                        write_queries(self.out, [*self.existing, *self.queries])
                advance(missing_before - self.missing)

    def _use(self, sample: Sample, reply: ChatReply | None) -> None:
        if reply is None:
            return
        tools = [self.tools[tool] for tool in sample.tools]
        request, reason = check_request(
            reply.text, reply.finish_reason, tools, self.names, self.settings.language
        )
        reason = reason or check_new(request, self.word_sets)
        self.spent = self.spent + 1 if reason == "spent" else 0
        if self.spent >= MAX_FAILURES and self.client.stopped is None:
            self.client.stopped = spent_budgets(self.spent, self.settings)
        if reason:
            self.rejected[reason] += 1
            return
        by = reply.model or self.settings.model
        self.missing -= 1
        self.queries.append(
            GoldenQuery(request, sample.tools, kind=sample.kind, origin="generated", by=by)
        )

    async def _ask(self, samples: Sequence[Sample], replies: list[ChatReply | None]) -> None:
        """Fill in the reply to each sample, where one can be had this time."""
        missing = {tool for sample in samples for tool in sample.tools} - self.tools.keys()
        self.tools |= self.loaded.tools(sorted(missing))

        async def ask(at: int) -> None:
            try:
                replies[at] = await self.client.ask(self._request(samples[at]))
            except BudgetExhausted:
                pass
            except CompletionError as error:
                if error.kind == "unrecorded":
                    self.unrecorded += 1
                else:
                    self.failed += 1

        await self.client.for_each(range(len(samples)), ask)

    def _request(self, sample: Sample) -> ChatRequest:
        tools = [self.tools[tool] for tool in sample.tools]
        settings = self.settings
        schema = schema_of("questions")
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
) -> tuple[str, str]:
    """Return the request of a reply and "", or "" and the reason why it cannot be used.

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
        return "", verdict.reason
    request: str = verdict.value[0]
    if any(_shares_run(request, tool.description) for tool in tools):
        return "", "copies-description"
    if any(_contains_name(request, tool.name) for tool in tools):
        return "", "names-itself"
    return request, ""


def check_new(request: str, word_sets: list[frozenset[str]]) -> str:
    """Return why a request is not new; "" if it is, and its words are added to `word_sets`."""
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
