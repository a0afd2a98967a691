"""Lists of a reply, item by item: requests, topics, notes on arguments, verdicts on candidates.

What does not pass is dropped with its reason."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pegboard.redaction import redact_credentials
from pegboard.search.text import identifier_words
from tasks.enrichment.near_duplicates import near_duplicate, word_set
from tasks.enrichment.products import ArgumentNote, CandidateVerdict
from tasks.enrichment.text_checks import (
    copies_prompt,
    is_identifier,
    is_refusal,
    normalised,
)
from tasks.enrichment.verdict import (
    CREDENTIAL,
    DUPLICATE,
    EMPTY,
    NAMES_ITSELF,
    OTHER_TOOL,
    PROMPT_COPY,
    REFUSAL,
    REPEATS_EXAMPLE,
    SCHEMA,
    SURPLUS,
    TOO_LONG,
    TOO_SHORT,
    UNKNOWN_ARGUMENT,
    Dropped,
    Rejection,
    Subject,
)

QUESTION_CHARACTERS = (6, 400)
"""Shorter ones are single words; an encoder of 256 tokens would cut longer ones."""
TOPIC_CHARACTERS = (2, 60)
TOPIC_WORDS = 7
"""The prompt allows five; compounds count differently."""
NOTE_CHARACTERS = (3, 400)
SHOWN_CHARACTERS = 200
"""Characters of a dropped item in reports."""


def accept_items(items: Sequence[str], subject: Subject) -> tuple[list[str], Dropped]:
    """Return the requests or topics that pass, in their order, and those that do not.

    Raises:
        Rejection: none is left.
    """
    sieve = _Sieve()
    seen: list[frozenset[str]] = []
    examples = [word_set(example) for example in subject.examples]
    for number, item in enumerate(items):
        text = " ".join(item.split())
        words = word_set(text)
        reason = _check_item(text, subject)
        if reason is None and near_duplicate(words, examples):
            reason = REPEATS_EXAMPLE
        if reason is None and near_duplicate(words, seen):
            reason = DUPLICATE
        if reason is None and subject.count and len(sieve.accepted) >= subject.count:
            reason = SURPLUS
        if sieve.add(number, text, text, reason):
            seen.append(words)
    accepted, dropped = sieve.result()
    return list(accepted.values()), dropped


def accept_notes(notes: Sequence[ArgumentNote], subject: Subject) -> tuple[dict[str, str], Dropped]:
    """Return the notes that pass, in the order of the tool's arguments, and those that do not.

    Raises:
        Rejection: a note is on an argument that the tool does not have, or none is left.
    """
    if unknown := [note.name for note in notes if note.name.strip("` ") not in subject.arguments]:
        raise Rejection(
            UNKNOWN_ARGUMENT,
            f"{len(unknown)} of its names do not stand under `arguments` in the data.",
        )
    sieve = _Sieve()
    for note in notes:
        name, text = note.name.strip("` "), " ".join(note.note.split())
        reason = _length(text, NOTE_CHARACTERS) or check_text(text, subject)
        if reason is None and normalised(text) in (
            normalised(name),
            normalised(identifier_words(name)),
        ):
            reason = TOO_SHORT
        sieve.add(name, text, f"{name}: {text}", reason)
    accepted, dropped = sieve.result()
    return {name: accepted[name] for name in subject.arguments if name in accepted}, dropped


def accept_verdicts(
    verdicts: Sequence[CandidateVerdict], subject: Subject
) -> tuple[list[dict[str, Any]], Dropped]:
    """Return the verdicts that pass, in the candidates' order, and those that do not.

    Raises:
        Rejection: a verdict is on a candidate that was not shown, or none is left.
    """
    if unknown := [
        verdict.number for verdict in verdicts if not 0 < verdict.number <= len(subject.candidates)
    ]:
        raise Rejection(SCHEMA, f"{len(unknown)} of its numbers are not those of a candidate.")
    sieve = _Sieve()
    for verdict in verdicts:
        text = " ".join(verdict.reason.split())
        reason = _length(text, NOTE_CHARACTERS) or check_text(text, subject, subject.neighbours)
        tool, parameter = subject.candidates[verdict.number - 1]
        judged = {"needed": verdict.needed, "direct": verdict.direct, "reason": text}
        value = {"tool": tool, "parameter": parameter, **judged}
        sieve.add(verdict.number, value, f"{verdict.number}: {text}", reason)
    accepted, dropped = sieve.result()
    return [accepted[number] for number in sorted(accepted)], dropped


class _Sieve:
    """Collects the items of a list that pass, and those that do not with their reasons."""

    def __init__(self) -> None:
        self.accepted: dict[Any, Any] = {}
        self._dropped: list[tuple[str, str]] = []

    def add(self, key: object, value: object, text: str, reason: str | None) -> bool:
        """Accept a value without a reason against it, once per key; return whether it was."""
        reason = reason or (DUPLICATE if key in self.accepted else None)
        if reason is None:
            self.accepted[key] = value
        else:
            self._dropped.append((redact_credentials(text)[:SHOWN_CHARACTERS], reason))
        return reason is None

    def result(self) -> tuple[dict[Any, Any], Dropped]:
        """Return what was accepted and dropped; raise Rejection if nothing was accepted."""
        if self.accepted:
            return self.accepted, tuple(self._dropped)
        reasons = Counter(reason for _, reason in self._dropped)
        if not reasons:
            raise Rejection(EMPTY)
        message = f"None of its {len(self._dropped)} items can be used."
        raise Rejection(reasons.most_common(1)[0][0], message, tuple(self._dropped))


def check_text(text: str, subject: Subject, allowed: Sequence[str] = ()) -> str | None:
    """Return why a text is not allowed in any reply; None if it is.

    Args:
        allowed: tool names that may stand in it, besides its own and those of its arguments.
    """
    if is_refusal(text):
        return REFUSAL
    if copies_prompt(text, subject.description):
        return PROMPT_COPY
    if redact_credentials(text) != text:
        return CREDENTIAL
    if subject.tool_names is not None:
        own = (subject.name, *subject.arguments, *allowed)
        named = subject.tool_names.find(text, own)
        # A note may say where its value comes from, if the catalog says so.
        if named is not None and not (
            subject.product == "arguments" and named in subject.description
        ):
            return OTHER_TOOL
    return None


def _check_item(text: str, subject: Subject) -> str | None:
    if subject.product == "topics":
        reason = _length(text, TOPIC_CHARACTERS) or (
            TOO_LONG if len(text.split()) > TOPIC_WORDS else None
        )
    else:
        reason = _length(text, QUESTION_CHARACTERS)
        if reason is None and text.isascii() and len(text.split()) < 2:
            reason = TOO_SHORT
    reason = reason or check_text(text, subject)
    if (
        reason is None
        and is_identifier(subject.name)
        and subject.name.casefold() in text.casefold()
    ):
        return NAMES_ITSELF
    return reason


def _length(text: str, bounds: tuple[int, int]) -> str | None:
    least, most = bounds
    if not text.isascii():
        least = min(least, 2)  # a Chinese word has two characters
    return TOO_SHORT if len(text) < least else TOO_LONG if len(text) > most else None
