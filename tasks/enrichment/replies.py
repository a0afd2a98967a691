"""Validate an LLM's reply: return its value, or the reason for a rejection.

A reply is never repaired here. What does not pass is rejected as a whole, with a sentence that
tells the model what to correct; of lists (questions, topics, notes on arguments) single items are
dropped (`reply_items`), and the whole is rejected only if nothing is left. `verdict` has the
reasons."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from pegboard.llm.replies import answer_text, json_objects
from tasks.enrichment.products import (
    REPLIES,
    AgentDescriptionReply,
    ArgumentsReply,
    Avoid,
    DependenciesReply,
    DescriptionReply,
    QuestionsReply,
    TopicsReply,
    value_of,
)
from tasks.enrichment.reply_items import accept_items, accept_notes, accept_verdicts, check_text
from tasks.enrichment.text_checks import is_refusal, normalised, wrong_language
from tasks.enrichment.verdict import (
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
    Dropped,
    Rejection,
    Subject,
    Verdict,
)
from tasks.safety import untrusted
from tasks.safety.untrusted import visible
from tasks.settings.enrichment import Product

DESCRIPTION_CHARACTERS = (20, 1_500)
"""The prompt allows 120 words, about 800 characters; an encoder of 256 tokens reads about 1,100."""
AGENT_CHARACTERS = (20, 1_200)
MAX_DIFFERENCES = 4
"""Differences from the schema that are reported to the model at once."""

_PROBLEMS = {
    "missing": "is missing",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "model_type": "must be an object",
}


def judge(product: Product, raw: str, finish_reason: str, subject: Subject) -> Verdict:
    """Return the verdict on a reply.

    Args:
        raw: the text as the LLM wrote it; its JSON may stand in a code fence or amid prose.
        finish_reason: `stop`, `length` or `content_filter`.
    """
    try:
        fields = _json_object(raw, finish_reason)
        _reject_injected(fields)
        reply = _validated(product, fields, finish_reason)
        value, dropped = _checked_value(reply, subject)
        _reject_language(value, subject)
    except Rejection as rejection:
        return rejection.verdict
    return Verdict(value, dropped=dropped)


def _json_object(raw: str, finish_reason: str) -> dict[str, Any]:
    """The first whole JSON object in a reply."""
    truncated = finish_reason == "length"
    if finish_reason == "content_filter":
        raise Rejection(FILTERED)
    text = answer_text(raw)
    if not text:
        raise Rejection(TRUNCATED if truncated else EMPTY)
    if (fields := next(json_objects(raw), None)) is not None:
        return fields
    if is_refusal(text):
        raise Rejection(REFUSAL)
    raise Rejection(TRUNCATED if truncated else NOT_JSON)


def _reject_injected(fields: Mapping[str, Any]) -> None:
    """Check every string before anything is removed: one bad item makes the others doubtful."""
    flags = untrusted.flags_of_text("\n\x00\n".join(_strings(fields)))
    if flags - {untrusted.CREDENTIAL}:
        raise Rejection(INSTRUCTIONS)


def _validated(product: Product, fields: dict[str, Any], finish_reason: str) -> Any:
    try:
        return REPLIES[product].model_validate(_visible(fields))
    except ValidationError as error:
        if finish_reason == "length":
            raise Rejection(TRUNCATED) from error
        raise Rejection(SCHEMA, _differences(error)) from error


def _checked_value(reply: Any, subject: Subject) -> tuple[Any, Dropped]:
    match reply:
        case DescriptionReply():
            return _description(reply, subject), ()
        case ArgumentsReply():
            return accept_notes(reply.arguments, subject)
        case QuestionsReply():
            return accept_items(reply.questions, subject)
        case TopicsReply():
            return accept_items(reply.topics, subject)
        case DependenciesReply():
            return accept_verdicts(reply.candidates, subject)
        case AgentDescriptionReply():
            text = reply.description.strip()
            _reject_text(text, subject)
            _reject_length(text, AGENT_CHARACTERS)
            _reject_unchanged(text, subject)
            return value_of(reply), ()
        case _:
            raise TypeError(f"{type(reply).__name__} is not a valid reply")


def _description(reply: DescriptionReply, subject: Subject) -> dict[str, str]:
    for text in (reply.does, reply.use_when):
        _reject_text(text, subject)
        if not text.strip():
            raise Rejection(TOO_SHORT)
    cases = [_avoid_case(case, subject) for case in reply.avoid if case.when.strip()]
    value = value_of(DescriptionReply(does=reply.does, use_when=reply.use_when, avoid=cases))
    _reject_length(reply.does, DESCRIPTION_CHARACTERS)
    _reject_length(value["description"] + value["avoid"], DESCRIPTION_CHARACTERS)
    _reject_unchanged(value["description"], subject)
    return value


def _avoid_case(case: Avoid, subject: Subject) -> Avoid:
    """A case of `avoid`, with the sibling's name as the catalog writes it."""
    _reject_text(case.when, subject, subject.neighbours)
    instead = case.instead.strip(" `'\"")
    if instead and instead not in subject.neighbours:
        raise Rejection(
            OTHER_TOOL,
            "`instead` may only be a name from the list of siblings, exactly as it stands there, "
            'or "".',
        )
    return Avoid(when=case.when, instead=instead)


def _reject_text(text: str, subject: Subject, allowed: tuple[str, ...] = ()) -> None:
    if reason := check_text(text, subject, allowed):
        shown = reason == OTHER_TOOL and subject.product == "description"
        raise Rejection(
            reason, "Siblings are named in `avoid` only, those that were shown." if shown else ""
        )


def _reject_length(text: str, bounds: tuple[int, int]) -> None:
    least, most = bounds
    if len(text.strip()) < (least if text.isascii() else least // 3):
        raise Rejection(TOO_SHORT)
    if len(text) > most:
        raise Rejection(TOO_LONG, f"It has {len(text)} characters; at most {most} are allowed.")


def _reject_unchanged(text: str, subject: Subject) -> None:
    own = normalised(subject.description)
    # Repeated as its own use it is no change either.
    if own and normalised(text) in (own, f"{own} {own}"):
        raise Rejection(UNCHANGED)


def _reject_language(value: Any, subject: Subject) -> None:
    texts = list(value.values()) if isinstance(value, dict) else value
    if subject.product == "dependencies":
        texts = [verdict["reason"] for verdict in value]
    if wrong_language(" ".join(_strings(texts)), subject.language, subject.description):
        code = f"with the code '{subject.language}'"
        which = code if subject.language else "of the data's own description"
        raise Rejection(LANGUAGE, f"Write it in the language {which}.")


def _differences(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    shown = problems[:MAX_DIFFERENCES]
    lines = [_difference(problem["type"], problem["loc"], problem["msg"]) for problem in shown]
    more = f"; and {len(problems) - len(shown)} more" if len(problems) > len(shown) else ""
    return f"{'; '.join(lines)}{more}."


def _difference(kind: str, place: tuple[int | str, ...], message: str) -> str:
    if kind == "extra_forbidden":
        # The field's name is the model's own, and would come back to it as ours.
        where = ".".join(map(str, place[:-1]))
        return f"{f'`{where}`' if where else 'the object'} has a field that does not belong there"
    return f"`{'.'.join(map(str, place))}` {_PROBLEMS.get(kind, message)}"


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
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list) else value
