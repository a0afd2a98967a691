"""The rules that read one definition: what it lacks, what contradicts itself, and what the APIs of
models or MCP's clients refuse.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from mcp.shared.inbound import find_invalid_x_mcp_header

from pegboard.documents import operation_sentence
from pegboard.hits import Hit
from pegboard.naming import MAX_CALL_NAME, valid_name
from pegboard.records import Agent, Tool
from pegboard.schemas.for_models import model_schema, refused_keywords
from pegboard.schemas.repair import repaired
from pegboard.text.boilerplate import (
    argument_descriptions,
    boilerplate,
    sentence_key,
    sentence_keys,
)
from pegboard.text.plain_text import sentences
from pegboard.text.words import singular_words
from pegboard.tokens import definition_tokens, estimate_tokens
from tasks.lint.findings import Finding, vague_names

MCP_NAME = 128
"""Maximum characters of a tool's name in MCP."""
MENDED = 3
"""Maximum changes of a schema that a finding names."""
MANY_TOKENS = 3_000
"""Tokens from which a definition counts as large: thirteen times the median of real catalogs."""
LEAST_BOILERPLATE = 5_000
"""Minimum tokens in shared sentences of a catalog for a finding."""
_QUOTED = r"""[`"']([A-Za-z_][\w.-]*)(?:\[\])?[`"']"""
_PARAMETER = re.compile(
    rf"\b(?:parameter|argument)\s+{_QUOTED}"
    rf"|{_QUOTED}\s+(?:(?:query|path|body|input|request)\s+)?(?:parameter|argument)\b"
)
_DEFAULT = re.compile(
    r"""\bdefaults?(?:\s+value)?(?:\s+is|\s+to|\s*:|\s*=)\s*([`"']?)([\w.+-]*\w)\1""", re.IGNORECASE
)
_ELSEWHERE = re.compile(
    r"\b(?:not|no longer|renamed|removed|deprecated|instead of|without|endpoint)\b"
)
"""Words beside a parameter that need not be there: it is gone, or another tool's."""
_CONDITION = re.compile(r"\b(?:if|when|unless|for)\b[^.]*$", re.IGNORECASE)


def text_findings(name: str, tools: Sequence[Tool]) -> Iterator[Finding]:
    """Yield what these rules find in a catalog's tools.

    Args:
        name: of the catalog.
    """
    shared = boilerplate(tools)
    counts = Counter(key for tool in tools for key in sentence_keys(tool))
    for tool in tools:
        yield from _purpose(tool, shared)
        yield from _arguments(tool)
        yield from _contradictions(tool)
        yield from _refused(tool)
        yield from _size(tool)
    yield from _name_characters(tools)
    yield from _boilerplate(name, tools, {key: counts[key] for key in shared})


def _purpose(tool: Tool, shared: Collection[str]) -> Iterator[Finding]:
    """A description that is missing, or that many tools have."""
    every = sentences(tool.description)
    if all(sentence_key(sentence) in shared for sentence in every):
        reason = "it has no description"
        if every:
            reason = f'each sentence of its description is shared by many tools: "{_cut(every[0])}"'
        yield Finding("no-purpose", tool.id, reason, _draft(tool))


def _draft(tool: Tool) -> str:
    """A first sentence, from the method and the path of an operation or the words of the name."""
    return f"Say what it does, to what, and when to use it: {operation_sentence(tool)} ..."


def _arguments(tool: Tool) -> Iterator[Finding]:
    """Parameters without a description whose names say nothing. A tool's only one may do so, and a
    single letter, as `b` beside `a`.
    """
    described = argument_descriptions(tool.input_schema)
    mentioned = set(singular_words(f"{tool.name} {tool.description}"))
    vague = [
        name
        for name, text in described.items()
        if not text.strip()
        and name.strip("_").lower() in vague_names()
        and not set(singular_words(name)) <= mentioned
        and not _is_empty(tool.input_schema["properties"][name])
    ]
    if len(described) > 1 and len("".join(vague)) > 1:
        yield Finding(
            "unexplained-argument",
            tool.id,
            f"{', '.join(vague)} ({len(vague)} of {len(described)} parameters): no description, "
            "and a name that says nothing of what belongs there",
            "Describe each with its meaning, its unit or format, and an example.",
            vague[0],
        )


