"""Templates of prompts: values, conditions, and one loop over the examples.

A template may come from a release, so rendering one has to end, soon and with little memory,
whatever its writer intended. A sandbox does not see to that: nested loops, `"x" * 10**9`, a chain
of concatenations or a filter such as `center` take any time. So only what a prompt needs is
allowed, and template, loop and text are bounded."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pegboard.extras import import_extra

MAX_TEMPLATE = 20_000
"""Characters of a template; the longest of ours has 4,000."""
MAX_LOOP = 60
"""Parts of syntax in the loop of a template."""
MAX_TEXT = 4_000_000
"""Characters of a rendered text."""
LOOPED = "examples"
"""The value over which a template may loop."""
FILTERS = frozenset(
    {"capitalize", "count", "d", "default", "first", "last", "length", "lower", "trim", "upper"}
)
"""Filters that return no more text than they are given; others may multiply it."""
ALLOWED = frozenset(
    {
        "And",
        "Compare",
        "CondExpr",
        "Const",
        "Filter",
        "For",
        "Getattr",
        "Getitem",
        "If",
        "Name",
        "Not",
        "Operand",
        "Or",
        "Output",
        "TemplateData",
        "Test",
    }
)
"""Kinds of syntax, as Jinja2 names them."""


class TemplateProblem(ValueError):
    """A template has syntax that prompts may not have, or its text is too long.

    Attributes:
        lineno: the line, if it is known.
    """

    def __init__(self, message: str, lineno: int | None = None) -> None:
        super().__init__(message)
        self.lineno = lineno


def names_of(source: str) -> dict[str, int]:
    """Return the names of the values that a template uses, with the line of each.

    Raises:
        TemplateProblem: it has syntax that prompts may not have.
        jinja2.TemplateSyntaxError: it is not a template.
    """
    if len(source) > MAX_TEMPLATE:
        raise TemplateProblem(f"it has more than {MAX_TEMPLATE:,} characters; shorten it")
    environment = _environment()
    from jinja2 import meta, nodes

    tree = environment.parse(source)
    for problem, line in _forbidden(tree):
        raise TemplateProblem(problem, line)
    lines = {node.name: node.lineno for node in tree.find_all(nodes.Name)}
    return {name: lines[name] for name in meta.find_undeclared_variables(tree)}


def render(source: str, values: Mapping[str, Any]) -> str:
    """Return the text of a template, without the blank lines that empty values leave.

    Raises:
        TemplateProblem: the text has more than `MAX_TEXT` characters.
    """
    parts: list[str] = []
    size = 0
    for part in _compiled(source).generate(values):
        parts.append(part)
        size += len(part)
        if size > MAX_TEXT:
            raise TemplateProblem(f"its text has more than {MAX_TEXT:,} characters; shorten it")
    # Blocks and values that are empty leave blank lines. Data has none: it is one line of JSON.
    return re.sub(r"\n\s*\n", "\n\n", "".join(parts)).strip()


def _forbidden(tree: Any) -> Iterator[tuple[str, int]]:
    """Yield what a template has that prompts may not have, each with its line."""
    from jinja2 import nodes

    loops = list(tree.find_all(nodes.For))
    for loop in loops[1:]:
        yield "it has more than one loop", loop.lineno
    for node in tree.find_all(nodes.Node):
        kind = type(node).__name__
        if kind not in ALLOWED:
            yield _advice(f"`{kind}`"), node.lineno
        elif isinstance(node, nodes.Filter) and node.name not in FILTERS:
            yield _advice(f"the filter `{node.name}`"), node.lineno
        elif isinstance(node, nodes.For):
            if not isinstance(node.iter, nodes.Name) or node.iter.name != LOOPED:
                yield f"it loops over something else than `{LOOPED}`", node.lineno
            elif sum(1 for _ in node.find_all(nodes.Node)) > MAX_LOOP:
                yield "its loop is too long", node.lineno


def _advice(what: str) -> str:
    return (
        f"{what} is not allowed in a prompt: use values, `if`, one loop over `{LOOPED}`, and the "
        f"filters {', '.join(sorted(FILTERS))}"
    )


@lru_cache(maxsize=64)
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


@lru_cache(maxsize=1)
def _environment() -> Any:
    jinja2 = import_extra("jinja2")
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # No escaping as HTML: catalog text is fenced as JSON, and escaping would only garble it.
    return ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
