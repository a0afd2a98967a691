"""The one redactor: which values are secrets, and text without them.

A value is secret

- by its shape: a provider's key prefix (`sk-`, `ghp_`, `AKIA`, `SG.`), a JSON Web Token, a PEM
  private key, what follows `Bearer`, the user in an address, a signature in its query;
- by the name before it: `password: X`, `"api_key": "X"`, `?token=X`, `AccountKey=X`;
- by being given: values that a caller passes or remembers here, and those of environment variables
  whose names say so.

Nothing is secret for its length: a UUID, hash or identifier stays, unless the name before it says
otherwise. Addresses and arguments of a server are the exception, since a key may stand there
without a name: see `redact_opaque`.

There are two uses. `redact` is for messages and logs, where a word too many may go. Catalog text is
embedded and shown to models, so `redact_credentials` takes out only what is certain: placeholders
(`<your-api-key>`) and words about credentials (`password: at least 8 characters`) stay. Whatever it
takes out, `redact` takes out too."""

import os
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

from pegboard.text.secret_values import HIDDEN, SHORTEST_SECRET, SecretValues

MAX_MESSAGE = 100_000
"""Characters of a message that are looked at; the rest is left out."""

HIDDEN_CREDENTIAL = "[credential]"
"""Replaces a secret in catalog text."""

_SHORTEST_VARIABLE = 8
"""Characters of an environment variable's value that is secret by the variable's name alone."""

_PASSES = 50
"""Replacing one value may uncover the next where keys stand side by side; bounds hostile text."""

_LOOSE = r"(?=[\w*.-]{0,60}[\d*]|[\w-]{20})[\w*.-]{7,}[\w*-]"
"""What follows a prefix in a message, where providers mask keys with dots and asterisks."""

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
"""Algorithms and types, lengths and dates: `token: base64`, `password: 8-20 characters`."""

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
"""What messages lose besides credentials that are certain."""

_OPAQUE = re.compile(rf"\b{_UUID.pattern}\b|\b(?=\w*\d)(?=\w*[A-Za-z])\w{{24,}}\b")

_remembered: set[str] = set()


def redact(
    text: str, secrets: Iterable[str] = (), *, variables: Collection[str | None] = ()
) -> str:
    """Return a message without secrets: given, from the environment, by shape and by name.

    Args:
        secrets: values to hide besides the remembered ones.
        variables: environment variables that hold secrets though their names do not say so.
    """
    given = dict.fromkeys((*_remembered, *secrets), HIDDEN)
    given |= {
        value: f"[{name}]"
        for name, value in os.environ.items()
        if len(value) >= (SHORTEST_SECRET if name in variables else _SHORTEST_VARIABLE)
        and (name in variables or is_secret_name(name))
    }
    return redact_shapes(_shortened(SecretValues(given).hide(text)))


def _shortened(text: str) -> str:
    """Cut a text between words: a key that is cut in two would not be recognised."""
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
    """Return a message without what is secret by shape or name, whatever the environment holds."""
    text = _without_credentials(text, HIDDEN)
    for pattern, replacement in _IN_MESSAGES:
        text = pattern.sub(replacement, text)
    return text


def redact_opaque(text: str) -> str:
    """Return an argument or address as `redact_shapes` does, and without UUIDs and random words.

    Some servers take their key as an argument, or as a part of the path of their address.
    """
    return _OPAQUE.sub(HIDDEN, redact_shapes(text))


def redact_credentials(text: str) -> str:
    """Return catalog text with `[credential]` for each value that is certainly one; idempotent."""
    return _without_credentials(text, HIDDEN_CREDENTIAL)


def remember_secrets(values: Iterable[str]) -> None:
    """Hide these values from every later message of this process."""
    _remembered.update(values)


def opaque_parts(text: str) -> list[str]:
    """List the UUIDs and random words that `redact_opaque` would hide."""
    return _OPAQUE.findall(text)


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or header of that name holds a secret.

    Names of files, addresses and keys in a key store do not.
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return _PUBLIC_NAME.search(words) is None and _SECRET_NAME.search(words) is not None


