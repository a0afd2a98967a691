"""What may be shown of an MCP server, and what must be hidden: sources, failures and logs never
hold a secret.

What is shown of a server is the text of its configuration, before references such as `${TOKEN}` are
resolved. A secret may still stand in it literally (`--api-key X`, a header, a URL), or come back in
what a failing server writes."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pegboard.store.database import public_url

REFERENCE = re.compile(
    r"\$\{(?:(?P<scheme>[A-Za-z]\w*):(?!-))?(?P<name>[^}:]+)(?::-(?P<default>[^}]*))?\}"
)
"""`${NAME}`, `${env:NAME}`, `${NAME:-default}`, and editors' own such as `${input:id}`."""

HIDDEN = "***"
SECRET_NAME = re.compile(
    r"(?i)token|secret|passw|pwd|credential|bearer|auth|cookie|signature|(?:api|access|private|secret)[-_]?key|(?:^|[-_.])key$"
)
SECRET_VALUE = re.compile(
    # the usual prefixes of keys
    r"\b(?:sk|pk|rk|gh[opsu]|github_pat|glpat|xox[abprs])[-_][\w-]{8,}"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"  # a JSON Web Token
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"  # a UUID
    # long and not a word; some servers have such a key in the path of their URL
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w{24,}\b"
)
CREDENTIALS = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")

SHORTEST_SECRET = 4
"""Characters. A shorter value (`1`, `on`) is left in messages: hiding it would garble them."""

Hide = Literal["nothing", "value", "header"]


def public_text(text: str) -> str:
    """The text with URLs cut to their public part, and with what looks like a key hidden."""
    return SECRET_VALUE.sub(HIDDEN, URL.sub(lambda match: _public_url(match[0]), text))


def public_command(command: Any, args: Iterable[Any]) -> str:
    """A command line as its configuration has it, with the values of secret options, headers and
    URLs hidden.
    """
    return " ".join(shown for shown, _ in _parts([str(command), *map(_text, args)]))


def argument_secrets(args: Iterable[str]) -> Iterator[str]:
    """The secrets among the arguments of a command, after references were resolved."""
    for _, secret in _parts(args):
        yield secret
        for match in URL.finditer(secret):
            yield from url_secrets(match[0])


def url_secrets(url: str) -> Iterator[str]:
    """The password and the values of the query of a URL."""
    try:
        parts = urlsplit(url)
        yield from (parts.password or "", *(value for _, value in parse_qsl(parts.query)))
    except ValueError:
        yield url


def secret_like(name: str) -> bool:
    """Whether a variable, an option or a header of that name holds a secret."""
    return SECRET_NAME.search(name) is not None


def to_hide(values: Iterable[str]) -> tuple[str, ...]:
    """The values worth hiding, the longest first, since one may be part of another; of `Bearer X`
    also X alone.
    """
    pieces = {
        piece for value in values for piece in (value.strip(), value.strip().rpartition(" ")[2])
    }
    return tuple(
        sorted(
            (piece for piece in pieces if len(piece) >= SHORTEST_SECRET), key=lambda p: (-len(p), p)
        )
    )


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return public_text(CREDENTIALS.sub(rf"\1 {HIDDEN}", text))


def _parts(args: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each argument as it may be shown, and the secret that was in it."""
    hide: Hide = "nothing"
    for part in args:
        if hide == "value" and not part.startswith("-"):
            yield _unless_reference(part), part
            hide = "nothing"
            continue
        option = part.startswith("-")
        name, separator, value = part.partition("=" if option or hide != "header" else ":")
        if not separator and not option:
            name, separator, value = part.partition(": ")
        if separator and "://" not in name and (hide == "header" or secret_like(name)):
            yield f"{name}{separator}{_unless_reference(value)}", value
        else:
            yield public_text(part), "" if public_text(part) == part else part
        hide = _follows(part) if option and not separator else "nothing"


def _follows(option: str) -> Hide:
    if option in ("-H", "--header", "--headers"):
        return "header"
    return "value" if secret_like(option) else "nothing"


def _unless_reference(text: str) -> str:
    """The text if all of it is references, whose values it does not tell; a default stands in it
    literally.
    """
    rest = REFERENCE.sub(lambda match: match["default"] or "", text)
    return text if rest.strip() in ("", "Bearer", "Basic") else HIDDEN


def _public_url(url: str) -> str:
    try:
        return public_url(url)
    except ValueError:
        return HIDDEN


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
