"""The secrets that the options of a source contain or refer to, which are removed from its
listing."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pegboard.text.redaction import is_secret_name

_REFERENCE = re.compile(
    r"\$\{(?:(?:(?P<scheme>[A-Za-z]\w*):(?!-))?(?P<name>[^}:]+)(?::-(?P<default>[^}]*))?\}"
    r"|[^}]*(?:\}|\Z))"
)
"""A reference; without a name, an unfinished one, so that no text is scanned twice."""
SHORTEST_IN_CATALOGS = 8
"""Least characters of a secret that is removed from catalog text; a shorter one may be a word."""

TABLES = ("headers", "env", "auth")
"""Options that are tables whose keys may be names of secrets."""
PLACES = ("command", "cwd")
"""Options that say where a server is. Variables that they refer to are not secrets."""
PUBLIC = ("USER", "LOGNAME", "PATH", "SHELL", "LANG", "LC_ALL", "TZ")
"""Variables that are not secrets; an entry names others in `public`."""


def secrets_of(options: Any, name: str = "", public: Collection[str] = ()) -> Iterator[str]:
    """Yield the secrets in the options of a source.

    These are the values of all environment variables that the options refer to, and the values of
    headers and variables with the name of a secret.

    Args:
        name: the name of the header, the variable or the table that has the options.
        public: names of variables that are not secrets.
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
    """Yield the values of the environment variables that a text refers to, except those of `public`
    variables and folders. A default, which the file contains, counts as a secret only if the
    variable has the name of one.
    """
    for match in _REFERENCE.finditer(text):
        name = match["name"] or ""
        value = _value(match) if is_secret_name(name) else os.environ.get(name, "")
        # `Path` raises an error for a text that is too long for a path.
        is_folder = value.startswith(os.sep) and os.path.isdir(value)  # noqa: PTH112
        if name not in PUBLIC and name not in public and not is_folder:
            yield value


def public_variables(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of variables that are not secrets by `public` of a server's entry."""
    names = entry.get("public")
    return tuple(map(str, names)) if isinstance(names, list | tuple) else ()


def resolve_references(text: str, value: Callable[[re.Match[str]], str]) -> str:
    """Return a text with each reference replaced by its value.

    References are `${NAME}`, `${env:NAME}`, `${NAME:-default}`, and those of editors, such as
    `${input:id}`.

    Args:
        value: returns the value of a match with the groups `scheme`, `name` and `default`.
    """
    return _REFERENCE.sub(lambda match: value(match) if match["name"] else match[0], text)


def secrets_in_catalogs(values: Iterable[str]) -> tuple[str, ...]:
    """Return the secrets that are long enough to be removed from catalog text."""
    return tuple(value for value in with_pieces(values) if len(value) >= SHORTEST_IN_CATALOGS)


def with_pieces(values: Iterable[str]) -> tuple[str, ...]:
    """Return each value, and its last word, such as the X of `Bearer X`."""
    texts = {value.strip() for value in values}
    return tuple(sorted(texts | {text.rpartition(" ")[2] for text in texts}))


def _value(match: re.Match[str]) -> str:
    return os.environ.get(match["name"]) or match["default"] or ""
