"""Other wordings of a request by rules: condensed, shortened, made general, or cut into parts.

Toolshed (section 3.4.2) has an LLM rewrite follow-ups with the help of the conversation, and write
three variations of every query and a step-back question. Without one, a follow-up ("and for Lyon?",
"cancel it") gets the words of the user's message before it in front of it: in English by what it
refers to, in other languages by its being short. No new words can be found, but words that draw a
search away from the need can be left out.

A request that stands alone is left as it is. Leaving out its politeness was measured with the
embedded encoder and hybrid search: recall at 5 becomes .739 instead of .730 on MetaTool's requests
for two tools, .350 instead of .339 on LiveMCPBench, but .670 instead of .722 on UltraTool.

Variations, measured likewise with `Weighted("none")` at weight .5, recall at 5 of the request alone
/ with variations / with the step back: MetaTool's requests for two tools .730 / .730 / .727,
UltraTool .722 / .718 / .730, LiveMCPBench .339 / .381 / .336, ToolLinkOS .981 / .983 / .951, whose
tools are told apart by the names that a step back drops. So neither is part of the default
strategy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from pegboard.errors import QueryError
from pegboard.llm import Message
from pegboard.retrieval.parts import Context, Query, Role
from pegboard.retrieval.rules import clause_words as words
from pegboard.retrieval.rules.clause_heads import Reading
from pegboard.retrieval.rules.clause_tokens import Token
from pegboard.retrieval.rules.clauses import MAX_TEXT, without_fillers
from pegboard.search.text import identifier_words


def condensed(text: str, history: Sequence[Message] = (), short: int = 4, carried: int = 12) -> str:
    """The request; a follow-up without its politeness, and with the salient words of the last
    message of the user before it.

    Args:
        short: a request of at most so many words that name something is taken for a follow-up, if
            there is a history.
        carried: the most words that are put in front of a follow-up.
    """
    before = next(
        (
            message.content
            for message in reversed(history)
            if message.role == "user" and message.content.strip()
        ),
        "",
    )
    bare = without_fillers(text)
    if not before or not _follows_up(bare, short):
        return text
    present = {word.lower() for word in salient_words(bare)}
    added = [word for word in salient_words(before) if word.lower() not in present]
    return " ".join([*added[:carried], bare])


def salient_words(text: str) -> list[str]:
    """The words of a text that name something, in their order, each once: no function words, no
    politeness.
    """
    unique: dict[str, str] = {}
    for token in Reading(text[:MAX_TEXT]).tokens:
        if token.kind in ("word", "quoted") and token.low not in words.EMPTY:
            unique.setdefault(token.text.lower(), token.text)
    return list(unique.values())


def _follows_up(text: str, short: int) -> bool:
    named = salient_words(text)
    tokens = [token.low for token in Reading(text[:MAX_TEXT]).tokens if token.kind == "word"]
    leans = any(low in words.PRONOUNS for low in tokens[:4])
    return len(named) <= short and (leans or len(named) < short)


def variations(text: str, limit: int = 3) -> list[str]:
    """Up to three other wordings of a request, none of them the request itself: without its
    politeness; its words that name something; these with identifiers taken apart (`getRecord_v2` ->
    get Record v2)."""
    named = " ".join(salient_words(text))
    other = (without_fillers(text), named, identifier_words(named))
    return list(dict.fromkeys(wording for wording in other if wording and wording != text.strip()))[
        :limit
    ]


def stepped_back(text: str) -> str:
    """A request without its specifics: quotations, numbers, addresses, file names, identifiers and
    names; empty if nothing is left.

    "Send 'Hello' to ana@example.org from Paris at 9:30" becomes "Send". Words with a capital letter
    are names, except at the beginning of a sentence, so in German nouns are lost, too.
    """
    reading = Reading(text[:MAX_TEXT])
    general_words: list[str] = []
    begins = True
    for token in reading.tokens:
        if token.kind == "word" and not _is_specific(token, begins):
            general_words.append(token.text)
        begins = token.kind == "line" or token.text in (".", "!", "?", "¿", "。")
    while general_words and general_words[-1].lower() in words.EMPTY:
        general_words.pop()
    general = without_fillers(" ".join(general_words))
    return general if salient_words(general) else ""


def equal_parts(text: str, count: int) -> list[str]:
    """The words of a text in so many parts of equal length, as far as they go; fewer where there
    are fewer words.
    """
    split = text.split()
    count = min(count, len(split))
    bounds = [round(place * len(split) / count) for place in range(count + 1)] if count else []
    return [" ".join(split[start:end]) for start, end in pairwise(bounds)]


def _is_specific(token: Token, begins: bool) -> bool:
    if (
        any(letter.isdigit() or letter in "@/\\_#~%$€£" for letter in token.text)
        or "." in token.text
    ):
        return True
    return (
        not begins
        and not token.text[0].islower()
        and token.text[0].upper() != token.text[0].lower()
        and token.low != "i"
    )


@dataclass(frozen=True, slots=True)
class Condense:
    """Rewrites a request that follows up what was said before: it gets the words that it refers to.

    Attributes:
        short: a request of at most so many words that name something may be a follow-up.
        carried: the most words of the message before it that a follow-up gets.
    """

    short: int = 4
    carried: int = 12
    part: ClassVar[str] = "condense"

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The queries with the request rewritten; those of a request that stands alone as they
        are.
        """
        history = context.request.history
        return [
            replace(query, text=text, role="rewrite")
            if query.role == "request"
            and (text := condensed(query.text, history, self.short, self.carried)) != query.text
            else query
            for query in queries
        ]


