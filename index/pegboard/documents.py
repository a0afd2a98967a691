"""The documents of a tool: the texts that an index encodes and searches. Pure text, no encoder.

Descriptions become plain sentences, and those that many tools of the catalog share are left out,
also of arguments: an encoder reads only the first words of a text, and what all tools say tells
none apart. If a description has no other sentence, its first one stays.

The shape of an index decides how many documents a tool has:

- `single` joins the parts of a tool into one document (Toolshed, section 3.3).
- `centroid` has one row per tool, too, but its questions are encoded one by one, and the row's
  vector is the normalised sum: a long text dilutes each of its sentences.
- `multi` has a row for the name and description, one for the arguments, one for the topics, and one
  for each question; a tool scores by its best row.

A name `getRecord_v2` is embedded as `get Record v2`; the `tools` table keeps the name itself.
"""

import re
from collections.abc import Collection, Iterator
from typing import Literal, get_args

from pegboard.records import Agent, Enrichment, Tool
from pegboard.text.boilerplate import argument_descriptions, sentence_key
from pegboard.text.plain_text import joined, sentences, shortened
from pegboard.text.redaction import redact_credentials
from pegboard.text.words import identifier_words

Part = Literal["name", "description", "arguments", "questions", "topics", "agent"]
Shape = Literal["centroid", "single", "multi"]
PARTS: tuple[Part, ...] = get_args(Part)
DEFAULT_PARTS: tuple[Part, ...] = tuple(part for part in PARTS if part != "agent")
NOTHING = Enrichment()
QUESTIONS = 10
"""Default maximum number of questions of a tool in an index."""
MAX_BODY = 1_000
"""Maximum number of characters of a skill's body after its description; encoders read no more."""
_SIGNATURE = re.compile(r"[\w.]++\(.*\)")
"""A call signature such as `arange(start, stop, /)`, with which NumPy's descriptions begin."""


def documents_of(
    tool: Tool,
    agent: Agent,
    enrichment: Enrichment = NOTHING,
    boilerplate: Collection[str] = (),
    *,
    parts: Collection[Part] = DEFAULT_PARTS,
    shape: Shape = "centroid",
    questions: int = QUESTIONS,
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield the documents of one tool as (part, number, texts to encode).

    Every tool has at least one, and no text is blank. They contain nothing of `enrichment.avoid`,
    and no value that looks like a credential.

    Args:
        boilerplate: the keys of sentences that many tools of the catalog share.
        parts: what of a tool is in its documents.
        shape: see the top of the module.
        questions: the most questions of a tool.
    """
    name = identifier_words(tool.name) or tool.name
    described = _described(tool, enrichment, boilerplate) if "description" in parts else []
    heads = {"agent": identifier_words(agent.name), "name": name, "description": joined(described)}
    head = ". ".join(text for part, text in heads.items() if part in parts and text)
    if "description" in parts and (body := _body(tool, agent)):
        head = f"{head}\n{body}"
    arguments = _arguments(tool, enrichment, boilerplate) if "arguments" in parts else ""
    topics = "; ".join(enrichment.topics) if "topics" in parts else ""
    topics = f"Topics: {topics}" if topics else ""
    first_questions = _questions(tool, enrichment)[:questions] if "questions" in parts else ()
    rows = (
        _rows_by_part(name, head, arguments, topics, first_questions)
        if shape == "multi"
        else _single_row(
            name, "\n".join(filter(None, (head, arguments, topics))), first_questions, shape
        )
    )
    for part, number, texts in rows:
        yield part, number, tuple(redact_credentials(text) for text in texts)


def summary_of(
    tool: Tool,
    parts: Collection[Part] = DEFAULT_PARTS,
    enrichment: Enrichment = NOTHING,
    boilerplate: Collection[str] = (),
) -> str:
    """Return a tool's name in words and the first sentence of its description; never blank.

    Args:
        parts: of the index; without the description, the name alone.
        boilerplate: the keys of sentences that many tools of the catalog share.
    """
    name = identifier_words(tool.name) or tool.name
    described = _described(tool, enrichment, boilerplate)[:1] if "description" in parts else []
    return redact_credentials(". ".join((name, *map(shortened, described))))


def agent_text(agent: Agent, written: str = "") -> str:
    """Return what is encoded of an agent: its name in words, and its description.

    Args:
        written: a description by an LLM, which replaces the catalog's.
    """
    description = joined(sentences(written or agent.description))
    name = identifier_words(agent.name) or agent.name
    return redact_credentials(". ".join(text for text in (name, description) if text))


def _rows_by_part(
    name: str, head: str, arguments: str, topics: str, questions: tuple[str, ...]
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    yield "description", 0, (head or name,)
    if arguments:
        yield "arguments", 0, (f"{name}. {arguments}",)
    if topics:
        yield "topics", 0, (f"{name}. {topics}",)
    for number, question in enumerate(questions):
        yield "question", number, (question,)


def _single_row(
    name: str, head: str, questions: tuple[str, ...], shape: Shape
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    if shape == "single":
        questions = (" ".join(questions),)
    texts = tuple(text for text in (head, *questions) if text) or (name,)
    yield "document", 0, ("\n".join(texts),) if shape == "single" else texts


def _described(tool: Tool, enrichment: Enrichment, boilerplate: Collection[str]) -> list[str]:
    """The sentences of a tool's description."""
    if enrichment.description:
        return sentences(enrichment.description)
    every = [
        sentence for sentence in sentences(tool.description) if not _SIGNATURE.fullmatch(sentence)
    ]
    return _own(every, boilerplate) or every[:1]


def _body(tool: Tool, agent: Agent) -> str:
    """The beginning of a skill's body: it says what the skill covers; "" of other rows."""
    body = tool.annotations.get("body") if agent.kind == "skill" else None
    return joined(sentences(body))[:MAX_BODY] if isinstance(body, str) else ""


def _own(every: list[str], boilerplate: Collection[str]) -> list[str]:
    return [sentence for sentence in every if sentence_key(sentence) not in boilerplate]


def _questions(tool: Tool, enrichment: Enrichment) -> tuple[str, ...]:
    """The catalog's own examples first, then generated questions; each once."""
    texts = (*tool.examples, *enrichment.questions)
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def _arguments(tool: Tool, enrichment: Enrichment, boilerplate: Collection[str]) -> str:
    arguments: list[str] = []
    for name, declared in argument_descriptions(tool.input_schema).items():
        written = enrichment.arguments.get(name)
        parts = sentences(written) if written else _own(sentences(declared), boilerplate)
        arguments.append(
            ": ".join(text for text in (identifier_words(name), joined(parts)) if text)
        )
    return f"Arguments: {'; '.join(arguments)}" if arguments else ""
