"""The documents of a tool: the texts that an index encodes and searches. Pure text, no encoder.

The shape of an index decides how many documents a tool has:

- `single` joins the parts of a tool into one document (Toolshed, section 3.3).
- `centroid` has one row per tool, too, but its questions are encoded one by one, and the row's
  vector is the normalised sum: a long text dilutes each of its sentences.
- `multi` has a row for the name and description, one for the arguments, one for the topics, and one
  for each question; a tool scores by its best row.

A name `getRecord_v2` is embedded as `get Record v2`; the `tools` table keeps the name itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from pegboard.records import Agent, Enrichment, Tool
from pegboard.redaction import redact_credentials
from pegboard.search.text import identifier_words

Part = Literal["name", "description", "arguments", "questions", "topics", "agent"]
Shape = Literal["centroid", "single", "multi"]
PARTS: tuple[Part, ...] = get_args(Part)
DEFAULT_PARTS: tuple[Part, ...] = tuple(part for part in PARTS if part != "agent")
NOTHING = Enrichment()


class IndexShape(Protocol):
    """What decides the documents of an index.

    Attributes:
        parts: what of a tool is in its documents.
        shape: see the top of the module.
        questions: the most questions of a tool.
    """

    @property
    def parts(self) -> tuple[Part, ...]: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def questions(self) -> int: ...


@dataclass(frozen=True, slots=True)
class DefaultIndex:
    """The documents of an index that is not configured."""

    parts: tuple[Part, ...] = DEFAULT_PARTS
    shape: Shape = "centroid"
    questions: int = 10


def documents_of(
    tool: Tool, agent: Agent, index: IndexShape, enrichment: Enrichment = NOTHING
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield the documents of one tool as (part, number, texts to encode).

    Every tool has at least one, and no text is blank. They contain nothing of `enrichment.avoid`,
    and no value that looks like a credential.
    """
    for part, number, texts in _documents(tool, agent, index, enrichment):
        yield part, number, tuple(redact_credentials(text) for text in texts)


def agent_text(agent: Agent, written: str = "") -> str:
    """Return what is encoded of an agent: its name in words, and its description.

    Args:
        written: a description by an LLM, which replaces the catalog's.
    """
    description = " ".join((written or agent.description).split())
    name = identifier_words(agent.name) or agent.name
    return redact_credentials(". ".join(text for text in (name, description) if text))


def _documents(
    tool: Tool, agent: Agent, index: IndexShape, enrichment: Enrichment
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    name = identifier_words(tool.name) or tool.name
    parts = {
        part: _text(part, tool, agent, enrichment) for part in index.parts if part != "questions"
    }
    described = ". ".join(
        parts[part] for part in ("agent", "name", "description") if parts.get(part)
    )
    arguments, topics = parts.get("arguments", ""), parts.get("topics", "")
    questions: tuple[str, ...] = ()
    if "questions" in index.parts:
        questions = _questions(tool, enrichment)[: index.questions]
    if index.shape == "multi":
        yield "description", 0, (described or name,)
        if arguments:
            yield "arguments", 0, (f"{name}. {arguments}",)
        if topics:
            yield "topics", 0, (f"{name}. {topics}",)
        for number, question in enumerate(questions):
            yield "question", number, (question,)
        return
    head = "\n".join(text for text in (described, arguments, topics) if text)
    if index.shape == "single":
        questions = (" ".join(questions),)
    texts = tuple(text for text in (head, *questions) if text) or (name,)
    yield "document", 0, texts if index.shape == "centroid" else ("\n".join(texts),)


def _text(part: str, tool: Tool, agent: Agent, enrichment: Enrichment) -> str:
    if part == "name":
        return identifier_words(tool.name) or tool.name
    if part == "agent":
        return identifier_words(agent.name)
    if part == "arguments":
        return _arguments(tool.input_schema, enrichment.arguments)
    if part == "topics":
        return f"Topics: {'; '.join(enrichment.topics)}" if enrichment.topics else ""
    return " ".join((enrichment.description or tool.description).split())


def _questions(tool: Tool, enrichment: Enrichment) -> tuple[str, ...]:
    """The catalog's own examples first, then generated questions; each once."""
    texts = (*tool.examples, *enrichment.questions)
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def _arguments(schema: Mapping[str, Any], written: Mapping[str, str]) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return ""
    arguments: list[str] = []
    for name, spec in properties.items():
        declared = spec.get("description") if isinstance(spec, Mapping) else None
        text = written.get(name) or declared
        words = identifier_words(str(name))
        if isinstance(text, str) and text.strip():
            words = f"{words}: {' '.join(text.split())}"
        arguments.append(words)
    return f"Arguments: {'; '.join(arguments)}"
