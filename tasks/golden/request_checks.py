"""Whether a request that an LLM wrote can be a golden query. What does not pass is left out, and
counted by its reason.

The reasons are those of `tasks/enrichment/replies.py`, and besides:
    copies-description   six words in a row are those of a tool's description
    names-itself         the name of a tool of three words and more, in a row
    duplicate            nearly the request of another query
"""

from collections.abc import Sequence

from pegboard.records import Tool
from pegboard.search.text import identifier_words, tokenize
from tasks.enrichment.replies import Subject, judge
from tasks.enrichment.reply_checks import near_duplicate, word_set, words_in
from tasks.enrichment.reply_names import OtherNames
from tasks.enrichment.reply_verdict import DUPLICATE, NAMES_ITSELF

COPIES_DESCRIPTION = "copies-description"
RUN = 6
"""Words in a row shared with a description from which on a request is a copy of it."""
NAME_WORDS = 3
"""Words of a name that nobody says in a row by chance; `list files` is what people say."""


def checked_request(
    raw: str,
    finish_reason: str,
    tools: Sequence[Tool],
    names: OtherNames,
    instructions: str,
    language: str | None = None,
) -> tuple[str | None, str]:
    """The request of a reply and "", or None and the reason why it cannot be used.

    Args:
        tools: that the request is to need.
        names: of all tools.
        instructions: the prompt's text, for noticing replies that repeat it.
        language: the code that was asked for; None holds the request against the language of the
            descriptions.
    """
    asked = [
        text
        for tool in tools
        for text in (*tool.examples, *(tool.enrichment.questions if tool.enrichment else ()))
    ]
    subject = Subject(
        product="questions",
        name=tools[0].name,
        description=" ".join(tool.description for tool in tools),
        examples=tuple(asked),
        other_names=names,
        instructions=instructions,
        language=language,
        count=1,
    )
    verdict = judge("questions", raw, finish_reason, subject)
    if verdict.value is None:
        return None, verdict.reason
    request: str = verdict.value[0]
    if any(_shares_run(request, tool.description) for tool in tools):
        return None, COPIES_DESCRIPTION
    if any(_says_name(request, tool.name) for tool in tools):
        return None, NAMES_ITSELF
    return request, ""


def new_among(request: str, seen: list[frozenset[str]]) -> str:
    """Why a request is none beside those whose words are given, to which its own are added; "" if
    it is one.
    """
    words = word_set(request)
    if near_duplicate(words, seen):
        return DUPLICATE
    seen.append(words)
    return ""


def _shares_run(text: str, description: str) -> bool:
    return bool(_runs(words_in(text)) & _runs(words_in(description)))


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}


def _says_name(text: str, name: str) -> bool:
    words = tokenize(identifier_words(name))
    return len(words) >= NAME_WORDS and f" {' '.join(words)} " in f" {' '.join(tokenize(text))} "
