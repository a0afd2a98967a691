"""Values that look like credentials, and texts without them.

A value counts by its own form (the prefix of a provider's keys, a JSON Web Token, a private key) or
by what stands before it (`Bearer`, `password:`, `?token=`, `user:` in an address). Nothing counts
for being long: UUIDs, hashes and identifiers stay, and so do placeholders such as `<your-api-key>`
and words about credentials (`password: at least 8 characters`)."""

import re
from collections.abc import Callable
from functools import lru_cache

CREDENTIAL = "[credential]"
"""What stands where a credential stood."""

_KEY = re.compile(
    r"(?<![\w-])(?:"
    r"[spr]k-(?=[\w-]*\d)[\w-]{16,}"  # OpenAI, Anthropic, Langfuse
    r"|[spr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"  # Stripe, Clerk
    r"|gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[a-z]-(?=[\w-]*\d)[\w-]{10,}|xapp-\d-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"
    r"|(?:hf|gsk|npm|r8|ntn)_(?=\w*\d)[A-Za-z0-9]{20,}|dop_v1_[0-9a-f]{40,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|(?:tvly|pplx|xai|nvapi|lin_api)[-_](?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}"
    r"|SG\.[\w-]{16,}\.[\w-]{20,}|pypi-[\w-]{40,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"  # a JSON Web Token
    r")"
)
_KEY_HINTS = (
    *(
        "sk-",
        "pk-",
        "rk-",
        "sk_",
        "pk_",
        "rk_",
        "gho_",
        "ghp_",
        "ghr_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "glpat-",
        "xox",
        "xapp-",
    ),
    *(
        "akia",
        "asia",
        "aiza",
        "ya29.",
        "gocspx-",
        "hf_",
        "npm_",
        "r8_",
        "ntn_",
        "dop_v1_",
        "shpat_",
        "shpca_",
        "shppa_",
        "shpss_",
    ),
    *("tvly", "pplx", "xai", "nvapi", "lin_api", "sg.", "pypi-", "eyj"),
)
PASSES = 50
"""One replacement may uncover the next, where keys stand side by side; text made to go on for ever
ends here.
"""

_BODY = r"(?:\\[nr]|[\sA-Za-z0-9+/=:,-])"
_PRIVATE = re.compile(
    rf"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:{_BODY}{{40,}}?-----END [A-Z0-9 "
    rf"]+-----|{_BODY}{{40,}})"
)
_AUTHORIZATION = re.compile(
    r"\b((?i:bearer)|Basic|BASIC)(\s+)(?=[\w.~+/-]*[\d=])([\w.~+/-]{8,}={0,2})"
)
_USER = re.compile(r"(?<=://)([^\s/@:\"'<>]*):([^\s/@\"']+)(?=@)")
_SENSITIVE = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|(?:client|app|api|shared|webhook)[-_ "
    r"]?secret|secret(?:[-_ ]?(?:access[-_ ]?)?key)?"
    r"|(?:api|access|account|auth|private|subscription|master|encryption)[-_ "
    r"]?key|(?:access|auth|api|bearer|refresh|session|bot|id)[-_ ]?token|token)"
)
_QUERY = re.compile(
    r"(?i)(?<=[?&])((?:[\w-]*[-_.])?(?:token|key|apikey|secret|password|passwd|pwd|sig|signature|credential)=)([^\s&#\"'<>`)\]]{6,})"
)
_ASSIGNED = re.compile(
    rf"(?i)(?:(?<![A-Za-z])|(?-i:(?<=[a-z])(?=[A-Z])))({_SENSITIVE}[\"'`]?\s{{0,3}}(?:=>|:=|=|:|\bis\b)\s{{0,3}})(?:([\"'`])([^\"'`\s]{{5,}})\2|([^\s\"'`,;<>(){{}}]{{5,}}))"
)
_SECRET_NAME = re.compile(rf"(?i)(?:^|[^A-Za-z]|(?-i:(?<=[a-z])(?=[A-Z]))){_SENSITIVE}s?$")
_ASSIGNED_HINT = re.compile(
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|key|token)[\"'`]?\s{0,3}(?:[:=]|is\b)"
)
_QUERY_HINTS = (
    "key=",
    "token=",
    "secret=",
    "word=",
    "pwd=",
    "sig=",
    "signature=",
    "passwd=",
    "credential=",
)

