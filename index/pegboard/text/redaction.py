"""The project's only redactor: detects secrets in text and replaces them.

A value is secret

- by its shape: a provider's key prefix (`sk-`, `ghp_`, `AKIA`, `SG.`), a JSON Web Token, a PEM
  private key, what follows `Bearer`, the user in an address, a signature in its query;
- by the name before it: `password: X`, `"api_key": "X"`, `?token=X`, `AccountKey=X`;
- by declaration: values that a caller passes or remembers here, and values of environment variables
  with a secret name.

Length alone does not make a value secret: a UUID, hash or identifier stays, unless it follows a
secret name. Addresses and arguments of a server are the exception, since they may contain a key
without a name: see `redact_opaque`.

There are two uses. `redact` is for messages and logs, where false positives are acceptable. Catalog
text is embedded and shown to models, so `redact_credentials` removes only certain credentials:
placeholders (`<your-api-key>`) and text about credentials (`password: at least 8 characters`) stay.
`redact` removes everything that `redact_credentials` removes."""

import os
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

from pegboard.text.secret_values import HIDDEN, SHORTEST_SECRET, SecretValues

MAX_MESSAGE = 100_000
"""Maximum length of a message in characters; the rest is omitted."""

HIDDEN_CREDENTIAL = "[credential]"
"""Replaces a secret in catalog text."""

_SHORTEST_VARIABLE = 8
"""Minimum length in characters of a value that is secret by its environment variable's name."""

_PASSES = 50
"""Maximum number of replacement passes: replacing a value may reveal the next where keys are
adjacent. Bounds the work on hostile text."""

_LOOSE = r"(?=[\w*.-]{0,60}[\d*]|[\w-]{20})[\w*.-]{7,}[\w*-]"
"""Matches the part after a key's prefix in a message, where providers mask keys with dots and
asterisks."""

_KEYS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    # prefixes, what follows in catalog text, what follows in a message
    (("sk-", "pk-", "rk-"), r"(?=[\w-]*\d)[\w-]{16,}", _LOOSE),  # OpenAI, Anthropic, Langfuse
    (("sk_", "pk_", "rk_"), r"(?:live|test|prod)_[A-Za-z0-9]{10,}", _LOOSE),  # Stripe, Clerk
    (("gho_", "ghp_", "ghr_", "ghs_", "ghu_"), r"[A-Za-z0-9]{16,}", _LOOSE),
    (("github_pat_",), r"\w{20,}", _LOOSE),
    (("glpat-",), r"[\w-]{16,}", _LOOSE),
    (("xox",), r"[a-z]-(?=[\w-]*\d)[\w-]{10,}", _LOOSE),  # Slack
    (("xapp-",), r"\d-[\w-]{10,}", _LOOSE),
    (("AKIA", "ASIA"), r"[A-Z0-9]{16}", r"[A-Z0-9]{12,}"),  # AWS
    (("AIza",), r"[\w-]{30,}", r"[\w-]{20,}"),  # Google
    (("ya29.", "GOCSPX-"), r"[\w-]{20,}", _LOOSE),
    (("hf_", "gsk_", "npm_", "r8_", "ntn_", "fw_"), r"(?=\w*\d)[A-Za-z0-9]{20,}", _LOOSE),
    (("dop_v1_",), r"[0-9a-f]{40,}", _LOOSE),
    (("shpat_", "shpca_", "shppa_", "shpss_"), r"[0-9a-fA-F]{32}", _LOOSE),
    (
        ("tvly-", "tvly_", "pplx-", "pplx_", "xai-", "xai_", "nvapi-", "nvapi_"),
        r"(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}",
        _LOOSE,
    ),
    (("lin_api-", "lin_api_"), r"(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}", _LOOSE),
    (("pa-",), r"(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{40,}", _LOOSE),  # Voyage
    (("key-",), r"[0-9a-f]{32}", _LOOSE),  # Mailgun
    (("SG.",), r"[\w-]{16,}\.[\w-]{20,}", r"[\w-]{16,}\.[\w-]{20,}"),  # SendGrid
    (("pypi-",), r"[\w-]{40,}", _LOOSE),
    (("eyJ",), r"[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}", r"[\w-]{8,}(?:\.[\w-]+){0,2}"),  # JWT
)