@lru_cache(maxsize=10_000)
def takes_credential(argument: str) -> bool:
    """Whether a tool's argument of that name takes a credential: `apiKey`, `db_password`.

    Stricter than `is_secret_name`: an argument `key` is mostly the key of a record.
    """
    return _CREDENTIAL_ARGUMENT.search(argument) is not None


def public_url(url: str) -> str:
    """Return a URL without what may be secret: user, password, query, fragment, and UUIDs and
    random words in the path of a web address.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an invalid URL)"
    path = redact_opaque(parts.path) if parts.scheme in ("http", "https") else parts.path
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))


def _without_credentials(text: str, instead: str) -> str:
    for _ in range(_PASSES):
        replaced = _replace_credentials(text, instead)
        if replaced == text:
            break
        text = replaced
    return text


def _replace_credentials(text: str, instead: str) -> str:
    """Replace each kind of credential whose hint the text has: most texts have none."""
    low = text.lower()
    if "private key" in low:
        text = _PRIVATE.sub(instead, text)
    if any(hint in low for hint in _KEY_HINTS):
        text = _KEY.sub(instead, text)
    if "bearer" in low or "basic" in low:
        text = _AUTHORIZATION.sub(lambda match: _authorization(match, instead), text)
    if "://" in low and "@" in low:
        text = _USER.sub(lambda match: match[0] if _placeholder(match[2]) else instead, text)
    if _QUERY_HINT.search(low):
        text = _QUERY.sub(lambda match: _assigned(match, instead, _query_secret), text)
    if _ASSIGNED_HINT.search(low):
        text = _ASSIGNED.sub(lambda match: _assigned(match, instead, _assigned_secret), text)
    return text


def _authorization(match: re.Match[str], instead: str) -> str:
    value = match[3]
    prose = _PLAIN_WORD.fullmatch(value.rstrip("=.")) or re.match(
        r"(?i)(?:oauth|jwt|token|auth|key)", value
    )
    return match[0] if prose or _placeholder(value) else f"{match[1]}{match[2]}{instead}"


def _assigned(match: re.Match[str], instead: str, secret: Callable[[str, str], bool]) -> str:
    before, *values = match.groups()
    value = next(value for value in reversed(values) if value is not None)
    bare = value.rstrip(".,;:!?)")
    if not secret(before, bare):
        return match[0]
    quotation = (values[0] or "") if len(values) == 3 and values[1] is not None else ""
    return f"{before}{quotation}{instead}{value[len(bare) :]}{quotation}"


def _query_secret(before: str, value: str) -> bool:
    """In an address, `key` is often that of a record: only longer values with a digit count."""
    if _placeholder(value) or _UUID.fullmatch(value):
        return False
    if before.lower() == "key=":
        return len(value) >= 12 and any(char.isdigit() for char in value)
    return not value.isdigit()


def _assigned_secret(before: str, value: str) -> bool:
    """Whether a value is a secret by the name before it.

    After `password:` a value counts if it is no word; after a mere `token:` (which may be a coin's)
    only if it is long, too.
    """
    if _placeholder(value) or _TECHNICAL.fullmatch(value) or _PLAIN_WORD.fullmatch(value):
        return False
    if not any(char.isalnum() for char in value) or len(value) < 5:
        return False
    before = before.lower()
    if before.startswith("token"):
        address = value.startswith("0x") or _UUID.fullmatch(value)
        return len(value) >= 12 and not address and _mixed(value)
    if " is " in before or before.rstrip().endswith("is"):
        return _mixed(value)
    return _mixed(value) or (value.isdigit() and "pass" in before)


def _mixed(value: str) -> bool:
    letters = any(char.isalpha() for char in value)
    return letters and any(char.isdigit() or char in "!$%^&*#@" for char in value)


def _placeholder(value: str) -> bool:
    return (
        _REFERENCE.match(value) is not None
        or _MASKED.search(value) is not None
        or value.lower().strip("-_") in _COMMON_PASSWORDS
        or len(set(value)) < 3
    )