@dataclass(frozen=True, slots=True)
class Variations:
    """Searches for other wordings of every query, too, in its step.

    Attributes:
        limit: the most wordings of each query, up to 3.
        weight: of their rankings beside that of the query.
    """

    limit: int = 3
    weight: float = 0.5
    part: ClassVar[str] = "variations"

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= 3 or self.weight < 0:
            raise QueryError(
                f"variations has limit = {self.limit} and weight = {self.weight}; expected a "
                f"limit of 1 to 3 and a weight of 0 or more."
            )

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Every query, followed by its variations."""
        return _extended(
            queries, lambda text: variations(text, self.limit), "variation", self.weight
        )


@dataclass(frozen=True, slots=True)
class StepBack:
    """Searches for every query without its specifics, too, in its step (Zheng and others, "Take a
    Step Back", 2023, have an LLM do it).

    Attributes:
        weight: of its ranking beside that of the query.
    """

    weight: float = 0.5
    part: ClassVar[str] = "step-back"

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise QueryError(f"step-back has weight = {self.weight}; expected 0 or more.")

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """Every query, followed by the more general one where there is one."""
        return _extended(queries, lambda text: [stepped_back(text)], "step-back", self.weight)


@dataclass(frozen=True, slots=True)
class DummySteps:
    """Cuts the request into parts of equal length: the "dummy" decomposition, RPS's baseline for
    one that understands the request.

    The paper (algorithm 1, line 3) says only that it makes m subtasks without regard to the
    context; here they have the same number of words.

    Attributes:
        steps: how many parts.
        whole: whether the request as a whole is searched for, too, as step 0.
    """

    steps: int = 3
    whole: bool = False
    part: ClassVar[str] = "dummy-steps"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise QueryError(f"dummy-steps has steps = {self.steps}; expected 1 or more.")

    async def transform(self, queries: Sequence[Query], context: Context) -> list[Query]:
        """The parts as steps 1, 2, ...; the queries as they are where the request is a single
        word.
        """
        request = next((query for query in reversed(queries) if query.step == 0), None)
        parts = equal_parts(request.text, self.steps) if request else []
        if len(parts) < 2:
            return list(queries)
        first = max(query.step for query in queries) + 1
        others = [query for query in queries if self.whole or query.step]
        return others + [Query(part, step, "step") for step, part in enumerate(parts, start=first)]


def _extended(
    queries: Sequence[Query], others: Callable[[str], list[str]], role: Role, weight: float
) -> list[Query]:
    """Every query with others behind it; not for the request where it only stands beside a step as
    its background.
    """
    extended: list[Query] = []
    for query in queries:
        extended.append(query)
        if query.role in ("variation", "step-back") or (
            query.step and query.role in ("request", "rewrite")
        ):
            continue
        extended += [
            Query(text, query.step, role, query.weight * weight)
            for text in others(query.text)
            if text and text != query.text
        ]
    return extended