def _keys(boundary: str, tail: int) -> re.Pattern[str]:
    shapes = (f"(?:{'|'.join(map(re.escape, row[0]))}){row[tail]}" for row in _KEYS)
    return re.compile(f"{boundary}(?:{'|'.join(shapes)})")


_KEY = _keys(r"(?<![\w-])", 1)
_LOOSE_KEY = _keys(r"(?<![A-Za-z0-9])", 2)
_KEY_HINTS = tuple(prefix.lower() for row in _KEYS for prefix in row[0])

_BODY = r"(?:\\[nr]|[\sA-Za-z0-9+/=:,-])"
_PRIVATE = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_BODY}{{40,}}?-----END [A-Z0-9 ]+-----|{_BODY}{{40,}})"
)
_AUTHORIZATION = re.compile(
    r"\b((?i:bearer)|Basic|BASIC)(\s+)(?=[\w.~+/-]*[\d=])([\w.~+/-]{8,}={0,2})"
)
_USER = re.compile(r"(?<=://)([^\s/@:\"'<>]*):([^\s/@\"']+)(?=@)")
_SENSITIVE = (
    r"(?:pass(?:word|wd|phrase|code)|pwd"
    r"|(?:client|app|api|shared|webhook)[-_ ]?secret|secret(?:[-_ ]?(?:access[-_ ]?)?key)?"
    r"|(?:api|access|account|auth|private|subscription|master|encryption)[-_ ]?key"
    r"|(?:access|auth|api|bearer|refresh|session|bot|id)[-_ ]?token|token)"
)
_QUERY = re.compile(
    r"(?i)(?<=[?&])((?:[\w-]*[-_.])?"
    r"(?:token|key|apikey|secret|password|passwd|pwd|sig|signature|credential)=)"
    r"([^\s&#\"'<>`)\]]{6,})"
)
_WORD_START = r"(?:(?<![A-Za-z])|(?-i:(?<=[a-z])(?=[A-Z])))"
_ASSIGNED = re.compile(
    rf"(?i){_WORD_START}({_SENSITIVE}[\"'`]?\s{{0,3}}(?:=>|:=|=|:|\bis\b)\s{{0,3}})"
    r"(?:([\"'`])([^\"'`\s]{5,})\2|([^\s\"'`,;<>(){}]{5,}))"
)
_CREDENTIAL_ARGUMENT = re.compile(rf"(?i)(?:^|[^A-Za-z]|(?-i:(?<=[a-z])(?=[A-Z]))){_SENSITIVE}s?$")
_ASSIGNED_HINT = re.compile(
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|key|token)[\"'`]?\s{0,3}(?:[:=]|is\b)"
)
_QUERY_HINT = re.compile(r"(?:key|token|secret|word|pwd|sig|signature|passwd|credential)=")

_TECHNICAL = re.compile(
    r"(?i)(?:sha|md|aes|rsa|hs|rs|es|base|utf|oauth|int|uint|uuid|float|string|bcrypt|argon|scrypt"
    r"|ed|pbkdf|erc|bep|x|v|p|h|ipv|iso|rfc)[-_]?\d+(?:[-_][a-z]+|\w{0,8})"
    r"|\d{1,4}[-–+]?\d{0,4}(?:[-_ ]?(?:char|bit|byte|digit|hour|minute|day|second)s?\w*)?"
    r"|\d{4}-\d\d-\d\d\S*"
)
"""Matches algorithms, types, lengths and dates: `token: base64`, `password: 8-20 characters`."""

