"""Templates of prompts: `{{ name }}` alone without Jinja2, everything else by its sandbox."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pegboard.errors import ConfigurationError

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

_PLAIN_VALUE = re.compile(r"\{\{ *(\w+) *\}\}")


def names_in(source: str) -> dict[str, int]:
    """Return the names that a template uses, each with its first line.

    Raises:
        Exception: Jinja2 cannot parse it; `lineno` of the error is the line.
        ConfigurationError: Jinja2 is needed and not installed.
    """
    if _is_plain(source):
        names: dict[str, int] = {}
        for match in _PLAIN_VALUE.finditer(source):
            names.setdefault(match[1], source.count("\n", 0, match.start()) + 1)
        return names
    environment = _environment()
    from jinja2 import meta, nodes

    tree = environment.parse(source)
    environment.from_string(source)
    lines = {node.name: node.lineno for node in reversed(list(tree.find_all(nodes.Name)))}
    undeclared = meta.find_undeclared_variables(tree)
    return {name: lines.get(name, 1) for name in undeclared}


def render(source: str, values: Mapping[str, Any]) -> str:
    """Return the text of a template, without the blank lines that empty values leave."""
    if _is_plain(source):
        text = _PLAIN_VALUE.sub(lambda match: str(values[match[1]]), source)
    else:
        text = _compiled(source).render(values)
    # Blocks and values that are empty leave blank lines. Data has none: it is one line of JSON.
    return re.sub(r"\n\s*\n", "\n\n", text).strip()


def _is_plain(source: str) -> bool:
    rest = _PLAIN_VALUE.sub("", source)
    return not any(mark in rest for mark in ("{{", "{%", "{#"))


@lru_cache(maxsize=64)
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


@lru_cache(maxsize=1)
def _environment() -> "SandboxedEnvironment":
    try:
        from jinja2 import StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise ConfigurationError(
            "more than `{{ name }}` needs Jinja2. Install it: pip install jinja2"
        ) from error
    # No escaping as HTML: catalog text is fenced as JSON, and escaping would only garble it.
    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
