"""What a store's refusal means: one sentence that says what happened, one that says what to do
about it.
"""

import errno
import re

from pegboard.errors import StoreError
from pegboard.redaction import redact

_ERRNOS = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EFBIG: "large",
    errno.EROFS: "read-only",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
}
_SIGNS: tuple[tuple[str, str], ...] = (
    ("full", r"no space left|os error 28\b|os error 122\b|quota "
    r"exceeded|insufficientstorage|storagefull|status: 507|code: 507"),
    ("large", r"file too large|os error 27\b"),
    ("read-only", r"read-only file system|os error 30\b"),
    ("no credentials", r"169\.254\.169\.254|169\.254\.170\.2|metadata\.google|account must be "
    r"specified|no storage account configured"
        r"|unable to (?:open|decode) service account|no providers in "
        r"chain|credentialsnotloaded|no credentials"),
    ("no bucket", r"nosuchbucket|containernotfound|bucket does not exist|container does not exist"),
    ("no region", r"failed to resolve region"),
    ("refused", r"accessdenied|invalidaccesskeyid|signaturedoesnotmatch|expiredtoken|invalidtoken|authenticationfailed"
        r"|authorizationfailure|status: 40[13]|code: 40[13]|lacked the necessary privileges|not "
        r"authenticated|unauthenticated|invalid access key"),
    ("denied", r"permission denied|operation not permitted|os error 13\b|os error 1\b"),
    ("no http", r"badscheme|url scheme is not allowed"),
    ("silent", r"timedout|timed out|kind: timeout|no answer within"),
    ("away", r"connectionrefused|connection refused|tcp connect error|dns error|failed to "
    r"lookup|no route to host|kind: connect"
        r"|network is unreachable|error sending request|connection "
        r"reset|unexpectedeof|incompletemessage"),
    ("busy", r"status: (?:429|50[0234])|code: (?:429|50[0234])|slowdown|serverbusy"),
)  # fmt: skip
"""Kinds of trouble and how they sound in the messages of Lance, object_store and the stores, the
surest signs first.
"""

_SAYINGS: dict[str, tuple[str, str]] = {
    "full": ("there is no space left", "Free some space, or give the store more, and run again"),
    "large": ("a file would become larger than is allowed "
    "here", "Raise the limit of file sizes (ulimit -f), and run again"),
    "read-only": ("it can only be read", "Make it writable, or take another address"),
    "denied": ("permission was denied", "Change its permissions, or run as a user who may"),
    "no credentials": (
        "there are no credentials for it",
        "Set them in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://, "
        "AZURE_STORAGE_ACCOUNT_NAME and "
        "AZURE_STORAGE_ACCOUNT_KEY for az://, GOOGLE_SERVICE_ACCOUNT (a file) for gs://; or name "
        "them in [board.storage]",
    ),
    "no bucket": ("there is no such "
    "bucket", "Make the bucket, or correct the address or the endpoint"),
    "no region": (
        "the bucket's region cannot be found out",
        "Check the bucket's name; set AWS_REGION, or AWS_ENDPOINT_URL for a store of your own",
    ),
    "refused": (
        "it refuses these credentials",
        "Check the keys, their expiry, and that they may list, read, write and delete there",
    ),
    "no http": (
        "its endpoint is http://, which is not allowed",
        "Give the endpoint with https://, or set the storage option allow_http to true",
    ),
    "silent": ("it does not answer in "
    "time", "Check the endpoint and the network; the storage options open_timeout, read_timeout "
        "and connect_timeout say how long is waited"),
    "away": ("it cannot be reached", "Check the address, the endpoint and the network"),
    "busy": ("it is out of order or asks to slow down", "Try again in a while"),
}  # fmt: skip


def explain(error: BaseException) -> tuple[str, str]:
    """What an error of the store means, and the next step; neither holds a secret."""
    kind = _kind(error)
    said = _said(error, kind)
    if kind is None:
        return (
            said,
            "Check the address, the credentials in the environment, free space and permissions",
        )
    what, step = _SAYINGS[kind]
    return f"{what} ({said})", step


def store_error(where: str, error: BaseException) -> StoreError:
    """The StoreError for the failed use of the store at `where`, which begins with what failed."""
    what, step = explain(error)
    return StoreError(f"{where}: {what}. {step}.")


def cleaned(error: Exception) -> Exception:
    """The error to be told as the cause: itself, or one of its kind without the secrets that it
    names.
    """
    text = str(error)
    clean = redact(text)
    if clean == text:
        return error
    return FileNotFoundError(clean) if isinstance(error, FileNotFoundError) else RuntimeError(clean)


def _kind(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return _ERRNOS[error.errno]
    text = str(error).lower()
    return next((kind for kind, signs in _SIGNS if re.search(signs, text)), None)


def _said(error: BaseException, kind: str | None) -> str:
    """The heart of a message: the store's own code and words if there are any, else its first line
    without source locations.
    """
    if isinstance(error, OSError) and error.strerror:
        return redact(error.strerror)
    text = str(error)
    code = re.search(r"<Code>(\w+)</Code>\s*(?:<Message>([^<]{1,200}))?", text)
    if code:
        return redact(f"{code[1]}: {code[2]}" if code[2] else code[1])
    for signs in (
        ()
        if kind == "no credentials"
        else (r'body: Some\(\\?"([^"\\<]{3,200})', r'message: \\?"([^"\\]{3,200})')
    ):
        if found := re.search(signs, text):
            return redact(found[1])
    short = kind in _ERRNOS.values()
    if short and (found := re.search(r"([A-Z][\w ,'-]{3,100}) \(os error \d+\)", text)):
        return found[1]
    if found := re.search(r"status: (\d{3})", text):
        return f"HTTP status {found[1]}"
    if re.search(r"(?i)timedout|kind: timeout", text):
        return "no answer"
    line = next(iter(text.strip().splitlines()), "") or type(error).__name__
    line = line.removeprefix("lance error: ")
    line = re.sub(r",? ?(?:location: .*|/\S+\.rs:\d+(?::\d+)?)", "", line)
    return redact(line)[:300].rstrip(". ")