_MASKED = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3,}|…|_{3,}|(?:^|[-_])"
    r"(?:your|my|example|sample|placeholder|redacted|change_?me|insert|todo)(?:$|[-_\d])"
)
_REFERENCE = re.compile(
    r"[$%<{\[(@*/\\.#]|https?:|env[:.]|process\.|os\.|args?\.|self\.|config\.|secrets?\.|vault:"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:[-_.'][^\W\d_]+)*")
_COMMON_PASSWORDS = {"pass", "password", "passwd", "pwd", "secret", "pw", "token", "key"}

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|passcode|pwd|credential|bearer|cookie|signature"
    r"|connection_?string|(?<![a-z])(?:o?auth|authorization|sas|keys?)(?![a-z])"
    r"|(?:api|access|account|auth|private|secret|master)key"
)
_PUBLIC_NAME = re.compile(
    r"[-_](?:file|path|dir|url|uri|sock|env|enabled)$|kms_key_id$|application_credentials$"
    r"|max_tokens$"
)

_IN_MESSAGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r".*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
        HIDDEN,
    ),
    (_LOOSE_KEY, HIDDEN),
    (
        re.compile(
            r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?)(?:"
            r"((?:aws4-hmac-sha256|sharedkey(?:lite)?)\s+)[^\"'\n]+"
            r"|((?:bearer|basic|digest|token)\s+)[^\s\"',}]+|[^\s\"',}]{8,})"
        ),
        rf"\1\2\3{HIDDEN}",
    ),
    (
        re.compile(r"(?i)\b((?:bearer|basic)\s+)(?!auth|token)[\w.~+/=*-]{8,}"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?<=://)[^/\s@\"'<>]+@"), f"{HIDDEN}@"),
    (
        re.compile(
            r"(?i)([?&;](?:[\w-]*(?:key|token|secret|signature|credential|password|passwd|pwd)"
            r"|sig|auth)=)[^&;\s\"'<>)]+"
        ),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(
            rf"(?i){_WORD_START}((?:{_SENSITIVE}|sharedaccesssignature)(?: provided)?[\"']?\s*[:=]"
            r"\s*[\"']?)(?!\d+\b)[\w*.+/=~%-]{7,}[\w*+/=~%-]"
        ),
        rf"\1{HIDDEN}",
    ),
)
"""Further patterns replaced in messages, but not in catalog text, and their replacements."""

_OPAQUE = re.compile(rf"\b{_UUID.pattern}\b|\b(?=\w*\d)(?=\w*[A-Za-z])\w{{24,}}\b")

_remembered: set[str] = set()


def redact(
    text: str, secrets: Iterable[str] = (), *, variables: Collection[str | None] = ()
) -> str:
    """Return a message without secrets: declared, from the environment, by shape and by name.

    Args:
        secrets: values to hide besides the remembered ones.
        variables: environment variables that hold secrets although their names are not secret.
    """
    replacements = dict.fromkeys((*_remembered, *secrets), HIDDEN)
    for name, value in os.environ.items():
        if name in variables:
            hidden = len(value) >= SHORTEST_SECRET
        else:
            hidden = len(value) >= _SHORTEST_VARIABLE and is_secret_name(name)
        if hidden:
            replacements[value] = f"[{name}]"
    return redact_shapes(_shortened(SecretValues(replacements).hide(text)))


def _shortened(text: str) -> str:
    """Return at most the first `MAX_MESSAGE` characters, cut between words: a key that is cut in
    two would not be recognised.
    """
    if len(text) <= MAX_MESSAGE:
        return text
    beginning = text[:MAX_MESSAGE].rpartition(" ")[0]
    return f"{beginning}... ({len(text):,} characters)"


def redact_line(
    text: str,
    limit: int = 400,
    secrets: Iterable[str] = (),
    *,
    variables: Collection[str | None] = (),
) -> str:
    """Return a message as `redact` does, on one line of at most `limit` characters."""
    text = redact(text, secrets, variables=variables)
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else f"{line[:limit]}..."


def redact_shapes(text: str) -> str:
    """Return a message without values that are secret by shape or name; ignores the environment."""
    text = _without_credentials(text, HIDDEN)
    for pattern, replacement in _IN_MESSAGES:
        text = pattern.sub(replacement, text)
    return text


def redact_opaque(text: str) -> str:
    """Return a server's argument or address without secrets by shape or name, UUIDs and random
    words: some servers take their key as an argument or in the path of their address.
    """
    return _OPAQUE.sub(HIDDEN, redact_shapes(text))


def redact_credentials(text: str) -> str:
    """Return catalog text with each certain credential replaced by `[credential]`; idempotent."""
    return _without_credentials(text, HIDDEN_CREDENTIAL)


def remember_secrets(values: Iterable[str]) -> None:
    """Hide these values from every later message of this process."""
    _remembered.update(values)


def opaque_parts(text: str) -> list[str]:
    """List the UUIDs and random words that `redact_opaque` would hide."""
    return _OPAQUE.findall(text)


def is_secret_name(name: str) -> bool:
    """Return whether a variable, option or header of that name holds a secret.

    Names of files, addresses and keys in a key store are not secret.
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return _PUBLIC_NAME.search(words) is None and _SECRET_NAME.search(words) is not None


@lru_cache(maxsize=10_000)
def takes_credential(argument: str) -> bool:
    """Return whether a tool's argument of that name takes a credential: `apiKey`, `db_password`.

    Stricter than `is_secret_name`, since an argument `key` is usually the key of a record.
    """
    return _CREDENTIAL_ARGUMENT.search(argument) is not None


def public_url(url: str) -> str:
    """Return a URL without the parts that may be secret: user, password, query, fragment, and
    UUIDs and random words in the path of a web address.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an invalid URL)"
    path = redact_opaque(parts.path) if parts.scheme in ("http", "https") else parts.path
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))


