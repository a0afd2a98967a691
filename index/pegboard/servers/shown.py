"""The public part of an MCP server's command or address, and the secrets in them.

The text of the configuration is shown before references such as `${TOKEN}` are resolved. It may
still contain a literal secret (`--api-key X`, a header, a URL), and a failing server may write the
secret to its stderr."""

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
    """Return a text with URLs cut to their public part, and without values that look like keys."""
    return redact_opaque(URL.sub(lambda match: public_url(match[0]), text))


def public_command(command: str, args: Iterable[str]) -> str:
    """Return a command line without the values of secret options, headers and URLs."""
    return " ".join(shown for shown, _ in _parts([command, *args]))


def argument_secrets(args: Iterable[str]) -> Iterator[str]:
    """Yield the secrets in the arguments of a command whose references are resolved."""
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
    """Yield the public text of each argument, and the secret in it ("" for none)."""
    hide = cast("Hide", "nothing")
    for part in args:
        if hide == "value" and not part.startswith("-"):
            yield _unless_reference(part), part
            hide = "nothing"
            continue
        is_option = part.startswith("-")
        name, separator, value = part.partition("=" if is_option or hide != "header" else ":")
        if not separator and not is_option:
            name, separator, value = part.partition(": ")
        if separator and "://" not in name and (hide == "header" or is_secret_name(name)):
            yield f"{name}{separator}{_unless_reference(value)}", value
        else:
            shown = public_text(part)
            yield shown, "" if shown == part else part
        hide = _hidden_after(part) if is_option and not separator else "nothing"


def _hidden_after(option: str) -> Hide:
    """Return what is hidden of the argument after an option."""
    if option in ("-H", "--header", "--headers"):
        return "header"
    return "value" if is_secret_name(option) else "nothing"


def _unless_reference(text: str) -> str:
    """Return the text if it consists of references without defaults, which reveal no values."""
    rest = resolve_references(text, lambda match: match["default"] or "")
    return text if rest.strip() in ("", "Bearer", "Basic") else HIDDEN
