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

What a catalog says beside that - titles, the path and the tags of an operation, nested arguments,
values that arguments may have - is in the text index alone (`search_words`): an encoder reads only
so many words. It is encoded, too, where a tool says little else (`THIN`).

A name `getRecord_v2` is embedded as `get Record v2`; the `tools` table keeps the name itself.
"""

import re
from collections.abc import Collection, Iterator
from typing import Literal, get_args

from pegboard.records import Agent, Enrichment, Tool
from pegboard.text.boilerplate import argument_descriptions, sentence_key
from pegboard.text.plain_text import joined, sentences, shortened
from pegboard.text.redaction import redact_credentials
from pegboard.text.schema_words import Argument, arguments_of
from pegboard.text.words import identifier_words, tokenize

Part = Literal["name", "description", "arguments", "questions", "topics", "agent"]
Shape = Literal["centroid", "single", "multi"]
PARTS: tuple[Part, ...] = get_args(Part)
DEFAULT_PARTS: tuple[Part, ...] = tuple(part for part in PARTS if part != "agent")
NOTHING = Enrichment()
QUESTIONS = 10
"""Default maximum number of questions of a tool in an index."""
MAX_BODY = 1_000
"""Maximum number of characters of a skill's body after its description; encoders read no more."""
THIN = 8
"""A description of fewer words does not tell its tool from others, so the title, the nested
arguments and the values of arguments are encoded, too. Of 24 requests for twelve such tools, half
of them in other words than the catalog's, 6 had the right tool first without, 20 with it. Encoded
for all tools, values took one real catalog of eight from .66 at one to .61, and the others stayed.
"""
_VERBS = {"GET": "Get", "POST": "Create", "PUT": "Update", "PATCH": "Update", "DELETE": "Delete"}
_PATH_PARAMETER = re.compile(r"\{[^{}]*+\}")
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


def search_words(tool: Tool, parts: Collection[Part] = DEFAULT_PARTS) -> str:
    """Return what of a tool is searched by its words alone; blank if there is nothing.

    Args:
        parts: of the index. Titles, paths and tags belong to the description.
    """
    texts: list[str] = []
    if "description" in parts:
        path = tool.annotations.get("path")
        plain_path = _PATH_PARAMETER.sub(" ", path) if isinstance(path, str) else ""
        texts += [_title(tool), identifier_words(plain_path), *map(identifier_words, tool.tags)]
    if "arguments" in parts:
        own = argument_descriptions(tool.input_schema)
        texts += [_argument_words(part, own) for part in arguments_of(tool.input_schema)]
    return redact_credentials("\n".join(filter(None, texts)))


def searched_tokens(text: str, words: str, language: str) -> list[str]:
    """Return the tokens of a document in the text index: those of its text, and behind them each
    new one of `words` once, so that they lengthen the document, which BM25 counts, no further.

    Args:
        words: as `search_words` returns them.
        language: of the index.
    """
    tokens = tokenize(text, language)
    known = set(tokens)
    more = dict.fromkeys(tokenize(words, language))
    return [*tokens, *(token for token in more if token not in known)]


def operation_sentence(tool: Tool) -> str:
    """Return what an operation does, from its method and path (`Get shelves of warehouses`); the
    words of the name for any other tool.
    """
    path = [part for part in str(tool.annotations.get("path", "")).split("/") if part]
    nouns = [identifier_words(part) for part in reversed(path) if not part.startswith("{")]
    verb = _VERBS.get(str(tool.annotations.get("method")), "")
    return f"{verb} {' of '.join(nouns[:2])}" if verb and nouns else identifier_words(tool.name)


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
    described = _own(every, boilerplate) or every[:1]
    if not described and tool.annotations.get("path"):
        described = [operation_sentence(tool)]
    if _is_thin(described) and (title := _title(tool)):
        described = [title, *described]
    return described


def _is_thin(described: list[str]) -> bool:
    return len(" ".join(described).split()) < THIN


def _title(tool: Tool) -> str:
    """The title, if it says more than the name."""
    title = tool.annotations.get("title")
    if not isinstance(title, str) or not title.strip():
        return ""
    text = joined(sentences(title))
    known = identifier_words(tool.name).lower()
    return "" if identifier_words(text).lower() == known else text


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
    if not enrichment.description and _is_thin(sentences(tool.description)):
        own = argument_descriptions(tool.input_schema)
        more = (
            _argument_words(part, own, described=True) for part in arguments_of(tool.input_schema)
        )
        arguments += filter(None, more)
    return f"Arguments: {'; '.join(arguments)}" if arguments else ""


def _argument_words(argument: Argument, own: Collection[str], *, described: bool = False) -> str:
    """Return the name of a nested argument and the values that an argument may have.

    Args:
        own: the names of the tool's own arguments, whose names are in the documents anyway.
        described: with the first sentence of a nested argument's description.
    """
    is_own = argument.depth == 0 and argument.name in own
    if is_own and not argument.values:
        return ""
    values = ", ".join(identifier_words(value) or value for value in argument.values)
    sentence = sentences(argument.description)[:1] if described and not is_own else []
    return ": ".join(filter(None, (identifier_words(argument.name), joined(sentence), values)))
