"""What may be shown of an MCP server's command or address, and which of their values are secret.

What is shown is the text of the configuration, before references such as `${TOKEN}` are resolved. A
secret may still stand in it literally (`--api-key X`, a header, a URL), or come back in what a
failing server writes."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, cast
from urllib.parse import parse_qsl, urlsplit

from pegboard.servers.references import resolve_references
from pegboard.text.redaction import (
    HIDDEN,
    is_secret_name,
    opaque_parts,
    public_url,
    redact_opaque,
)

URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,60}://[^\s'\"]+")

Hide = Literal["nothing", "value", "header"]


def public_text(text: str) -> str:
    """Return the text with URLs cut to their public part, and without what looks like a key."""
    return redact_opaque(URL.sub(lambda match: public_url(match[0]), text))


def public_command(command: str, args: Iterable[str]) -> str:
    """Return a configured command line without the values of secret options, headers and URLs."""
    return " ".join(shown for shown, _ in _parts([command, *args]))


def argument_secrets(args: Iterable[str]) -> Iterator[str]:
    """Yield the secrets among the arguments of a command, after references were resolved."""
    for _, secret in _parts(args):
        yield secret
        for match in URL.finditer(secret):
            yield from url_secrets(match[0])


def url_secrets(url: str) -> Iterator[str]:
    """Yield the password of a URL, the values of its query, and keys in its path."""
    try:
        parts = urlsplit(url)
        yield from (parts.password or "", *(value for _, value in parse_qsl(parts.query)))
        yield from opaque_parts(parts.path)
    except ValueError:
        yield url


def _parts(args: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each argument as it may be shown, and the secret that was in it."""
    hide = cast("Hide", "nothing")
    for part in args:
        if hide == "value" and not part.startswith("-"):
            yield _unless_reference(part), part
            hide = "nothing"
            continue
        option = part.startswith("-")
        name, separator, value = part.partition("=" if option or hide != "header" else ":")
        if not separator and not option:
            name, separator, value = part.partition(": ")
        if separator and "://" not in name and (hide == "header" or is_secret_name(name)):
            yield f"{name}{separator}{_unless_reference(value)}", value
        else:
            shown = public_text(part)
            yield shown, "" if shown == part else part
        hide = _follows(part) if option and not separator else "nothing"


def _follows(option: str) -> Hide:
    if option in ("-H", "--header", "--headers"):
        return "header"
    return "value" if is_secret_name(option) else "nothing"


def _unless_reference(text: str) -> str:
    """Return the text if all of it is references, whose values it does not tell.

    The default of a reference stands in it literally.
    """
    rest = resolve_references(text, lambda match: match["default"] or "")
    return text if rest.strip() in ("", "Bearer", "Basic") else HIDDEN
