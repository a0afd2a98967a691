"""Failures of hosted models: their kind, when to retry, what to do, and that no key is shown."""

import asyncio

import pytest

from pegboard.encoders import load_encoder
from pegboard.errors import CompletionError, EncoderError
from pegboard.llm import ChatRequest, Message
from pegboard.llm.failures import failure_kind, retry_after
from pegboard.llm.hosted import HostedCompleter
from tests.openai_server import (
    KEY,
    LITELLM_WARNINGS,
    break_off,
    chat,
    failure,
    hang,
    hang_up,
    trickle,
)

pytestmark = [*LITELLM_WARNINGS, pytest.mark.usefixtures("openai_key")]

TOO_LONG = "This model's maximum context length is 512 tokens"
REFUSALS = [
    (failure(400), "request"),
    (failure(400, TOO_LONG), "length"),
    (failure(400, "was filtered", "content_filter"), "content"),
    (failure(400, "response_format is not supported"), "structured"),
    (failure(401), "key"),
    (failure(403), "key"),
    (failure(404), "model"),
    (failure(408), "timeout"),
    (failure(413), "request"),
    (failure(422), "request"),
    (failure(429), "rate"),
    (failure(429, code="insufficient_quota"), "quota"),
    (failure(500), "server"),
    (failure(503), "server"),
    (failure(504), "timeout"),
    (failure(529), "server"),
]
ADVICE = {
    "request": "Sending it again would not help: check that the model takes such options",
    "structured": 'Set structured = "text" under [enrich]',
    "length": "reads less than that",
    "content": "refuses this text",
    "key": "Name the environment variable that holds its key as api_key_env",
    "model": "Check the model's name and api_base",
    "timeout": "Raise timeout (600 s)",
    "rate": "Run again later, or with a lower concurrency",
    "quota": "no quota left",
    "server": "Check that the server is up",
}
RETRIED = {"timeout", "rate", "server"}


def refusal(server, name="openai/m", text="hello", **options):
    """The error of a chat that must fail, with no vendor's error behind it and no key in it."""
    completer = HostedCompleter(name, **{"api_base": server.url, "timeout": 600, **options})

    async def run():
        request = ChatRequest(messages=(Message("user", text),), max_tokens=9)
        try:
            await completer.complete(request)
        finally:
            await completer.aclose()

    with pytest.raises(CompletionError) as caught:
        asyncio.run(run())
    assert KEY not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    return caught.value


# Two clients with different error classes.
@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
@pytest.mark.parametrize(("sent", "kind"), REFUSALS)
def test_a_completer_reports_a_refusal_with_the_next_step_after_one_attempt(
    server, provider, sent, kind
):
    server.script = [sent] * 3

    error = refusal(server, f"{provider}/m")

    assert (error.kind, error.may_pass, error.status) == (kind, kind in RETRIED, sent[0])
    assert f"{provider}/m at {server.url} did not answer: " in str(error)
    assert ADVICE[kind] in str(error)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(("sent", "kind"), REFUSALS)
def test_an_encoder_retries_what_may_pass_and_reports_the_rest_at_once(server, sent, kind):
    server.script = [sent] * 9  # LiteLLM's and the OpenAI client's own retries would multiply
    waits = []
    encoder = load_encoder(
        "openai/e", api_base=server.url, timeout=600, attempts=2, sleep=waits.append
    )

    with pytest.raises(EncoderError) as caught:
        encoder.encode(["a"])

    attempts = " in 2 attempts" if kind in RETRIED else ""
    assert f"openai/e at {server.url} did not encode{attempts}: " in str(caught.value)
    assert ADVICE[kind] in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert KEY not in str(caught.value.__context__)
    assert len(server.bodies) == 1 + (kind in RETRIED)
    assert all(0 <= wait <= 30 for wait in waits)


NO_CHOICES = chat()[2] | {"choices": []}
NO_MESSAGE = chat()[2] | {"choices": [{"index": 0, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "sent",
    [
        break_off,
        hang_up,
        (200, {}, b'{"id": "1", "choi'),
        (200, {"Content-Type": "text/html"}, b"<html>Sign in</html>"),
        (200, {}, []),
        (200, {}, {}),
        (200, {}, NO_CHOICES),
        (200, {}, NO_MESSAGE),
        (200, {}, {"error": {"message": "overloaded", "code": 500}}),
    ],
)
def test_a_malformed_reply_is_an_error_that_may_pass(server, sent):
    server.script = [sent]

    error = refusal(server)

    assert error.kind in ("server", "reply")
    assert error.may_pass
    assert len(server.bodies) == 1


@pytest.mark.parametrize("silence", [hang, trickle])
def test_a_reply_that_does_not_end_is_abandoned_after_the_timeout(server, silence):
    server.script = [silence]

    error = refusal(server, timeout=0.3)

    assert (error.kind, error.may_pass) == ("timeout", True)
    assert "Raise timeout (0.3 s)" in str(error)


def test_a_server_that_is_down_may_come_back(server):
    server.server_close()

    error = refusal(server)

    assert (error.kind, error.may_pass) == ("server", True)


def test_text_that_is_not_unicode_is_not_sent(server):
    error = refusal(server, text="\ud800")

    assert (error.kind, error.may_pass) == ("request", False)
    assert server.bodies == []


def test_the_servers_wait_is_part_of_the_error(server):
    server.script = [failure(429, Retry_After="7")]

    error = refusal(server)

    assert error.retry_after == 7
    assert "the server asks to wait 7 s" in str(error)


class VendorError(Exception):
    """As LiteLLM and the OpenAI client beneath it raise them; each has its place for headers."""

    def __init__(self, message="no", status=None, headers=None):
        super().__init__(message)
        self.status_code = status
        self.litellm_response_headers = headers


class ContextWindowExceededError(VendorError):
    pass


QUOTA = "You exceeded your current quota, please check your plan and billing details"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (VendorError(f"{QUOTA}. Please retry in 34.07s.", 429), "rate"),
        (VendorError(QUOTA, 429, {"retry-after": "3"}), "rate"),
        (ContextWindowExceededError("no", 400), "length"),
        (VendorError("Missing credentials. Please pass an `api_key`", 500), "key"),
        (TimeoutError(), "timeout"),
        (VendorError("what is this", 200), "reply"),
    ],
)
def test_the_kind_of_a_failure_follows_from_its_status_class_and_message(error, kind):
    assert failure_kind(error) == kind


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": " 1.5 "}, "no", 1.5),
        ({"retry-after": "-3"}, "no", 0),
        ({"retry-after": "inf"}, "no", None),
        ({"retry-after": "7"}, "Please try again in 20s", 7),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "no", 0),
        (None, "Rate limit reached. Please try again in 20s.", 20),
        (None, "Please try again in 6m0s.", None),
    ],
)
def test_the_wait_is_read_from_the_header_or_the_message(headers, message, seconds):
    assert retry_after(VendorError(message, 429, headers)) == seconds
