"""What a tool needs and what it provides, as noun phrases.

A parameter needs the noun phrase of its name, with the object of its tool before it where the name
alone says nothing (`id` of `cancel_order` is an order id). In a path, the segment before a
parameter says what it identifies: `/customers/{ref}` takes a customer's id.

A tool provides what a caller has after the call and had not before. One that lists or finds things
provides their ids, one that creates a thing its id; names (`get_stock_ticker`: a stock ticker),
paths, output schemas and descriptions (`Returns the appointment ids ...`) say which. What a tool
itself requires, it does not provide. Ids that an output mentions besides, such as the owner's of
each thing in a list, are not provided: nobody calls the tool for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pegboard.records import Tool
from tasks.dependencies.language import (
    CALENDAR,
    CHANGING,
    CHECKING,
    CONTEXT,
    CREATING,
    FINDING,
    GENERIC,
    ID_NOUNS,
    KEYS,
    PLUMBING,
    READING,
    ROLES,
    WORLD,
    ParsedName,
    first_verb,
    has_plural,
    noun_phrase,
    parameter_phrase,
    parse_name,
    words_of,
)
from tasks.dependencies.schemas import (
    Address,
    Parameter,
    Result,
    address_of,
    parameters_of,
    results_of,
)

MAX_DESCRIPTION = 2_000
"""Characters of a tool's description whose words count."""

_PERSONAL = {("username",), ("login",), ("nickname",), ("email",)}

Origin = Literal["listed", "created", "found", "named", "contained", "schema"]
Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Provided:
    """Something that a tool provides.

    Attributes:
        words: a noun phrase.
        core: its words without `ROLES`.
        origin: `listed`, the ids of what it lists or finds; `created`, the id of what it creates;
            `found`, the id of what it reads; `named`, the tool's name; `contained`, the ids of a
            list in what it reads; `schema`, a property of the output schema.
        contextual: it needs no argument and is the caller's own: the current date.
    """

    words: Phrase
    core: frozenset[str]
    origin: Origin
    contextual: bool


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """A tool as far as dependencies are concerned.

    Attributes:
        address: its method and path; empty if it has none.
        lists: whether it returns things that the caller cannot name yet.
        listed: the names of the properties of things in a list that it returns.
        name_words, text_words: the words of its name, and of name, path and description.
        requires: the word sets of the parameters without which it cannot be called.
    """

    tool: Tool
    parameters: Sequence[Parameter]
    address: Address
    parsed: ParsedName
    verb: str
    lists: bool
    listed: frozenset[str]
    name_words: frozenset[str]
    text_words: frozenset[str]
    requires: frozenset[frozenset[str]]
    provides: Sequence[Provided]


def profile_of(tool: Tool) -> ToolProfile:
    """Read a tool's parameters, its name and path, and what it provides."""
    parameters, parsed, address = parameters_of(tool), parse_name(tool.name), address_of(tool)
    results = results_of(tool)
    verb = _verb(tool, parsed, address)
    name_words = frozenset(words_of(tool.name))
    required = [parameter for parameter in parameters if parameter.required]
    requires = {
        frozenset(phrase) - ROLES
        for parameter in required
        for entity in (parsed.phrase, *address.collection)
        for phrase in phrases_of(parameter, entity, address)
    }
    # `/albums?ids=` returns only what the caller can name already.
    batch = any(frozenset((*phrase, "id")) in requires for phrase in address.collection)
    lists = not batch and _lists(tool, parsed, verb, address, results)
    free = not required and verb in READING
    provides: dict[Phrase, Provided] = {}
    for words, origin in _provided(tool, parsed, verb, lists, address, results):
        core = frozenset(words) - ROLES
        if core and core not in requires and words not in provides:
            in_context = bool(CONTEXT & (name_words | set(words)))
            if address.method:  # `/user/email` is one of many e-mail addresses
                in_context &= words[-1] in WORLD
            contextual = free and origin == "named" and in_context
            provides[words] = _interned(words, core, origin, contextual)
    text = f"{' '.join(address.segments)} {tool.description[:MAX_DESCRIPTION]}"
    return ToolProfile(
        tool,
        parameters,
        address,
        parsed,
        verb,
        lists,
        frozenset(result.name for result in results if result.in_list),
        name_words,
        name_words | set(words_of(text)),
        frozenset(requires),
        tuple(provides.values()),
    )


_interned = lru_cache(maxsize=100_000)(Provided)


