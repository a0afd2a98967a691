"""What a vendor's failure is taken for, when to come back, and what must not leave with its
message.
"""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pegboard.errors import CompletionError
from pegboard.llm.failures import (
    ENCODER_STEPS,
    NEXT_STEPS,
    failure_kind,
    may_pass,
    retry_after,
)


class VendorError(Exception):
    """As the OpenAI client and LiteLLM make them: a status, a body, and headers in one of two
    places.
    """

    def __init__(self, message="no", status=None, body=None, headers=None):
        super().__init__(message)
        self.status_code, self.body, self.litellm_response_headers = status, body, headers


class APITimeoutError(VendorError):
    pass


class APIConnectionError(VendorError):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (VendorError("Please try again in 20s", 429), "rate"),
        (VendorError("no", 429, {"code": "insufficient_quota"}), "quota"),
        (
            VendorError(
                "You exceeded your current quota, please check your strategy and billing details",
                429,
            ),
            "quota",
        ),
        (
            VendorError(
                "You exceeded your current quota, ... billing details. Please retry in 34.07s.", 429
            ),
            "rate",
        ),
        (VendorError("You exceeded your current quota", 429, headers={"retry-after": "3"}), "rate"),
        (VendorError("Payment required", 402), "quota"),
        (VendorError("maximum context length is 8192 tokens", 400), "length"),
        (VendorError("prompt is too long: 9 tokens > 8 maximum", 400), "length"),
        (VendorError("The response was filtered by content management policy", 400), "content"),
        (VendorError("Missing credentials. Please pass an `api_key`", 500), "key"),
        (APITimeoutError("Request timed out."), "timeout"),
        (TimeoutError(), "timeout"),
        (APIConnectionError("Connection error."), "server"),
        (VendorError("overloaded", 529), "server"),
        (VendorError("unprocessable", 422), "request"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), "request"),
        (VendorError("what is this", 200), "reply"),
        (KeyError("content"), "reply"),
        (CompletionError("out of money", kind="budget"), "budget"),
    ],
)
def test_a_failure_is_told_by_its_status_its_class_and_its_words(error, kind):
    assert failure_kind(error) == kind


def test_every_kind_has_a_next_step():
    kinds = {
        "key",
        "model",
        "quota",
        "content",
        "length",
        "request",
        "rate",
        "timeout",
        "server",
        "reply",
    }

    assert set(ENCODER_STEPS) == kinds
    assert set(NEXT_STEPS) == kinds | {"batch"}


def test_an_error_of_our_own_says_itself_whether_it_may_pass():
    assert may_pass(CompletionError("malformed", kind="reply", may_pass=True))
    assert not may_pass(CompletionError("malformed", kind="reply"))
    assert retry_after(CompletionError("busy", kind="rate", may_pass=True, retry_after=9)) == 9


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "7"}, "no", 7),
        ({"retry-after": " 1.5 "}, "no", 1.5),
        ({"retry-after": "-3"}, "no", 0),
        ({"retry-after": "soon"}, "no", None),
        ({"retry-after": "inf"}, "no", None),
        ({"retry-after": "7"}, "Please try again in 20s", 7),
        ({}, "no", None),
        (None, "Rate limit reached. Please try again in 20s.", 20),
        (None, "Please retry in 34.074824s.", 34.074824),
        (None, "Please try again in 6m0s.", None),
    ],
)
def test_a_server_says_when_to_come_back_in_its_header_or_else_in_words(headers, message, seconds):
    assert retry_after(VendorError(message, 429, headers=headers)) == seconds


def test_a_date_to_come_back_at_is_a_number_of_seconds():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)

    assert 30 < retry_after(VendorError(headers={"retry-after": later})) <= 90
    assert retry_after(VendorError(headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})) == 0


def test_headers_are_found_where_the_openai_client_keeps_them():
    error = VendorError(status=429)
    error.response = type("Response", (), {"headers": {"retry-after": "4"}})()

    assert retry_after(error) == 4
