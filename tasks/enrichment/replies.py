"""Judging a reply of an LLM: the value that it yields, or why it has none.

A reply is never mended. What does not pass is rejected as a whole, with a sentence that tells the
model what to correct; of lists (questions, topics, notes on arguments) single items are dropped,
and the whole is rejected only if nothing is left.

Reasons of a rejection:
    truncated          it broke off at the limit of tokens before its JSON was complete
    filtered           the provider withheld it
    empty              there is nothing in it
    not-json           there is no JSON object in it
    schema             the object is not the one that was asked for
    refusal            it declines or apologises instead of answering
    language           it is in another language than was asked for, or than the catalog's own text
    prompt-copy        it repeats the prompt, its marks or its placeholders
    unchanged          the description is the catalog's own
    other-tool         it names a tool that it may not name, or sends to one that was not shown
    unknown-argument   it notes an argument that the tool does not have
    credential         a value in it looks like a credential
    instructions       text in it addresses a model, or hides characters: an injected instruction
    came through too-short, too-long

Reasons for which items are dropped, besides refusal, prompt-copy, other-tool, credential, too-short
and too-long:
    duplicate          the same request or topic twice, or nearly
    repeats-example    it is one of the catalog's own examples
    names-itself       a request with the tool's identifier in it
    surplus            more than were asked for
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from tasks.enrichment.products import (
    REPLIES,
    AgentReply,
    ArgumentsReply,
    Avoid,
    DependenciesReply,
    DescriptionReply,
    QuestionsReply,
    TopicsReply,
    value_of,
)
from tasks.enrichment.reply_checks import is_refusal, normalised
from tasks.enrichment.reply_items import kept_items, kept_notes, kept_verdicts, trouble_in
from tasks.enrichment.reply_language import language_of, same_language
from tasks.enrichment.reply_verdict import (
    EMPTY,
    FILTERED,
    INSTRUCTIONS,
    LANGUAGE,
    NOT_JSON,
    OTHER_TOOL,
    REFUSAL,
    SCHEMA,
    TOO_LONG,
    TOO_SHORT,
    TRUNCATED,
    UNCHANGED,
    Rejection,
    Subject,
    Verdict,
)
from tasks.safety import untrusted
from tasks.settings.enrichment import Product

DESCRIPTION_CHARACTERS = (20, 1_500)
"""120 words were asked for, about 800 characters; an encoder of 256 tokens reads about 1,100."""
AGENT_CHARACTERS = (20, 1_200)
OBJECTS = 20
"""Places at which a JSON object may begin that are tried, when prose stands around it."""
PROBLEMS = 4
"""Differences from the schema that are told to the model at once."""

_SAID = {
    "missing": "is missing",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "model_type": "must be an object",
}

Dropped = tuple[tuple[str, str], ...]


def judge(product: Product, raw: str, finish_reason: str, subject: Subject) -> Verdict:
    """What a reply is good for.

    Args:
        raw: the text as the LLM wrote it; its JSON may stand in a code fence or amid prose.
        finish_reason: `stop`, `length` or `content_filter`.
    """
    try:
        found = _object(raw, finish_reason)
        _refuse_injected(found)
        reply = _validated(product, found, finish_reason)
        value, dropped = _value(reply, subject)
        _refuse_language(value, subject)
    except Rejection as rejection:
        return rejection.verdict
    return Verdict(value, dropped=dropped)


def _object(raw: str, finish_reason: str) -> dict[str, Any]:
    """The first whole JSON object in a reply."""
    cut = finish_reason == "length"
    if finish_reason == "content_filter":
        raise Rejection(FILTERED)
    text = raw.rpartition("</think>")[
        2
    ].strip()  # the thoughts of models that write them into the reply
    if not text:
        raise Rejection(TRUNCATED if cut else EMPTY)
    decoder, start = json.JSONDecoder(strict=False), text.find("{")
    for _ in range(OBJECTS):
        if start < 0:
            break
        try:
            return decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
    if is_refusal(text):
        raise Rejection(REFUSAL)
    raise Rejection(TRUNCATED if cut else NOT_JSON)


def _refuse_injected(found: Mapping[str, Any]) -> None:
    """Looked for before anything is cleaned away, and in every string: one bad item makes the
    others doubtful.
    """
    flags = untrusted.flags_of_text("\n\x00\n".join(_strings(found)))
    if flags - {untrusted.CREDENTIAL}:
        raise Rejection(INSTRUCTIONS)


def _validated(product: Product, found: dict[str, Any], finish_reason: str) -> Any:
    try:
        return REPLIES[product].model_validate(_visible(found))
    except ValidationError as error:
        if any(is_refusal(text) for text in _strings(found)):
            raise Rejection(REFUSAL) from error
        if finish_reason == "length":
            raise Rejection(TRUNCATED) from error
        raise Rejection(SCHEMA, _differences(error)) from error


def _value(reply: Any, subject: Subject) -> tuple[Any, Dropped]:
    match reply:
        case DescriptionReply():
            return _description(reply, subject), ()
        case ArgumentsReply():
            return kept_notes(reply.arguments, subject)
        case QuestionsReply():
            return kept_items(reply.questions, subject)
        case TopicsReply():
            return kept_items(reply.topics, subject)
        case DependenciesReply():
            return kept_verdicts(reply.candidates, subject)
        case AgentReply():
            text = reply.description.strip()
            _refuse_text(text, subject)
            _refuse_length(text, AGENT_CHARACTERS)
            _refuse_unchanged(text, subject)
            return value_of(reply), ()
        case _:
            raise TypeError(f"{type(reply).__name__} is no reply")


def _description(reply: DescriptionReply, subject: Subject) -> dict[str, str]:
    for text in (reply.does, reply.use_when):
        _refuse_text(text, subject)
        if not text.strip():
            raise Rejection(TOO_SHORT)
    cases = [_case(case, subject) for case in reply.avoid if case.when.strip()]
    value = value_of(DescriptionReply(does=reply.does, use_when=reply.use_when, avoid=cases))
    _refuse_length(reply.does, DESCRIPTION_CHARACTERS)
    _refuse_length(value["description"] + value["avoid"], DESCRIPTION_CHARACTERS)
    _refuse_unchanged(value["description"], subject)
    return value


def _case(case: Avoid, subject: Subject) -> Avoid:
    """A case of `avoid`, with the sibling's name as the catalog writes it."""
    _refuse_text(case.when, subject, subject.neighbours)
    instead = case.instead.strip(" `'\"")
    if instead and instead not in subject.neighbours:
        raise Rejection(
            OTHER_TOOL,
            "`instead` may only be a name from the list of siblings, exactly as it stands there, "
            'or "".',
        )
    return Avoid(when=case.when, instead=instead)


