"""What a tool provides: the things that a caller has after the call and did not have before it.

Said by the output schema where there is one, by the name (`get_stock_ticker`: a stock ticker;
`search_orders`: orders, and so their ids) and by the description (`Returns the appointment ids
...`). What a tool itself requires, it does not provide."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pegboard.records import Tool
from tasks.dependencies.phrases import (
    NamedFor,
    first_verb,
    name_phrase,
    noun_phrase,
    returned_phrases,
    words_of,
)
from tasks.dependencies.schemas import Parameter, parameters_of, results_of
from tasks.dependencies.words import (
    CHANGING,
    CHECKING,
    CREATING,
    FINDING,
    GENERIC,
    HERE,
    IDENTIFIERS,
    READING,
    ROLES,
)

How = Literal["schema", "listed", "named", "found", "told"]

IDS = frozenset(IDENTIFIERS.values()) | {"code", "key", "token", "url", "uri", "path"}
"""Endings under which things are known."""


@dataclass(frozen=True, slots=True)
class Provided:
    """Something that a tool provides: a noun phrase, and where it is said.

    Attributes:
        words: the phrase; `bare`: its words without those that only say which part it plays.
        how: `schema`, a property of the output schema; `listed`, what a thing is known by that is
            part of the output; `named`, the tool's name; `found`, the id of what the name says;
            `told`, the description.
        here: it is there without any argument, and the caller's own: the current date, the system's
            language.
    """

    words: tuple[str, ...]
    bare: frozenset[str]
    how: How
    here: bool


@dataclass(frozen=True, slots=True)
class Known:
    """A tool as far as dependencies are concerned: what its name says, and the words of its name
    and of all its text.

    `requires` are the word sets of the parameters without which it cannot be called.
    """

    tool: Tool
    parameters: Sequence[Parameter]
    named: NamedFor
    verb: str
    name: frozenset[str]
    text: frozenset[str]
    requires: frozenset[frozenset[str]]
    provides: Sequence[Provided]


def known_of(tool: Tool) -> Known:
    """What is known of a tool: its parameters, what its name says, what it provides."""
    parameters, named = parameters_of(tool), name_phrase(tool.name)
    verb = named.verb or first_verb(tool.description)
    name = frozenset(words_of(tool.name))
    requires = {frozenset(words_of(one.name)) - ROLES for one in parameters if one.needed}
    # `get_order(id)` requires an order's id as much as `get_order(order_id)` does.
    requires |= {frozenset(named.phrase) | words for words in requires if words <= GENERIC}
    free = not any(one.needed for one in parameters) and verb in READING
    seen: dict[tuple[str, ...], Provided] = {}
    for words, how in _provided(tool, named, verb):
        bare = frozenset(words) - ROLES
        if bare and bare not in requires and words not in seen:
            seen[words] = _provided_once(
                words, bare, how, free and how != "found" and bool(HERE & (name | set(words)))
            )
    text = name | set(words_of(tool.description[:2_000]))
    return Known(
        tool, parameters, named, verb, name, text, frozenset(requires), tuple(seen.values())
    )


_provided_once = lru_cache(maxsize=100_000)(Provided)


def _provided(tool: Tool, named: NamedFor, verb: str) -> Iterator[tuple[tuple[str, ...], How]]:
    if verb in CHECKING or (verb in CHANGING and not tool.output_schema):
        return
    entity = named.phrase if verb not in CHANGING else ()
    if entity and verb and verb not in CREATING:
        yield entity, "named"
    results = results_of(tool)
    for result in results:
        words = noun_phrase(words_of(result.name))
        if (
            words and set(words) <= GENERIC and words[-1] in IDS
        ):  # the `id` of an order is an order id
            if owner := noun_phrase(words_of(result.within)):
                yield (*(word for word in owner if word not in words), *words), "listed"
                continue
            words = (*(word for word in entity if word not in words), *words)
        if words:
            yield words, "schema"
    # Where a schema says what is returned, only a search or a creation returns ids that it does not
    # speak of.
    if (
        entity
        and entity[-1] not in IDS
        and verb in FINDING | CREATING | (READING if not results else frozenset())
    ):
        yield (*entity, "id"), "found"
    if verb not in CHANGING:
        for phrase in returned_phrases(tool.description):
            yield phrase, "told"