def phrases_of(parameter: Parameter, entity: Phrase, address: Address) -> Sequence[Phrase]:
    """Return the noun phrases that may say what a parameter is, the likeliest first.

    Args:
        entity: the object of its tool.
    """
    words = parameter_phrase(parameter.name)
    resource = address.resource_before(parameter.name)
    in_path = resource is not None
    takes_id = in_path or _takes_id(parameter)
    plumbing = len(words) == 1 and words[0] in PLUMBING and not _takes_id(parameter)
    if not words or plumbing or words_of(parameter.name)[-1] == "by":  # `group_by`
        return ()
    if address.puts(parameter.name):
        resource = ()
    entity = resource or entity
    phrases = [words]
    if len(words) == 1 and words[0] in GENERIC | KEYS and entity:
        phrases.append((*(word for word in entity if word not in words), *words))
    plural = parameter.name.casefold().endswith("s")  # `days` are a duration
    if words[-1] in CALENDAR and not plural:
        phrases.append((*words[:-1], CALENDAR[words[-1]]))
    if is_personal(parameter):
        return phrases
    if words[-1] in KEYS or (in_path and words[-1] == "name"):
        phrases.append((*(words[:-1] or resource or ()), "id"))
    elif takes_id and not set(words) <= GENERIC:
        phrases.append((*words, "id"))
    if resource:
        phrases.append((*resource, "id"))
    return tuple(dict.fromkeys(phrases))


def is_personal(parameter: Parameter) -> bool:
    """Whether callers know such a value without a lookup."""
    return parameter_phrase(parameter.name)[-1:] in _PERSONAL


def _takes_id(parameter: Parameter) -> bool:
    """Whether the description of a parameter such as `customer` says that it is an id."""
    if parameter.types and not parameter.types & {"string", "integer", "number", "array"}:
        return False
    return "id" in words_of(parameter.description[:200])


def _verb(tool: Tool, parsed: ParsedName, address: Address) -> str:
    usual = address.usual_verb
    for verb in (parsed.verb, first_verb(tool.description)):
        reads = verb not in CREATING | CHANGING
        if verb and (usual == "" or reads == (usual in READING)):
            return verb
    return usual


def _lists(
    tool: Tool, parsed: ParsedName, verb: str, address: Address, results: Sequence[Result]
) -> bool:
    if verb not in FINDING | READING or (address.segments and address.segments[-1] == "{}"):
        return False
    if verb in FINDING or any(result.in_list and not result.owner for result in results):
        return True
    last = address.segments[-1] if address.segments else ""
    return has_plural(tool.name, parsed.phrase) or any(
        has_plural(last, phrase) for phrase in address.collection
    )


def _provided(
    tool: Tool,
    parsed: ParsedName,
    verb: str,
    lists: bool,
    address: Address,
    results: Sequence[Result],
) -> Iterator[tuple[Phrase, Origin]]:
    if verb in CHECKING or verb in CHANGING or address.method in {"PUT", "PATCH", "DELETE"}:
        return
    phrases = (parsed.phrase, *address.collection)
    if parsed.before_verb and len(parsed.phrase) == 2:  # `admin.teams.list`
        phrases += (parsed.phrase[-1:],)
    entities = [phrase for phrase in dict.fromkeys(phrases) if phrase]
    by_key = address.segments[-1:] == ("{}",)
    if parsed.phrase and parsed.verb and verb not in CREATING and not by_key:
        yield parsed.phrase, "named"
    origin = _origin_of_id(verb, lists, "to" in words_of(tool.name), address, results)
    for phrase in entities:
        if origin is not None and phrase[-1] not in ID_NOUNS:
            yield (*phrase, "id"), origin
    for result in results:
        yield from _provided_by_result(result, lists)


def _origin_of_id(
    verb: str, lists: bool, adds: bool, address: Address, results: Sequence[Result]
) -> Origin | None:
    if lists:
        return "listed"
    if verb in CREATING:  # `add_user_to_group` creates no user
        return None if adds else "created"
    # Where a schema says what is returned, what reads one thing returns the id only if it says so.
    says_id = not results or any(words_of(result.name) == ("id",) for result in results)
    return "found" if verb in READING and says_id and not address.segments else None


def _provided_by_result(result: Result, lists: bool) -> Iterator[tuple[Phrase, Origin]]:
    """Yield what an outermost property provides, and the ids of an outermost list."""
    words = noun_phrase(words_of(result.name))
    if result.in_list and words and words[-1] in KEYS:
        owner = noun_phrase(words_of(result.owner))
        if owner and not set(owner) <= GENERIC:
            yield (*owner, "id"), "listed" if lists else "contained"
    elif words and not result.in_list and not result.owner and not set(words) <= GENERIC | KEYS:
        yield words, "schema"
