"""What a tool needs and what it provides, as noun phrases, and whether the one fits the other.

A parameter needs the noun phrase of its name, with the object of its tool before it where the name
alone says nothing (`id` of `cancel_order` is an order id). What is provided fits if the last words
agree, where English puts the main noun, and the rest does not contradict.

A tool provides what a caller has after the call and had not before. The output schema says so
where there is one, the name (`get_stock_ticker`: a stock ticker; `search_orders`: orders, and so
their ids) and the description (`Returns the appointment ids ...`). What a tool itself requires, it
does not provide."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, cast

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
    READING,
    ROLES,
    WORLD,
    ParsedName,
    first_verb,
    noun_phrase,
    parameter_phrase,
    parse_name,
    returned_phrases,
    words_of,
)

MAX_DEPTH = 4
"""Levels of an output schema that are read, references included."""
MAX_PARAMETERS = 200
"""Parameters of a tool that are looked at, in the schema's order."""
MAX_RESULTS = 60
"""Properties of an output schema that are read."""
MAX_DESCRIPTION = 2_000
"""Characters of a tool's description whose words count."""
MAX_PARAMETER_DESCRIPTION = 500
"""Characters of a parameter's description whose words count."""

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_INDIRECT = frozenset(("$ref", *_ALTERNATIVES))

Schema = Mapping[str, Any]
Fit = Literal["exact", "here", "narrow", "wide"]
Origin = Literal["schema", "listed", "named", "found", "told"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool; `required` means without a default. `types` may be empty."""

    name: str
    description: str
    required: bool
    types: frozenset[str]
    has_choices: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One property of a tool's output, and the name of the object or list that it is part of."""

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Provided:
    """Something that a tool provides.

    Attributes:
        words: a noun phrase.
        core: its words without `ROLES`.
        origin: `schema`, a property of the output schema; `listed`, what a thing in the output is
            identified by; `named`, the tool's name; `found`, the id of what the name says; `told`,
            the description.
        contextual: it needs no argument and is the caller's own: the current date.
    """

    words: tuple[str, ...]
    core: frozenset[str]
    origin: Origin
    contextual: bool


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """A tool as far as dependencies are concerned.

    Attributes:
        name_words, text_words: the words of its name, and of name and description.
        requires: the word sets of the parameters without which it cannot be called.
    """

    tool: Tool
    parameters: Sequence[Parameter]
    parsed: ParsedName
    verb: str
    name_words: frozenset[str]
    text_words: frozenset[str]
    requires: frozenset[frozenset[str]]
    provides: Sequence[Provided]


def profile_of(tool: Tool) -> ToolProfile:
    """Read a tool's parameters, its name and what it provides."""
    parameters, parsed = parameters_of(tool), parse_name(tool.name)
    verb = parsed.verb or first_verb(tool.description)
    name_words = frozenset(words_of(tool.name))
    required = [parameter for parameter in parameters if parameter.required]
    requires = {frozenset(words_of(parameter.name)) - ROLES for parameter in required}
    # `get_order(id)` requires an order's id as much as `get_order(order_id)` does.
    requires |= {frozenset(parsed.phrase) | words for words in requires if words <= GENERIC}
    free = not required and verb in READING
    provides: dict[tuple[str, ...], Provided] = {}
    for words, origin in _provided(tool, parsed, verb):
        core = frozenset(words) - ROLES
        if core and core not in requires and words not in provides:
            in_context = bool(CONTEXT & (name_words | set(words)))
            contextual = free and origin != "found" and in_context
            provides[words] = _interned(words, core, origin, contextual)
    return ToolProfile(
        tool,
        parameters,
        parsed,
        verb,
        name_words,
        name_words | set(words_of(tool.description[:MAX_DESCRIPTION])),
        frozenset(requires),
        tuple(provides.values()),
    )


_interned = lru_cache(maxsize=100_000)(Provided)


def _provided(
    tool: Tool, parsed: ParsedName, verb: str
) -> Iterator[tuple[tuple[str, ...], Origin]]:
    if verb in CHECKING or (verb in CHANGING and not tool.output_schema):
        return
    entity = parsed.phrase if verb not in CHANGING else ()
    if entity and verb and verb not in CREATING:
        yield entity, "named"
    results = results_of(tool)
    for result in results:
        yield from _provided_by_result(result, entity)
    # Where a schema says what is returned, only a search or a creation returns ids besides.
    returns_ids = FINDING | CREATING | (READING if not results else frozenset())
    if entity and entity[-1] not in ID_NOUNS and verb in returns_ids:
        yield (*entity, "id"), "found"
    if verb not in CHANGING:
        for phrase in returned_phrases(tool.description):
            yield phrase, "told"


def _provided_by_result(
    result: Result, entity: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Origin]]:
    words = noun_phrase(words_of(result.name))
    if words and set(words) <= GENERIC and words[-1] in ID_NOUNS:
        # The `id` of an order is an order id.
        if owner := noun_phrase(words_of(result.owner)):
            yield (*(word for word in owner if word not in words), *words), "listed"
            return
        words = (*(word for word in entity if word not in words), *words)
    if words:
        yield words, "schema"