def _refuse_text(text: str, subject: Subject, allowed: tuple[str, ...] = ()) -> None:
    if reason := trouble_in(text, subject, allowed):
        shown = reason == OTHER_TOOL and subject.product == "description"
        raise Rejection(
            reason, "Siblings are named in `avoid` only, those that were shown." if shown else ""
        )


def _refuse_length(text: str, bounds: tuple[int, int]) -> None:
    least, most = bounds
    if len(text.strip()) < (least if text.isascii() else least // 3):
        raise Rejection(TOO_SHORT)
    if len(text) > most:
        raise Rejection(TOO_LONG, f"It has {len(text)} characters; at most {most} are allowed.")


def _refuse_unchanged(text: str, subject: Subject) -> None:
    own = normalised(subject.description)
    # Said once more as its own use is no change either.
    if own and normalised(text) in (own, f"{own} {own}"):
        raise Rejection(UNCHANGED)


def _refuse_language(value: Any, subject: Subject) -> None:
    texts = list(value.values()) if isinstance(value, dict) else value
    if subject.product == "dependencies":
        texts = [one["reason"] for one in value]
    found = language_of(" ".join(_strings(texts)))
    expected = subject.language or language_of(subject.description)
    if found is not None and expected is not None and not same_language(found, expected):
        wanted = (
            f"with the code '{subject.language}'"
            if subject.language
            else "of the data's own description"
        )
        raise Rejection(LANGUAGE, f"Write it in the language {wanted}.")


def _differences(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        _difference(problem["type"], problem["loc"], problem["msg"])
        for problem in problems[:PROBLEMS]
    ]
    more = f"; and {len(problems) - PROBLEMS} more" if len(problems) > PROBLEMS else ""
    return f"{'; '.join(lines)}{more}."


def _difference(kind: str, place: tuple[int | str, ...], message: str) -> str:
    if kind == "extra_forbidden":
        # The field's name is the model's own, and would come back to it as ours.
        where = ".".join(map(str, place[:-1]))
        return f"{f'`{where}`' if where else 'the object'} has a field that does not belong there"
    return f"`{'.'.join(map(str, place))}` {_SAID.get(kind, message)}"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (*_strings(key), *_strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return untrusted.visible(value)
    if isinstance(value, dict):
        return {untrusted.visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value
