"""Failures of hosted models: their kinds, what each asks of the reader, and when to call again.

Errors are told apart by status and class name, so nothing here imports LiteLLM. Nothing else
retries: LiteLLM and the clients beneath it are told not to, since their attempts would multiply.
"""

import re
from collections.abc import Callable
from typing import Any, Literal

from pegboard.errors import CompletionError
from pegboard.extras import import_extra
from pegboard.transient import retry_after_seconds

NEXT_STEPS = {
    "model": "Check the model's name and api_base.",
    "quota": "The account has no quota left: add some, or use another key.",
    "content": "The provider refuses this text; other texts are not concerned.",
    "key": "{key}",
    "length": "This model reads less than that: take one that reads more, send less, or lower "
    "max_tokens.",
    "request": "Sending it again would not help: check that the model takes such options.",
    "structured": 'This model or server takes no response_format. Set structured = "text" under '
    "[enrich], which writes the schema into the prompt; elsewhere use another model.",
    "completion_tokens": "It refuses max_tokens and max_completion_tokens alike: check which limit "
    "of a reply this model takes.",
    "variable": "Set it, or take it out of the options.",
    "wait": "Run again then, or raise max_wait.",
    "spent": "Reasoning counts, too: raise max_reply_tokens, or lower reasoning_effort in options.",
    "rate": "Run again later, or with a lower concurrency or batch_size.",
    "timeout": "Raise timeout ({timeout:g} s), or lower concurrency, batch_size or max_tokens.",
    "server": "Check that the server is up, and run again.",
    "reply": "Check that api_base is the address of such a server, and run again.",
}
"""What each kind of failure asks of the reader; names in braces are values of the call."""

_KINDS = {
    **dict.fromkeys((401, 403), "key"),
    **dict.fromkeys((408, 504), "timeout"),
    **{402: "quota", 404: "model", 429: "rate"},
}
_PASSING = {"rate", "timeout", "server"}
_TOO_LONG = re.compile(
    r"context.length|maximum context|too many tokens|prompt is too long", re.IGNORECASE
)
_NO_KEY = re.compile(r"missing\b.{0,30}\b(credentials|api.key)", re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient_quota|exceeded your .{0,10}quota|billing", re.IGNORECASE)
# Google says so of its limits by the minute too, and when to come back in the text alone.
_COME_BACK = re.compile(
    r"\b(?:re)?try (?:again )?in (\d+(?:\.\d+)?) ?s(?:econds?)?\b", re.IGNORECASE
)
_FILTERED = re.compile(r"content.?(filter|policy|management)", re.IGNORECASE)
_NO_SCHEMA = re.compile(r"response.?format|json.?schema|structured.?output", re.IGNORECASE)
_INVALID_REQUEST = (400, 422)


def failure_kind(error: BaseException) -> str:
    """Return the kind of failure: a key of NEXT_STEPS."""
    if isinstance(error, CompletionError):
        return error.kind
    names = {base.__name__ for base in type(error).__mro__}
    status: Any = getattr(error, "status_code", None)
    if "APIResponseValidationError" in names:
        return "reply"
    message = f"{error} {_body(error)}"
    if "ContextWindowExceededError" in names or (status == 400 and _TOO_LONG.search(message)):
        return "length"
    if "ContentPolicyViolationError" in names or (status == 400 and _FILTERED.search(message)):
        return "content"
    if status in _INVALID_REQUEST and "max_completion_tokens" in message:
        return "completion_tokens"
    if status in _INVALID_REQUEST and _NO_SCHEMA.search(message):
        return "structured"
    # Without a key, the OpenAI client raises before it sends anything, and LiteLLM files that under
    # 500.
    if _NO_KEY.search(message):
        return "key"
    if status == 429 and _NO_QUOTA.search(message) and retry_after(error) is None:
        return "quota"
    if status in _KINDS:
        return _KINDS[status]
    if names & {"APITimeoutError", "TimeoutError"}:
        return "timeout"
    if names & {"BadRequestError", "UnicodeEncodeError"}:
        return "request"
    if isinstance(status, int) and status >= 400:
        return "request" if status < 500 else "server"
    # 529, which some providers send when they are overloaded, comes as a plain APIError; a refused
    # connection as one of either name.
    return "server" if "APIConnectionError" in names else "reply"


def _body(error: BaseException) -> object:
    """Return the body of the provider's answer, which has its error code: LiteLLM's errors of
    embeddings lack it, and the vendor's error from which they were made has it.
    """
    chain: BaseException | None = error
    while chain is not None:
        if body := getattr(chain, "body", None):
            return body
        chain = chain.__cause__ or chain.__context__
    return ""


def may_pass(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    return error.may_pass if isinstance(error, CompletionError) else failure_kind(error) in _PASSING


def retry_after(error: BaseException | None) -> float | None:
    """Return the seconds of a Retry-After header in either form (RFC 9110,
    section 10.2.3), else what its message says; None if it asks nothing.
    """
    if isinstance(error, CompletionError):
        return error.retry_after
    # LiteLLM keeps a reply's headers in one place, the OpenAI client beneath it in another.
    headers: Any = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", {}
    )
    match = _COME_BACK.search(str(error))
    value = str(headers.get("retry-after") or (match[1] if match else "")).strip()
    return retry_after_seconds(value)


def retrying(
    kind: Literal["AsyncRetrying", "Retrying"],
    attempts: int,
    max_seconds: float,
    sleep: Callable[[float], Any],
    before_sleep: Callable[[Any], Any] | None = None,
) -> Any:
    """Return tenacity's object of that kind, which makes a call until it succeeds and raises its
    last failure as it is.

    Args:
        attempts: calls in all.
        max_seconds: no wait ends later than this after the first attempt, even if the server asks
            for it: quotas by the hour and the day answer with such times.
        sleep: waits between attempts.
        before_sleep: called for every failure that is followed by another attempt.
    """
    tenacity = import_extra("tenacity")
    jitter = tenacity.wait_random_exponential(multiplier=0.5, max=30)

    def wait(state: Any) -> float:
        seconds = retry_after(state.outcome.exception())
        return jitter(state) if seconds is None else seconds

    return getattr(tenacity, kind)(
        sleep=sleep,
        before_sleep=before_sleep,
        retry=tenacity.retry_if_exception(may_pass),
        wait=wait,
        stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_before_delay(max_seconds),
        reraise=True,
    )
