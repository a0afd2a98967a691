"""Messages for store errors: the cause and the next step, without secrets."""

import errno
import re
from dataclasses import dataclass

from pegboard.errors import StoreError
from pegboard.text.redaction import redact


@dataclass(frozen=True, slots=True)
class _Failure:
    """A kind of failure.

    Attributes:
        signs: a pattern for the lower-cased messages of Lance, object_store and the stores.
        meaning: the cause, for a message.
        step: the next step, for a message.
        errnos: the file system's error numbers for this failure.
    """

    signs: str
    meaning: str
    step: str
    errnos: tuple[int, ...] = ()


_NO_CREDENTIALS = _Failure(
    r"169\.254\.169\.254|169\.254\.170\.2|metadata\.google|account must be specified"
    r"|no storage account configured|unable to (?:open|decode) service account"
    r"|no providers in chain|credentialsnotloaded|no credentials",
    "there are no credentials for it",
    "Set them in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://, "
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY for az://, GOOGLE_SERVICE_ACCOUNT "
    "(a file) for gs://; or name them in [board.storage]",
)
_REFUSED_CREDENTIALS = _Failure(
    r"accessdenied|invalidaccesskeyid|signaturedoesnotmatch|expiredtoken|invalidtoken"
    r"|authenticationfailed|authorizationfailure|status: 40[13]|code: 40[13]"
    r"|lacked the necessary privileges|not authenticated|unauthenticated|invalid access key",
    "it refuses these credentials",
    "Check the keys, their expiry, and that they may list, read, write and delete there; open "
    "readers and gateways use renewed ones at their next look at the channel",
)
_FAILURES = (
    _Failure(
        r"no space left|os error 28\b|os error 122\b|quota exceeded|insufficientstorage"
        r"|storagefull|status: 507|code: 507",
        "there is no space left",
        "Free some space, or give the store more, and run again",
        (errno.ENOSPC, errno.EDQUOT),
    ),
    _Failure(
        r"file too large|os error 27\b",
        "a file would become larger than is allowed here",
        "Raise the limit of file sizes (ulimit -f), and run again",
        (errno.EFBIG,),
    ),
    _Failure(
        r"read-only file system|os error 30\b",
        "it can only be read",
        "Make it writable, or take another address",
        (errno.EROFS,),
    ),
    _NO_CREDENTIALS,
    _Failure(
        r"configuration key: .* is not valid for store",
        "one of its options is unknown",
        "Correct its name in [board.storage] of the pegboard.toml, or where the caller sets it; "
        "names are those of Rust's object_store, such as aws_region",
    ),
    _Failure(
        r"nosuchbucket|containernotfound|bucket does not exist|container does not exist",
        "there is no such bucket",
        "Make the bucket, or correct the address or the endpoint",
    ),
    _Failure(
        r"failed to resolve region",
        "the bucket's region cannot be found out",
        "Check the bucket's name; set AWS_REGION, or AWS_ENDPOINT_URL for a store of your own",
    ),
    _REFUSED_CREDENTIALS,
    _Failure(
        r"permission denied|operation not permitted|os error 13\b|os error 1\b",
        "permission was denied",
        "Change its permissions, or run as a user who may",
        (errno.EACCES, errno.EPERM),
    ),
    _Failure(
        r"timedout|timed out|kind: timeout|no answer within",
        "it does not answer in time",
        "Check the endpoint and the network; the storage options open_timeout, read_timeout and "
        "connect_timeout say how long is waited",
    ),
    _Failure(
        r"connectionrefused|connection refused|tcp connect error|dns error|failed to lookup"
        r"|no route to host|kind: connect|network is unreachable|error sending request"
        r"|connection reset|unexpectedeof|incompletemessage",
        "it cannot be reached",
        "Check the address, the endpoint and the network",
    ),
    _Failure(
        r"status: (?:429|50[0234])|code: (?:429|50[0234])|slowdown|serverbusy",
        "it is out of order or asks to slow down",
        "Try again in a while",
    ),
)
"""All kinds of failures; the first match counts, so more specific patterns come first."""