def _is_empty(schema: Any) -> bool:
    """Whether a parameter is an object without properties, as the body of a GET operation is."""
    return (
        isinstance(schema, Mapping)
        and schema.get("type") == "object"
        and not schema.get("properties")
    )


def _contradictions(tool: Tool) -> Iterator[Finding]:
    """Descriptions that say something else than the schema."""
    parts = list(_properties(tool.input_schema, ""))
    names = {path.rpartition(".")[2] for path, _ in parts} | {
        path.rpartition(".")[2] for path, _ in _properties(tool.output_schema or {}, "")
    }
    for match in _PARAMETER.finditer(tool.description):
        mentioned = match[1] or match[2]
        if mentioned.rpartition(".")[2] not in names and not _is_elsewhere(tool.description, match):
            reason = f'the description mentions the parameter "{mentioned}", which the schema lacks'
            suggestion = f"Add it to the schema, or name one of: {', '.join(sorted(names)[:8])}."
            yield Finding("contradiction", tool.id, reason, suggestion, mentioned)
    for path, schema in parts:
        text = schema.get("description")
        text = text if isinstance(text, str) else ""
        for reason in _default_problems(text, schema):
            suggestion = "Correct the description or the schema."
            yield Finding("contradiction", tool.id, reason, suggestion, path)


def _is_elsewhere(text: str, match: re.Match[str]) -> bool:
    """Whether a mention says that the parameter is gone, or another tool's."""
    return bool(_ELSEWHERE.search(text[max(0, match.start() - 60) : match.end() + 60].lower()))


def _default_problems(text: str, schema: Mapping[str, Any]) -> Iterator[str]:
    default = schema.get("default")
    if default is None:
        return
    if (values := schema.get("enum")) and default not in values:
        yield f"its default {json.dumps(default)} is none of its values: {json.dumps(values)}"
    written = json.dumps(default).strip('"').lower()
    for match in _DEFAULT.finditer(text):
        described = match[2].lower()
        always = not _CONDITION.search(text[: match.start()])
        if always and described != written and _is_value(described, match[1], schema, default):
            yield f"its description says that the default is {match[2]}, the schema {written}"


def _is_value(word: str, quote: str, schema: Mapping[str, Any], default: Any) -> bool:
    """Whether a word behind "default is" can be a value of the parameter."""
    if isinstance(default, bool):
        return word in ("true", "false")
    if isinstance(default, int | float):
        return bool(re.fullmatch(r"[+-]?\d+(?:\.\d+)?", word)) and float(word) != float(default)
    values = [str(value).lower() for value in schema.get("enum") or ()]
    return isinstance(default, str) and (word in values if values else bool(quote))


