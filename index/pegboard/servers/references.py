"""The secrets that the options of a source hold or refer to: what the source yields is listed
without them."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pegboard.redaction import is_secret_name

_REFERENCE = re.compile(
    r"\$\{(?:(?:(?P<scheme>[A-Za-z]\w*):(?!-))?(?P<name>[^}:]+)(?::-(?P<default>[^}]*))?\}"
    r"|[^}]*(?:\}|\Z))"
)
"""A reference; or without a name, what only begins as one, so that no text is read twice."""
SHORTEST_IN_CATALOGS = 8
"""Characters of a secret that is taken out of catalog text; a shorter one may be a word of it."""


def secrets_of(options: Any, name: str = "", *, headers: bool = False) -> Iterator[str]:
    """Yield the secrets in the options of a source.

    These are environment variables with the name of a secret, all variables in headers, and what is
    written in headers and `env` under the name of a secret.

    Args:
        name: of the option, or of the header or variable that the value is for.
    """
    if isinstance(options, Mapping):
        for key, value in options.items():
            in_table = headers or key == "headers"
            named = str(key) if in_table or name == "env" else ""
            yield from secrets_of(value, "env" if key == "env" else named, headers=in_table)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from secrets_of(value, name, headers=headers)
    elif isinstance(options, str):
        for match in _REFERENCE.finditer(options):
            if match["name"] and (headers or is_secret_name(match["name"]) or is_secret_name(name)):
                yield _value(match)
        if is_secret_name(name):
            yield resolve_references(options, _value)


def resolve_references(text: str, value: Callable[[re.Match[str]], str]) -> str:
    """Return a text with each reference replaced by its value.

    References are `${NAME}`, `${env:NAME}`, `${NAME:-default}`, and editors' own such as
    `${input:id}`.

    Args:
        value: returns the value of a match with the groups `scheme`, `name` and `default`.
    """
    return _REFERENCE.sub(lambda match: value(match) if match["name"] else match[0], text)


def secrets_in_catalogs(values: Iterable[str]) -> tuple[str, ...]:
    """Return the secrets that are long enough to be taken out of catalog text."""
    return tuple(value for value in with_pieces(values) if len(value) >= SHORTEST_IN_CATALOGS)


def with_pieces(values: Iterable[str]) -> tuple[str, ...]:
    """Return each value, and of `Bearer X` also X alone."""
    texts = {value.strip() for value in values}
    return tuple(sorted(texts | {text.rpartition(" ")[2] for text in texts}))


def _value(match: re.Match[str]) -> str:
    return os.environ.get(match["name"]) or match["default"] or ""