_TECHNICAL = re.compile(
    r"(?i)(?:sha|md|aes|rsa|hs|rs|es|base|utf|oauth|int|uint|uuid|float|string|bcrypt|argon|scrypt|ed|pbkdf|erc|bep|x|v|p|h|ipv|iso|rfc)[-_]?\d+(?:[-_][a-z]+|\w{0,8})"
    r"|\d{1,4}[-–+]?\d{0,4}(?:[-_ ]?(?:char|bit|byte|digit|hour|minute|day|second)s?\w*)?"
    r"|\d{4}-\d\d-\d\d\S*"
)
"""Names of algorithms and types, lengths and dates: `token: base64`, `password: 8-20 characters`.
"""
_MASKED = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3,}|…|_{3,}|(?:^|[-_])(?:your|my|example|sample|placeholder|redacted|change_?me|insert|todo)(?:$|[-_\d])"
)
_REFERENCE = re.compile(
    r"[$%<{\[(@*/\\.#]|https?:|env[:.]|process\.|os\.|args?\.|self\.|config\.|secrets?\.|vault:"
)
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:[-_.'][^\W\d_]+)*")
_COMMON_PASSWORDS = {"pass", "password", "passwd", "pwd", "secret", "pw", "token", "key"}


def without_credentials(text: str) -> str:
    """The text with `[credential]` for every value that looks like one; doing it twice changes
    nothing more.
    """
    for _ in range(PASSES):
        replaced = _replaced(text)
        if replaced == text:
            break
        text = replaced
    return text


def _replaced(text: str) -> str:
    low = text.lower()
    if "private key" in low:
        text = _PRIVATE.sub(CREDENTIAL, text)
    if any(hint in low for hint in _KEY_HINTS):
        text = _KEY.sub(CREDENTIAL, text)
    if "bearer" in low or "basic" in low:
        text = _AUTHORIZATION.sub(_authorization, text)
    if "://" in low and "@" in low:
        text = _USER.sub(lambda match: match[0] if _placeholder(match[2]) else CREDENTIAL, text)
    if any(hint in low for hint in _QUERY_HINTS):
        text = _QUERY.sub(_assigned(_query_secret), text)
    if _ASSIGNED_HINT.search(low):
        text = _ASSIGNED.sub(_assigned(_assigned_secret), text)
    return text


@lru_cache(maxsize=10_000)
def secret_name(name: str) -> bool:
    """Whether an argument of that name takes a credential: `apiKey`, `db_password`."""
    return _SECRET_NAME.search(name) is not None


def _authorization(match: re.Match[str]) -> str:
    value = match[3]
    prose = _PLAIN_WORD.fullmatch(value.rstrip("=.")) or re.match(
        r"(?i)(?:oauth|jwt|token|auth|key)", value
    )
    return match[0] if prose or _placeholder(value) else f"{match[1]}{match[2]}{CREDENTIAL}"


def _assigned(secret: Callable[[str, str], bool]) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        before, *values = match.groups()
        value = next(value for value in reversed(values) if value is not None)
        bare = value.rstrip(".,;:!?)")
        if not secret(before, bare):
            return match[0]
        quote = (values[0] or "") if len(values) == 3 and values[1] is not None else ""
        return f"{before}{quote}{CREDENTIAL}{value[len(bare) :]}{quote}"

    return replaced


def _query_secret(before: str, value: str) -> bool:
    """In an address, `key` is often that of a record: only longer values with a digit count."""
    if _placeholder(value) or _UUID.fullmatch(value):
        return False
    weak = before.lower() == "key="
    return (
        (len(value) >= 12 and any(char.isdigit() for char in value))
        if weak
        else not value.isdigit()
    )


def _assigned_secret(before: str, value: str) -> bool:
    """After `password:` a value is a secret if it is no word; after a mere `token:` (which may be a
    coin's) only if it is long, too.
    """
    if _placeholder(value) or _TECHNICAL.fullmatch(value) or _PLAIN_WORD.fullmatch(value):
        return False
    if not any(char.isalnum() for char in value) or len(value) < 5:
        return False
    if before.lower().startswith("token"):
        return (
            len(value) >= 12
            and not value.startswith("0x")
            and not _UUID.fullmatch(value)
            and _mixed(value)
        )
    if " is " in before.lower() or before.lower().rstrip().endswith("is"):
        return _mixed(value)
    return _mixed(value) or (value.isdigit() and "pass" in before.lower())


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