def _properties(schema: Any, above: str, depth: int = 6) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The properties of a schema by their paths, also those of objects and lists within."""
    if not isinstance(schema, Mapping) or not depth:
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(part, Mapping):
            yield f"{above}{name}", part
            yield from _properties(part, f"{above}{name}.", depth - 1)
    parts = [schema.get("items")]
    for keyword in ("anyOf", "oneOf", "allOf"):
        parts += schema.get(keyword) or ()
    definitions = schema.get("$defs")
    parts += definitions.values() if isinstance(definitions, Mapping) else ()
    for part in parts:
        yield from _properties(part, above, depth - 1)


def _refused(tool: Tool) -> Iterator[Finding]:
    """What the APIs of models and MCP's clients refuse."""
    if (length := len(tool.name)) > MAX_CALL_NAME:
        limits = f"OpenAI and Anthropic take {MAX_CALL_NAME}"
        limits += f", MCP {MCP_NAME}" * (length > MCP_NAME)
        short = re.sub(r"(?:[_-][^_-]*|(?<=[a-z])[A-Z][a-z]*)$", "", valid_name(tool.name))
        reason = f"its name has {length} characters; {limits}"
        yield Finding("name-length", tool.id, reason, f"Shorten it to such as {short}.")
    if keywords := refused_keywords(tool.input_schema):
        reason = f"OpenAI and Anthropic refuse {', '.join(keywords)} at the top of its input schema"
        suggestion = "List all properties in one object, and say which belong together."
        yield Finding("schema-alternatives", tool.id, reason, suggestion)
    changes = repaired(tool.input_schema).changes
    if changes:
        more = f" and {len(changes) - MENDED} more" if len(changes) > MENDED else ""
        reason = f"its input schema is mended for models: {'; '.join(changes[:MENDED])}{more}"
        yield Finding("schema-mended", tool.id, reason, "Write valid JSON Schema 2020-12.")
    if names := model_schema(tool.input_schema).names:
        pairs = [f"{own} as {shown}" for shown, own in names.items()]
        more = f" and {len(pairs) - MENDED} more" if len(pairs) > MENDED else ""
        reason = f"models are given {', '.join(pairs[:MENDED])}{more}; Anthropic refuses the names"
        suggestion = "Name properties with letters, digits, _, - and . only, at most 64."
        yield Finding("property-names", tool.id, reason, suggestion, next(iter(names.values())))
    if reason := find_invalid_x_mcp_header(tool.input_schema):
        yield Finding("mcp-header", tool.id, reason, "Correct it: clients drop such a tool.")


def _name_characters(tools: Sequence[Tool]) -> Iterator[Finding]:
    """Characters of names that the APIs of models refuse: a finding at the first of the tools."""
    by_characters: dict[str, list[Tool]] = {}
    for tool in tools:
        if refused := sorted(set(re.findall(r"[^A-Za-z0-9_-]", tool.name))):
            by_characters.setdefault(" ".join(refused), []).append(tool)
    for characters, holders in by_characters.items():
        yield Finding(
            "name-characters",
            holders[0].id,
            f"{len(holders)} of {len(tools)} names have {characters!r}; OpenAI and Anthropic take "
            "letters, digits, _ and -",
            f"Rename, such as {valid_name(holders[0].name)}.",
        )


def _size(tool: Tool) -> Iterator[Finding]:
    """A definition of many tokens."""
    agent = Agent(tool.agent, tool.catalog, "")
    total = definition_tokens(Hit(tool, agent, 0.0, {}))
    if total < MANY_TOKENS:
        return
    sizes = {
        name: estimate_tokens(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))
        for name, schema in tool.input_schema.get("properties", {}).items()
    }
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    shares = ", ".join(f"{name} {sizes[name]:,.0f}" for name in largest)
    yield Finding(
        "many-tokens",
        tool.id,
        f"its definition takes about {total:,.0f} tokens in each request that offers it: {shares}",
        "Leave out what a model does not need to call it, or split the tool.",
        largest[0] if largest else "",
    )


def _boilerplate(
    catalog: str, tools: Sequence[Tool], counts: Mapping[str, int]
) -> Iterator[Finding]:
    """Sentences that many tools of a catalog repeat, by what they cost together."""
    texts = {
        sentence_key(sentence): sentence
        for tool in tools
        for sentence in sentences(tool.description)
        if sentence_key(sentence) in counts
    }
    costs = {key: counts[key] * estimate_tokens(text) for key, text in texts.items()}
    if not costs or sum(costs.values()) < LEAST_BOILERPLATE:
        return
    costliest = max(costs, key=lambda key: costs[key])
    yield Finding(
        "boilerplate",
        catalog,
        f"{len(costs)} sentences that stand in many of {len(tools)} descriptions take "
        f'{sum(costs.values()):,.0f} tokens, {counts[costliest]} times "{_cut(texts[costliest])}"',
        "Say it once, in the instructions of the server or the description of the API.",
    )


def _cut(text: str, length: int = 100) -> str:
    return text if len(text) <= length else f"{text[:length].rstrip()} ..."
