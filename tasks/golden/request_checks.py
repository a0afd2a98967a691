"""Whether a request that an LLM wrote can be a golden query.

What does not pass is left out, and counted by its reason: those of `tasks/enrichment/verdict.py`,
and

    copies-description   six words in a row are those of a tool's description
    names-itself         the name of a tool of three words and more, in a row
    duplicate            nearly the request of another query
"""

from collections.abc import Sequence

from pegboard.records import Tool
from pegboard.search.text import identifier_words, tokenize
from tasks.enrichment.near_duplicates import near_duplicate, word_set, words_in
from tasks.enrichment.replies import judge
from tasks.enrichment.text_checks import ToolNames
from tasks.enrichment.verdict import DUPLICATE, NAMES_ITSELF, Subject

COPIES_DESCRIPTION = "copies-description"
COPIED_WORDS = 6
"""Words in a row shared with a description that make a copy."""
MIN_NAME_WORDS = 3
"""Words of a name that nobody says in a row by chance; `list files` is what people say."""


def check_request(
    raw: str,
    finish_reason: str,
    tools: Sequence[Tool],
    names: ToolNames,
    instructions: str,
    language: str | None = None,
) -> tuple[str | None, str]:
    """Return the request of a reply and "", or None and the reason why it cannot be used.

    Args:
        tools: that the request is to need.
        names: of all tools.
        instructions: the prompt's text, to detect replies that repeat it.
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
    if any(_contains_name(request, tool.name) for tool in tools):
        return None, NAMES_ITSELF
    return request, ""


def check_new(request: str, word_sets: list[frozenset[str]]) -> str:
    """Return why a request is no new one; "" if it is, and its words are added to those known."""
    words = word_set(request)
    if near_duplicate(words, word_sets):
        return DUPLICATE
    word_sets.append(words)
    return ""


def _shares_run(text: str, description: str) -> bool:
    return bool(_runs(words_in(text)) & _runs(words_in(description)))


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + COPIED_WORDS]) for at in range(len(words) - COPIED_WORDS + 1)}


def _contains_name(text: str, name: str) -> bool:
    words = tokenize(identifier_words(name))
    name_words = f" {' '.join(words)} "
    return len(words) >= MIN_NAME_WORDS and name_words in f" {' '.join(tokenize(text))} "