def _without_credentials(text: str, replacement: str) -> str:
    for _ in range(_PASSES):
        redacted = _replace_credentials(text, replacement)
        if redacted == text:
            break
        text = redacted
    return text


def _replace_credentials(text: str, replacement: str) -> str:
    """Run each pattern whose hint is in the text, which is rare: hints are cheaper to look for."""
    lowered = text.lower()
    if "private key" in lowered:
        text = _PRIVATE.sub(replacement, text)
    if any(hint in lowered for hint in _KEY_HINTS):
        text = _KEY.sub(replacement, text)
    if "bearer" in lowered or "basic" in lowered:
        text = _AUTHORIZATION.sub(lambda match: _redact_authorization(match, replacement), text)
    if "://" in lowered and "@" in lowered:
        text = _USER.sub(lambda match: match[0] if _is_placeholder(match[2]) else replacement, text)
    if _QUERY_HINT.search(lowered):
        text = _QUERY.sub(
            lambda match: _redact_assigned(match, replacement, _is_query_secret), text
        )
    if _ASSIGNED_HINT.search(lowered):
        text = _ASSIGNED.sub(
            lambda match: _redact_assigned(match, replacement, _is_assigned_secret), text
        )
    return text


def _redact_authorization(match: re.Match[str], replacement: str) -> str:
    value = match[3]
    is_prose = _PLAIN_WORD.fullmatch(value.rstrip("=.")) or re.match(
        r"(?i)(?:oauth|jwt|token|auth|key)", value
    )
    if is_prose or _is_placeholder(value):
        return match[0]
    return f"{match[1]}{match[2]}{replacement}"


def _redact_assigned(
    match: re.Match[str], replacement: str, is_secret: Callable[[str, str], bool]
) -> str:
    name, *values = match.groups()
    value = next(value for value in reversed(values) if value is not None)
    bare_value = value.rstrip(".,;:!?)")
    if not is_secret(name, bare_value):
        return match[0]
    quotation = (values[0] or "") if len(values) == 3 and values[1] is not None else ""
    return f"{name}{quotation}{replacement}{value[len(bare_value) :]}{quotation}"


def _is_query_secret(name: str, value: str) -> bool:
    """Return whether a value in an address's query is secret. `key` is often a record's key, so its
    value must be long and contain a digit.
    """
    if _is_placeholder(value) or _UUID.fullmatch(value):
        return False
    if name.lower() == "key=":
        return len(value) >= 12 and any(char.isdigit() for char in value)
    return not value.isdigit()


def _is_assigned_secret(name: str, value: str) -> bool:
    """Return whether a value is secret by the name before it.

    After `password:` any value that is not a word is secret; after a bare `token:`, which may be a
    cryptocurrency's, the value must also be long.
    """
    if _is_placeholder(value) or _TECHNICAL.fullmatch(value) or _PLAIN_WORD.fullmatch(value):
        return False
    if not any(char.isalnum() for char in value) or len(value) < 5:
        return False
    name = name.lower()
    if name.startswith("token"):
        is_address = value.startswith("0x") or _UUID.fullmatch(value)
        return len(value) >= 12 and not is_address and _is_mixed(value)
    if " is " in name or name.rstrip().endswith("is"):
        return _is_mixed(value)
    return _is_mixed(value) or (value.isdigit() and "pass" in name)


def _is_mixed(value: str) -> bool:
    has_letters = any(char.isalpha() for char in value)
    return has_letters and any(char.isdigit() or char in "!$%^&*#@" for char in value)


def _is_placeholder(value: str) -> bool:
    return (
        _REFERENCE.match(value) is not None
        or _MASKED.search(value) is not None
        or value.lower().strip("-_") in _COMMON_PASSWORDS
        or len(set(value)) < 3
    )
