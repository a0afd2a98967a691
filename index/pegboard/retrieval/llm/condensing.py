"""Rewriting a request without an LLM: a follow-up gets the words that it refers to.

Toolshed (section 3.4.2) has an LLM rewrite short-hand requests with the help of the conversation
before them. Without one, a follow-up that leans on what was said ("and for Lyon?", "cancel it")
gets the words of the person's message before it put in front of it. The module does English well;
in other languages a follow-up is recognised by its being short.

A request that stands alone is left as it is. Leaving out its politeness was measured with the
embedded encoder and hybrid search: recall at 5 becomes .739 instead of .730 on MetaTool's requests
for two tools, .350 instead of .339 on LiveMCPBench, but .670 instead of .722 on UltraTool."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pegboard.llm import Message
from pegboard.retrieval.parts import Context, Query
from pegboard.retrieval.rules import clause_words as words
from pegboard.retrieval.rules.clause_heads import Reading
from pegboard.retrieval.rules.clauses import MAX_TEXT, without_fillers


def condensed(text: str, history: Sequence[Message] = (), short: int = 4, carried: int = 12) -> str:
    """The request; a follow-up without its politeness, and with the salient words of the last
    message of the user before it.

    Args:
        short: a request of at most so many words that name something is taken for a follow-up, if
            there is a history.
        carried: the most words that are put in front of a follow-up.
    """
    before = next(
        (one.content for one in reversed(history) if one.role == "user" and one.content.strip()), ""
    )
    said = without_fillers(text)
    if not before or not _follows_up(said, short):
        return text
    known = {word.lower() for word in salient_words(said)}
    added = [word for word in salient_words(before) if word.lower() not in known]
    return " ".join([*added[:carried], said])


def salient_words(text: str) -> list[str]:
    """The words of a text that name something, in their order, each once: no function words, no
    politeness.
    """
    found: dict[str, str] = {}
    for token in Reading(text[:MAX_TEXT]).tokens:
        if token.kind in ("word", "quoted") and token.low not in words.EMPTY:
            found.setdefault(token.text.lower(), token.text)
    return list(found.values())


def _follows_up(text: str, short: int) -> bool:
    named = salient_words(text)
    tokens = [one.low for one in Reading(text[:MAX_TEXT]).tokens if one.kind == "word"]
    leans = any(one in words.PRONOUNS for one in tokens[:4])
    return len(named) <= short and (leans or len(named) < short)


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
            replace(one, text=text, role="rewrite")
            if one.role == "request"
            and (text := condensed(one.text, history, self.short, self.carried)) != one.text
            else one
            for one in queries
        ]
