"""The secrets that the options of a source hold or refer to: what the source yields is listed
without them."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pegboard.text.redaction import is_secret_name

_REFERENCE = re.compile(
    r"\$\{(?:(?:(?P<scheme>[A-Za-z]\w*):(?!-))?(?P<name>[^}:]+)(?::-(?P<default>[^}]*))?\}"
    r"|[^}]*(?:\}|\Z))"
)
"""A reference; or without a name, what only begins as one, so that no text is read twice."""
SHORTEST_IN_CATALOGS = 8
"""Characters of a secret that is taken out of catalog text; a shorter one may be a word of it."""


TABLES = ("headers", "env", "auth")
PLACES = ("command", "cwd")
"""Options that say where a server is; what they refer to is no secret."""
PUBLIC = ("USER", "LOGNAME", "PATH", "SHELL", "LANG", "LC_ALL", "TZ")
"""Variables that are no secrets; an entry names others in `public`."""


def secrets_of(options: Any, name: str = "", public: Collection[str] = ()) -> Iterator[str]:
    """Yield the secrets in the options of a source.

    These are all environment variables that are referred to, whatever their names, and what is
    written in headers and `env` under the name of a secret.

    Args:
        name: of the header or variable that the value is for, or of their table.
        public: names of variables that are none.
    """
    if isinstance(options, Mapping):
        public = {*public, *public_variables(options)}
        for key, value in options.items():
            is_named = name in TABLES or key in TABLES
            if is_named or key not in PLACES:
                yield from secrets_of(value, str(key) if is_named else "", public)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from secrets_of(value, name, public)
    elif isinstance(options, str):
        yield from referenced_values(options, public)
        if is_secret_name(name):
            yield resolve_references(options, _value)


def referenced_values(text: str, public: Collection[str] = ()) -> Iterator[str]:
    """Yield the values of the environment variables that a text refers to, except `public` ones and
    folders. Their defaults, which the file has, are secrets only by the variable's name.
    """
    for match in _REFERENCE.finditer(text):
        name = match["name"] or ""
        value = _value(match) if is_secret_name(name) else os.environ.get(name, "")
        # `Path` fails at what is too long for a path.
        is_folder = value.startswith(os.sep) and os.path.isdir(value)  # noqa: PTH112
        if name not in PUBLIC and name not in public and not is_folder:
            yield value


def public_variables(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of variables that a server's entry marks as no secrets, in `public`."""
    names = entry.get("public")
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


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
