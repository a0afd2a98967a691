"""Which HTTP and network failures may pass, and how long a server asks to wait."""

import math
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed later."""


def is_transient_network(error: BaseException) -> bool:
    """Return whether an error of an HTTP client or socket may pass.

    Invalid requests and certificates that do not verify do not pass.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return False
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__ not in ("UnsupportedProtocol", "LocalProtocolError")


def retry_after_seconds(value: str) -> float | None:
    """Return the seconds from now that a Retry-After header names, in seconds or as a date.

    RFC 9110, section 10.2.3. Returns None for an empty or invalid value, and 0 for a past date.
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (moment - datetime.now(moment.tzinfo or UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