@dataclass(frozen=True, slots=True)
class Need:
    """What a parameter needs.

    Attributes:
        words: a noun phrase; `core` is its words without `ROLES`.
        text: the words of the tool, which with `description` may explain more of it.
    """

    words: tuple[str, ...]
    core: frozenset[str]
    text: frozenset[str]
    description: str
    has_choices: bool

    def context(self) -> frozenset[str]:
        """Return the words of the tool and of the parameter's description."""
        return self.text.union(words_of(self.description))

    def explains(self, words: frozenset[str]) -> bool:
        """Whether all these words are in the context."""
        rest = words - self.text
        return not rest or rest.issubset(words_of(self.description))

    def fit(self, provided: Provided, near: bool, text: frozenset[str] | None) -> Fit | None:
        """Return how what is provided fits; None if it does not.

        Args:
            near: whether the same agent provides it.
            text: the words of the tool that provides it; None to leave open whether they explain
                the rest.
        """
        needs, gives, head = self.core, provided.core, self.words[-1]
        own = provided.contextual and (head in WORLD or (near and not needs <= GENERIC))
        if own and needs - CONTEXT <= gives and self.explains(gives - needs - CONTEXT):
            return "here"
        too_generic = needs <= GENERIC and (len(needs) == 1 or head not in ID_NOUNS)
        if self.has_choices or head not in gives or too_generic:
            return None
        if needs == gives:
            return "exact"
        # The id of a robot's status is not the id of the robot: the owner has to agree, too.
        owners = {*self.words[-2:-1], *provided.words[-2:-1]}
        if gives <= GENERIC or (head in ID_NOUNS and not owners <= needs & gives):
            return None
        if needs < gives:
            return "narrow" if self.explains(gives - needs) else None
        return "wide" if gives < needs and (text is None or needs - gives <= text) else None


def needs_of(profile: ToolProfile, parameter: Parameter) -> Iterator[Need]:
    """Yield what a parameter may need, the likeliest first."""
    words = parameter_phrase(parameter.name)
    if not words or words[-1] in ROLES or parameter.types == {"boolean"}:
        return
    entity = profile.parsed.phrase
    phrases = [words]
    if len(words) == 1 and words[0] in GENERIC and entity:
        phrases.append((*(word for word in entity if word not in words), *words))
    plural = parameter.name.casefold().endswith("s")  # `days` are a duration
    if words[-1] in CALENDAR and not plural:
        phrases.append((*words[:-1], CALENDAR[words[-1]]))
    for phrase in phrases:
        # What creates a thing gives it the id that it takes.
        creates = profile.parsed.verb in CREATING and set(entity) == set(phrase[:-1])
        if creates and phrase[-1] in ID_NOUNS:
            continue
        if core := frozenset(phrase) - ROLES:
            description = parameter.description[:MAX_PARAMETER_DESCRIPTION]
            yield Need(phrase, core, profile.text_words, description, parameter.has_choices)


def parameters_of(tool: Tool) -> list[Parameter]:
    """List the parameters of a tool in the schema's order."""
    schema = tool.input_schema
    listed = schema.get("required")
    names = cast("list[Any]", listed) if isinstance(listed, list) else []
    required = {name for name in names if isinstance(name, str)}
    parameters: list[Parameter] = []
    for name, raw in islice(_properties(schema), MAX_PARAMETERS):
        parts = _parts(raw, schema)
        texts = (part["description"] for part in parts if isinstance(part.get("description"), str))
        parameters.append(
            Parameter(
                name=name,
                description=next(texts, ""),
                required=name in required and not any("default" in part for part in parts),
                types=_types(parts),
                has_choices=any("enum" in part or "const" in part for part in parts),
            )
        )
    return parameters


def results_of(tool: Tool) -> list[Result]:
    """List the properties of a tool's output, outermost first; none without an output schema."""
    schema = tool.output_schema or {}
    results: list[Result] = []
    level: list[tuple[str, Schema]] = [("", schema)]
    for _ in range(MAX_DEPTH):
        below: list[tuple[str, Schema]] = []
        for owner, nested in level:
            for part in _parts(nested, schema):
                if isinstance(items := part.get("items"), Mapping):
                    below.append((owner, cast("Schema", items)))
                for name, raw in _properties(part):
                    results.append(Result(name, owner))
                    below.append((name, raw))
        level = below[:MAX_RESULTS]
    return results[:MAX_RESULTS]


def _properties(schema: Schema) -> Iterator[tuple[str, Schema]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, raw in cast("Schema", properties).items():
            yield name, cast("Schema", raw) if isinstance(raw, Mapping) else {}


def _parts(schema: Schema, root: Schema) -> list[Schema]:
    """Return a subschema, what it refers to, and its alternatives, each once."""
    if _INDIRECT.isdisjoint(schema):
        return [schema]
    parts: list[Schema] = []
    waiting = [schema]
    while waiting and len(parts) < MAX_RESULTS:
        part = waiting.pop(0)
        if any(part is other for other in parts):
            continue
        parts.append(part)
        if (target := _resolve(part.get("$ref"), root)) is not None:
            waiting.append(target)
        for keyword in _ALTERNATIVES:
            options = part.get(keyword)
            if isinstance(options, list):
                mappings = [
                    item for item in cast("list[Any]", options) if isinstance(item, Mapping)
                ]
                waiting += cast("list[Schema]", mappings)
    return parts


def _resolve(reference: Any, root: Schema) -> Schema | None:
    """Return the target of a reference within the schema, or None; others are not followed."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        target = cast("Schema", target).get(name) if isinstance(target, Mapping) else None
    return cast("Schema", target) if isinstance(target, Mapping) else None


def _types(parts: list[Schema]) -> frozenset[str]:
    types: set[str] = set()
    for part in parts:
        value = part.get("type")
        names = cast("list[Any]", value) if isinstance(value, list) else [value]
        types |= {name for name in names if isinstance(name, str)}
    return frozenset(types - {"null"})