_BODY = re.compile(r'body: Some\(\\?"([^"\\<]{3,200})')
_MESSAGE = re.compile(r'message: \\?"([^"\\]{3,200})')
_REPEATED = re.compile(
    r"<(Token-\d{1,3}|AWSAccessKeyId|SignatureProvided|StringToSign|CanonicalRequest)>[^<]*+</\1>"
)
"""Matches the parts of a refused request that S3 repeats in its answer."""
DAMAGE = re.compile(
    r"not found|no such file|invalid range|too small|failed to fill whole buffer|corrupt|panicked"
    r"|protobuf|encoding|utf-?8|magic|out of (?:range|bounds)|unexpected end|expected type"
    r"|invalid (?:input|argument|user input)|lanceerror"
)
"""Matches Lance's messages about files that are missing or cannot be decoded."""
REBUILD = (
    "`pegboard releases verify` shows which releases are whole, for `pegboard rollback`. To make "
    "all tables again from the lake, move the folder tables/ away and run `pegboard build`"
)
"""The next step for a damaged table."""


def damage_error(where: str, error: BaseException) -> StoreError | None:
    """Return the StoreError for a table that cannot be decoded; None for another failure."""
    if _failure(error) is not None or not DAMAGE.search(str(error).lower()):
        return None
    detail = _detail(error, None)
    return StoreError(
        f"{where} cannot be read: a file of it is damaged or missing ({detail}). {REBUILD}."
    )


def refuses_credentials(error: BaseException) -> bool:
    """Whether the store refused the credentials of a call, or there were none."""
    return _failure(error) in (_REFUSED_CREDENTIALS, _NO_CREDENTIALS)


def explain(error: BaseException) -> tuple[str, str]:
    """Return the cause of a store's error and the next step, both without secrets."""
    failure = _failure(error)
    detail = _detail(error, failure)
    if failure is None:
        step = "Check the address, the credentials in the environment, free space and permissions"
        return detail, step
    return f"{failure.meaning} ({detail})", failure.step


def store_error(where: str, error: BaseException) -> StoreError:
    """Return the StoreError for a failed operation.

    Args:
        where: the beginning of the message.
    """
    meaning, step = explain(error)
    return StoreError(f"{where}: {meaning}. {step}.")


def cleaned(error: Exception) -> Exception:
    """Return the error, or a similar one without its secrets, to be chained as the cause."""
    text = str(error)
    clean = redact(_REPEATED.sub(r"<\1/>", text))
    if clean == text:
        return error
    return FileNotFoundError(clean) if isinstance(error, FileNotFoundError) else RuntimeError(clean)


def _failure(error: BaseException) -> _Failure | None:
    if isinstance(error, OSError):
        for failure in _FAILURES:
            if error.errno in failure.errnos:
                return failure
    text = str(error).lower()
    return next((failure for failure in _FAILURES if re.search(failure.signs, text)), None)


def _detail(error: BaseException, failure: _Failure | None) -> str:
    """Return the store's error code and message if there are any, else the first line of the
    error.
    """
    if isinstance(error, OSError) and error.strerror:
        return redact(error.strerror)
    text = str(error)
    code = re.search(r"<Code>(\w+)</Code>\s*(?:<Message>([^<]{1,200}))?", text)
    if code:
        return redact(f"{code[1]}: {code[2]}" if code[2] else code[1])
    if failure is not _NO_CREDENTIALS and (match := _BODY.search(text) or _MESSAGE.search(text)):
        return redact(match[1])
    of_file_system = failure is not None and failure.errnos
    if of_file_system and (match := re.search(r"([A-Z][\w ,'-]{3,100}) \(os error \d+\)", text)):
        return match[1]
    if match := re.search(r"status: (\d{3})", text):
        return f"HTTP status {match[1]}"
    if re.search(r"(?i)timedout|kind: timeout", text):
        return "no answer"
    return _first_line(text) or type(error).__name__


def _first_line(text: str) -> str:
    """Return the first line without source locations."""
    line = next(iter(text.strip().splitlines()), "").removeprefix("lance error: ")
    line = re.sub(r",? ?(?:location: .*|/\S{1,300}\.rs:\d+(?::\d+)?)", "", line)
    return redact(line)[:300].rstrip(". ")
