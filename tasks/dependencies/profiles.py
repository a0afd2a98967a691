"""Extract what a tool needs and what it provides, as noun phrases, from its names, schemas and
path.

A parameter needs the noun phrase of its name, prefixed by the object of its tool if the name is
generic (`id` of `cancel_order` is an order id). In a path, the segment before a parameter says what
it identifies: `/customers/{ref}` takes a customer's id.

A tool provides values that the caller did not have before the call. A tool that lists or finds
things provides their ids, a tool that creates a thing provides its id. Names (`get_stock_ticker`: a
stock ticker), paths and output schemas say which. A tool does not provide what it requires itself.
Other ids in an output, such as the owner's id of each thing in a list, are not provided: they are
not the purpose of the call."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    KEYS,
    READING,
    ROLES,
    WORLD,
    ParsedName,
    has_plural,
    noun_phrase,
    parameter_phrase,
    parse_name,
    words_of,
)

MAX_DESCRIPTION = 2_000
"""Largest number of characters that are read of a tool's description."""
MAX_PARAMETERS = 200
"""Largest number of parameters that are read of a tool, in the schema's order."""
MAX_RESULTS = 60
"""Largest number of properties that are read of an output schema."""
MAX_SEGMENTS = 30
"""Largest number of segments that are read of a path."""

_PERSONAL = {("username",), ("login",), ("nickname",), ("email",)}
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_INDIRECT = frozenset(("$ref", *_ALTERNATIVES))
_USUAL_VERBS = {
    **dict.fromkeys(("GET", "HEAD"), "get"),
    **dict.fromkeys(("PUT", "PATCH"), "update"),
    **{"POST": "create", "DELETE": "delete"},
}

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    Attributes:
        required: whether it is required and has no default.
        types: its JSON types, without null, and `object` for an array of objects; may be empty.
        has_choices: whether its values are an enumeration or a constant.
    """

    name: str
    description: str
    required: bool
    types: frozenset[str]
    has_choices: bool

    @property
    def takes_values(self) -> bool:
        """Whether its value may come from another tool: it is neither a flag nor an object."""
        scalars = self.types & {"string", "integer", "number"}
        return bool(scalars) or self.types in (frozenset(), {"array"})


@dataclass(frozen=True, slots=True)
class Result:
    """A property of the things in a list that a tool returns.

    Attributes:
        owner: the name of the list; empty if it is generic, such as `items`.
    """

    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Address:
    """Method and path of an HTTP operation; both empty for other tools.

    Attributes:
        segments: the segments of the path, `{}` for each parameter.
        places: the position in `segments` of each parameter in the path.
    """

    method: str = ""
    segments: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def usual_verb(self) -> str:
        """The method's action on the path's resource; empty if unknown."""
        posts_to_one = self.method == "POST" and self.segments[-1:] == ("{}",)
        return "update" if posts_to_one else _USUAL_VERBS.get(self.method, "")

    @property
    def collection(self) -> Sequence[tuple[str, ...]]:
        """The noun phrases for the resource at the end of the path: a member for
        `/teams/{team}/members`.
        """
        for segment in reversed(self.segments):
            if segment == "{}":
                continue
            words = words_of(segment)
            if len(words) == 1 and has_plural(segment, words):  # `shows` may be a verb, too.
                return [words]
            if phrase := parse_name(segment).phrase:
                return [phrase]
        return []

    def resource_before(self, parameter: str) -> tuple[str, ...] | None:
        """Return the noun phrase before a parameter in the path; None if it is not in the path."""
        place = self.places.get(parameter)
        if place is None:
            return None
        segment_before = self.segments[place - 1] if place else "{}"
        return () if segment_before == "{}" else noun_phrase(words_of(segment_before))

    def prefix_of(self, parameter: str) -> tuple[str, ...]:
        """Return the path before a parameter; empty if it is not in the path."""
        return self.segments[: self.places.get(parameter, 0)]


def address_of(tool: Tool) -> Address:
    """Read `method` and `path` of a tool's annotations."""
    method = tool.annotations.get("method")
    path = tool.annotations.get("path")
    if not isinstance(method, str) or not isinstance(path, str) or not path.startswith("/"):
        return Address()
    segments: list[str] = []
    places: dict[str, int] = {}
    for segment in path.split("/")[1 : MAX_SEGMENTS + 1]:
        if segment.startswith("{") and "}" in segment:
            name = segment[1 : segment.index("}")]
            places[name] = len(segments)
            segments.append("{}")
        elif segment:
            segments.append(segment)
    return Address(method.upper(), tuple(segments), places)


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
                types=_types(parts, schema),
                has_choices=any("enum" in part or "const" in part for part in parts),
            )
        )
    return parameters


