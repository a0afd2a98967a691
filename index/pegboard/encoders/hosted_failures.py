"""What went wrong at a hosted encoder: whether another attempt may succeed, how long to wait, and what to tell the reader.

Errors are told apart by status and class name, so nothing here imports LiteLLM. Providers quote keys in their messages; `scrubbed` takes
out everything that looks like one before a message leaves.
"""

import math
import os
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

__all__ = ["NEXT_STEPS", "failure_kind", "may_pass", "retry_after", "scrubbed"]

# What each kind of failure asks of the reader. A field in braces is an attribute of the call.
NEXT_STEPS = {
    "key": "Set the environment variable {key} to a key that may use this model.",
    "model": "Check the model's name and api_base.",
    "length": "This model reads less than max_tokens ({max_tokens}): lower it.",
    "request": "Sending it again would not help: check dimensions, batch_size ({batch_size}) and max_tokens ({max_tokens}).",
    "quota": "The account has no quota left: add some, or use another key.",
    "rate": "Still refused after {attempts}: run again later, or with a lower batch_size ({batch_size}).",
    "timeout": "No answer after {attempts}: raise timeout ({timeout} s) or lower batch_size ({batch_size}).",
    "server": "No success after {attempts}: check that the server is up, and run again.",
    "reply": "Check that api_base is the address of an embeddings server.",
}

_PASSING = {"rate", "timeout", "server"}
_NO_KEY = re.compile(r"missing\b.{0,30}\b(credentials|api.key)", re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient_quota|billing", re.IGNORECASE)
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET_SHAPES = [
    (re.compile(r"\b(sk|pk|pa|hf|gsk|xai|key)[-_][\w*.-]{8,}"), "[key]"),
    (re.compile(r"\bAIza[\w-]{20,}"), "[key]"),
    (re.compile(r"\b(Bearer|Basic)\s+[^\s'\",}]+", re.IGNORECASE), r"\1 [key]"),
    (re.compile(r"://[^/@\s]+@"), "://[key]@"),
    (re.compile(r"([?&](?:api[-_]?key|key|token|sig)=)[^&\s'\"]+", re.IGNORECASE), r"\1[key]"),
]


def failure_kind(error: BaseException) -> str:
    """Which kind of failure this is: a key of NEXT_STEPS."""
    names = {base.__name__ for base in type(error).__mro__}
    status: Any = getattr(error, "status_code", None)
    if "ContextWindowExceededError" in names:
        return "length"
    # Without a key, the OpenAI client raises before it sends anything, and LiteLLM files that under 500.
    if status in (401, 403) or _NO_KEY.search(str(error)):
        return "key"
    if status == 404:
        return "model"
    if status in (402, 429):
        return "quota" if status == 402 or _NO_QUOTA.search(str(error)) else "rate"
    if status in (408, 504):
        return "timeout"
    if "BadRequestError" in names or (isinstance(status, int) and 400 <= status < 500):
        return "request"
    return "server" if isinstance(status, int) and status >= 500 else "reply"


def may_pass(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    return failure_kind(error) in _PASSING


def retry_after(error: BaseException | None) -> float | None:
    """The seconds that the server asks to wait, from a Retry-After of either form (RFC 9110, section 10.2.3); None if it asks nothing."""
    headers: Any = getattr(error, "litellm_response_headers", None) or {}
    value = str(headers.get("retry-after") or "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (moment - datetime.now(moment.tzinfo or UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def scrubbed(text: str, limit: int = 400) -> str:
    """The text on one line of at most `limit` characters, without keys: those of the environment, and whatever has the shape of one."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET_NAME.search(name):
            text = text.replace(value, f"[{name}]")
    for shape, replacement in _SECRET_SHAPES:
        text = shape.sub(replacement, text)
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}..."
