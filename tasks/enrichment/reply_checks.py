"""What single texts of a reply are checked for: refusals, copies of the prompt, near-duplicates,
length.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from pegboard.search.text import tokenize
from tasks.enrichment.products import REPLIES, ArgumentNote, Avoid

RUN = 12
"""Words in a row shared with the prompt from which on a text is a copy: shorter runs are turns of
phrase.
"""
NEAR = 0.9
"""Jaccard similarity of two word sets from which on two requests are the same: one word in ten
differs.
"""

_CANNOT = (
    r"(?:can ?not|can['’]?t|am (?:not able|unable) to|['’]m (?:not able|unable) "
    r"to|won['’]?t be able to|must decline to|am not allowed to)"
)
_DO = r"(?:assist|help|comply|provide|fulfil+|generate|create|produce|answer|continue|complete|process|describe|write|do|engage)"
_THAT = r"(?:(?:you|with|on|to|a|an|the|any|such|this|that|your|these|those)\s+){0,3}(?:request|that|this|description|questions?|topics?|content|task|information|json|response|answer|instructions?)"
_REFUSAL = re.compile(
    rf"\W*(?:"
    rf"(?:(?:i['’]?m|i am|we "
    rf"are)\s+(?:really\s+|very\s+|so\s+)?(?:sorry|afraid)|(?:my\s+)?apologies|i "
    rf"apologi[sz]e|sorry|unfortunately|regrettably)\b[^.\n]{{0,60}}?\b(?:i|we)\s*{_CANNOT}\s+{_DO}\b"
    rf"|i\s*{_CANNOT}\s+{_DO}\s+{_THAT}\b"
    r"|as an? (?:ai|artificial intelligence|(?:large )?language model)\b[^.\n]{0,30}\b(?:i|my)\b"
    r"|i(?:['’]m| am) (?:just )?an? (?:ai|(?:large )?language model)\b"
    r"|(?:there is |i have )?(?:not enough|insufficient) information (?:is |was "
    r")?(?:provided|given|available|to (?:describe|write|generate|determine|answer))"
    r"|(?:es tut mir leid|tut mir leid|entschuldigung|leider)\b[^.\n]{0,40}\b(?:kann ich|ich "
    r"kann)\b[^.\n]{0,60}\bnicht\b|ich kann (?:ihnen |dir )?(?:diese|bei "
    r"dieser|dabei|das)\b[^.\n]{0,40}\bnicht\b"
    r"|(?:je suis )?désolée?\b[^.\n]{0,40}\bje ne (?:peux|suis)\b|je ne (?:peux|suis) pas (?:en "
    r"mesure |capable )?(?:de |d['’])?(?:répondre|vous aider|aider|fournir|traiter)"
    r"|lo siento\b[^.\n]{0,40}\bno (?:puedo|me es posible)\b|no puedo "
    r"(?:ayudar|cumplir|proporcionar|responder|generar)"
    r"|(?:desculpe|lamento|sinto muito)\b[^.\n]{0,40}\bnão (?:posso|consigo)\b|não posso "
    r"(?:ajudar|fornecer|atender|responder|gerar)"
    r"|mi dispiace\b[^.\n]{0,40}\bnon posso\b|non posso "
    r"(?:aiutar|fornire|rispondere|generare|soddisfare)"
    r"|(?:helaas|het spijt me)\b[^.\n]{0,40}\bkan ik\b[^.\n]{0,40}\bniet\b"
    r"|(?:извините|к сожалению|простите)[^.\n]{0,30}\bя не могу\b|я не могу "
    r"(?:помочь|выполнить|ответить|предоставить)"
    r"|(?:很?抱歉|对不起|不好意思)[^。\n]{0,12}(?:我)?(?:无法|不能|没有办法)|我(?:无法|不能)(?:提供|完成|回答|帮助|协助|满足|处理)"
    r"|申し訳(?:ありません|ございません)[^。\n]{0,40}(?:できません|いたしかねます|お答えできません)"
    r"|죄송(?:합니다|하지만)[^.\n]{0,40}(?:수 없습니다|어렵습니다)"
    r")"
)
_FENCE = re.compile(
    r"<data label=|</data>|\\u003c|\{%|\[credential\]|\[cut\]"
    r"|\{\{ *(?:tool|neighbours|questions|agent|tools|examples|context|language|count|schema|problem) *\}\}"
)
_PLACEHOLDERS = frozenset(
    (
        "string",
        "text",
        "note",
        "question",
        "topic",
        "description",
        "name",
        "argument",
        "n a",
        "none",
        "null",
        "tbd",
        "todo",
    )
)
_ANGLES = re.compile(r"\s*[<\[{]\s*[\w\s.,'-]{1,60}[>\]}]\s*")


def is_refusal(text: str) -> bool:
    """Whether a text begins as a refusal does: not being able, and to answer; a mere "I am sorry
    for being late" is none.
    """
    return _REFUSAL.match(text.lower()) is not None


def is_echo(text: str) -> bool:
    """Whether a text is a placeholder, such as `...` or `<note>`, or holds a mark that only a
    prompt has.
    """
    words = normalised(text)
    return (
        _FENCE.search(text) is not None
        or _ANGLES.fullmatch(text) is not None
        or words in _PLACEHOLDERS
        or words in _schema_words()
        or (not words and bool(text.strip()))
    )


def copies_prompt(text: str, instructions: str, own: str = "") -> bool:
    """Whether `RUN` words in a row are the prompt's, and not also its own: the catalog's, which may
    resemble a few shot.
    """
    words = words_in(text)
    if len(words) < RUN:
        return False
    copied = _runs(instructions).intersection(_windows(words))
    return bool(copied) and not copied <= set(_windows(words_in(own)))


def normalised(text: str) -> str:
    """A text without case and punctuation."""
    return " ".join(words_in(text))


@lru_cache(maxsize=256)
def words_in(text: str) -> tuple[str, ...]:
    """The words of a text in lower case; remembered, since every check of a text asks for them."""
    return tuple(re.findall(r"\w+", text.casefold()))


def word_set(text: str) -> frozenset[str]:
    """The words of a text; in scripts without blanks, pairs of characters."""
    return frozenset(words_in(text) if text.isascii() else tokenize(text))


def near_duplicate(words: frozenset[str], others: Iterable[frozenset[str]]) -> bool:
    """Whether a set of words is nearly that of one of the others."""
    return any(_jaccard(words, other) >= NEAR for other in others)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    # Sets of very different sizes cannot be alike: cheaper than to count.
    if not one or min(len(one), len(other)) < NEAR * max(len(one), len(other)):
        return 0.0
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def _windows(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (words[start : start + RUN] for start in range(len(words) - RUN + 1))


@lru_cache(maxsize=1)
def _schema_words() -> frozenset[str]:
    """What the schemas say of their fields, which some models give back instead of a value."""
    return frozenset(
        normalised(field.description or "")
        for reply in (*REPLIES.values(), Avoid, ArgumentNote)
        for field in reply.model_fields.values()
    )


@lru_cache(maxsize=32)
def _runs(instructions: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_windows(words_in(instructions)))