def results_of(tool: Tool) -> list[Result]:
    """List the properties of the things in the lists that a tool returns."""
    return list(islice(_results(tool.output_schema or {}), MAX_RESULTS))


def _results(schema: Schema) -> Iterator[Result]:
    for part in _parts(schema, schema):
        yield from _results_in_list("", part, schema)
        for name, raw in _properties(part):
            owner = "" if frozenset(words_of(name)) <= GENERIC else name
            for inner in _parts(raw, schema):
                yield from _results_in_list(owner, inner, schema)
                for below, nested in _properties(inner):
                    within = owner if frozenset(words_of(below)) <= GENERIC else below
                    for part_below in _parts(nested, schema):
                        yield from _results_in_list(within, part_below, schema)


def _results_in_list(owner: str, part: Schema, root: Schema) -> Iterator[Result]:
    items = part.get("items")
    if isinstance(items, Mapping):
        for inner in _parts(cast("Schema", items), root):
            for name, _ in _properties(inner):
                yield Result(name, owner)


def _properties(schema: Schema) -> Iterator[tuple[str, Schema]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, raw in cast("Schema", properties).items():
            yield name, cast("Schema", raw) if isinstance(raw, Mapping) else {}


def _parts(schema: Schema, root: Schema) -> list[Schema]:
    """Return a subschema, the target of its reference, and its alternatives, each once."""
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
    """Return the target of a reference within the schema; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        target = cast("Schema", target).get(name) if isinstance(target, Mapping) else None
    return cast("Schema", target) if isinstance(target, Mapping) else None


def _types(parts: list[Schema], root: Schema) -> frozenset[str]:
    types: set[str] = set()
    for part in parts:
        value = part.get("type")
        names = cast("list[Any]", value) if isinstance(value, list) else [value]
        items = part.get("items")
        for item in _parts(cast("Schema", items), root) if isinstance(items, Mapping) else ():
            if "properties" in item or item.get("type") == "object":
                types.add("object")
        types |= {name for name in names if isinstance(name, str)}
    return frozenset(types - {"null"})


Origin = Literal["listed", "created", "found", "named"]
Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Provided:
    """A value that a tool provides.

    Attributes:
        words: a noun phrase for the value.
        core: its words without `ROLES`.
        origin: `listed` for the ids of things that the tool lists or finds, `created` for the id
            of a thing that it creates, `found` for the id of a thing that it reads, `named` for the
            noun phrase of its name.
        contextual: whether it belongs to the caller's context and needs no argument, such as the
            current date.
    """

    words: Phrase
    core: frozenset[str]
    origin: Origin
    contextual: bool


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """What the inference of dependencies uses of a tool.

    Attributes:
        address: its method and path; empty if it has none.
        lists: whether it returns things that the caller cannot name yet.
        name_words: the words of its name.
        text_words: the words of its name, path and description.
    """

    tool: Tool
    parameters: Sequence[Parameter]
    address: Address
    parsed: ParsedName
    verb: str
    lists: bool
    name_words: frozenset[str]
    text_words: frozenset[str]
    provides: Sequence[Provided]


def profile_of(tool: Tool) -> ToolProfile:
    """Return the profile of a tool."""
    parameters = parameters_of(tool)
    parsed = parse_name(tool.name)
    address = address_of(tool)
    results = results_of(tool)
    verb = _verb(parsed, address)
    name_words = frozenset(words_of(tool.name))
    required = [parameter for parameter in parameters if parameter.required]
    requires = {
        frozenset(phrase) - ROLES
        for parameter in required
        for entity in (parsed.phrase, *address.collection)
        for phrase in phrases_of(parameter, entity, address)
    }
    # `/albums?ids=` returns only things whose ids the caller has already.
    is_batch_read = any(frozenset((*phrase, "id")) in requires for phrase in address.collection)
    lists = not is_batch_read and _lists(tool, parsed, verb, address, results)
    needs_no_argument = not required and verb in READING
    provides: dict[Phrase, Provided] = {}
    for words, origin in _provided(parsed, verb, lists, address, results):
        core = frozenset(words) - ROLES
        if core and core not in requires and words not in provides:
            in_context = bool(CONTEXT & (name_words | set(words)))
            if address.method:  # `/user/email` is one of many e-mail addresses.
                in_context = in_context and words[-1] in WORLD
            contextual = needs_no_argument and origin == "named" and in_context
            provides[words] = _interned(words, core, origin, contextual)
    text = f"{' '.join(address.segments)} {tool.description[:MAX_DESCRIPTION]}"
    return ToolProfile(
        tool,
        parameters,
        address,
        parsed,
        verb,
        lists,
        name_words,
        name_words | set(words_of(text)),
        tuple(provides.values()),
    )


_interned = lru_cache(maxsize=100_000)(Provided)


def phrases_of(parameter: Parameter, entity: Phrase, address: Address) -> Sequence[Phrase]:
    """Return the noun phrases for what a parameter may need, the most likely first.

    Args:
        entity: the object of the parameter's tool.
    """
    words = parameter_phrase(parameter.name)
    resource = address.resource_before(parameter.name)
    in_path = resource is not None
    takes_id = in_path or _takes_id(parameter)
    if not words:
        return ()
    entity = resource or entity
    phrases = [words]
    if len(words) == 1 and words[0] in GENERIC | KEYS and entity:
        phrases.append((*(word for word in entity if word not in words), *words))
    if words[-1] in CALENDAR:
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
    """Return whether callers know the value of a parameter without a lookup."""
    return parameter_phrase(parameter.name)[-1:] in _PERSONAL


def _takes_id(parameter: Parameter) -> bool:
    """Return whether a parameter's description says that it is an id, as for `customer`."""
    if parameter.types and not parameter.types & {"string", "integer", "number", "array"}:
        return False
    return "id" in words_of(parameter.description[:200])


def _verb(parsed: ParsedName, address: Address) -> str:
    """Return the verb of the name, or that of the HTTP method if they disagree."""
    method_verb = address.usual_verb
    verb = parsed.verb
    agrees = not method_verb or (verb not in CREATING | CHANGING) == (method_verb in READING)
    return verb if verb and agrees else method_verb


def _lists(
    tool: Tool, parsed: ParsedName, verb: str, address: Address, results: Sequence[Result]
) -> bool:
    if verb not in FINDING | READING or (address.segments and address.segments[-1] == "{}"):
        return False
    if verb in FINDING or any(not result.owner for result in results):
        return True
    last_segment = address.segments[-1] if address.segments else ""
    return has_plural(tool.name, parsed.phrase) or any(
        has_plural(last_segment, phrase) for phrase in address.collection
    )


def _provided(
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
    if parsed.phrase and parsed.verb and verb not in CREATING:
        yield parsed.phrase, "named"
    origin = _origin_of_id(verb, lists, address)
    for phrase in entities:
        if origin is not None and phrase[-1] not in ID_NOUNS:
            yield (*phrase, "id"), origin
    for result in results if lists else ():
        words = noun_phrase(words_of(result.name))
        owner = noun_phrase(words_of(result.owner))
        if words and words[-1] in KEYS and owner and not set(owner) <= GENERIC:
            yield (*owner, "id"), "listed"


def _origin_of_id(verb: str, lists: bool, address: Address) -> Origin | None:
    if lists:
        return "listed"
    if verb in CREATING:
        return "created"
    return "found" if verb in READING and not address.segments else None
