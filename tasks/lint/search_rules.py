"""The rules that search a catalog's tools as a board of them is searched: whether requests and
examples find their tools, and which tools are taken for each other.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pegboard.board import Board
from pegboard.encoders import Encoder
from pegboard.evaluation.golden import GoldenQuery, ToolNames
from pegboard.formatting import count_text
from pegboard.records import Tool
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.tool_release import AGENT, ToolRelease
from pegboard.text.boilerplate import argument_descriptions, boilerplate, sentence_key
from pegboard.text.plain_text import sentences, shortened
from pegboard.text.words import identifier_words, query_words, stop_words, tokenize
from tasks.lint.findings import Finding

K = 5
"""Number of first hits among which a request has to find its tool."""
DEPTH = 20
"""Maximum rank that a finding reports."""
SHOWN = 3
"""Maximum requests that a reason quotes."""
WORDS = 5
"""Maximum words that a suggestion names."""
LANGUAGE = "english"


def board_of(tools: Sequence[Tool], encoder: Encoder) -> Board:
    """Return a board of the tools in memory."""
    owned = [replace(tool, agent=AGENT.id) for tool in tools]
    return Board(ToolRelease(owned, encoder), QueryVectors(encoder, None))


def request_findings(
    board: Board, names: ToolNames, queries: Sequence[GoldenQuery]
) -> Iterator[Finding]:
    """Yield the tools of a board that their golden queries do not find. A query that needs several
    tools is left out: what it lacks is not one description's.

    Args:
        names: the tools by what the queries call them.
    """
    requests: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for query in queries:
        needed = list(names.resolve(query.tools).tools.values())
        if len(needed) == 1:
            requests.setdefault(min(needed[0]), []).append((query.query, needed[0]))
    by_id = {tool.id: tool for tool in board.list_tools()}
    for tool, tool_requests in requests.items():
        misses = _misses(board, tool_requests)
        if misses:
            quoted = [f'"{request}" ({instead})' for request, instead in misses.items()]
            yield Finding(
                "not-found",
                tool,
                f"{len(misses)} of {count_text(len(tool_requests), 'request')} for it: not among "
                f"the first {K}: {', '.join(quoted[:SHOWN])}",
                _missing_words(by_id[tool], list(misses)),
            )


def _misses(board: Board, requests: Sequence[tuple[str, frozenset[str]]]) -> dict[str, str]:
    """The requests that find none of their tools among the first `K`, with what they find."""
    misses: dict[str, str] = {}
    results = board.find_many([request for request, _ in requests], DEPTH)
    for (request, ids), result in zip(requests, results, strict=True):
        tools = [hit.tool.id for hit in result]
        rank = next((at for at, tool in enumerate(tools, start=1) if tool in ids), 0)
        if not 0 < rank <= K:
            place = f"rank {rank}" if rank else f"not in the first {DEPTH}"
            misses[request] = f"{place}; first: {tools[0] if tools else 'nothing'}"
    return misses


def _missing_words(tool: Tool, requests: Sequence[str]) -> str:
    """A suggestion: the words of requests that the tool does not have."""
    stems = _stems(tool)
    missing = dict.fromkeys(word for request in requests for word in _words_without(request, stems))
    if not missing:
        return "Say in the first sentence what tells it from the tools that are found first."
    return f"Say in the description, in words that people use: {', '.join(list(missing)[:WORDS])}."


def twin_findings(board: Board) -> Iterator[Finding]:
    """Yield the tools of a board whose own first sentence finds another tool before them, which has
    all its words.
    """
    by_id = {tool.id: tool for tool in board.list_tools()}
    shared = boilerplate(by_id.values())
    first_sentences = {
        tool.id: sentence for tool in by_id.values() if (sentence := _first_sentence(tool, shared))
    }
    for identity, sentence in first_sentences.items():
        hits = [hit.tool.id for hit in board.search(sentence, DEPTH)]
        tool = by_id[identity]
        other = by_id[hits[0]]
        if other is tool or identity not in hits or not set(query_words(sentence)) <= _stems(other):
            continue
        same = " word for word" if first_sentences.get(other.id) == sentence else ""
        yield Finding(
            "twins",
            identity,
            f'its first sentence, "{sentence}", finds {other.id} first{same}, and itself at rank '
            f"{hits.index(identity) + 1}",
            _parting_words(tool, other, sentence),
        )


def _first_sentence(tool: Tool, shared: Collection[str]) -> str:
    every = sentences(tool.description)
    unshared = [sentence for sentence in every if sentence_key(sentence) not in shared]
    return shortened(unshared[0]) if unshared else ""


def _parting_words(tool: Tool, other: Tool, sentence: str) -> str:
    """A suggestion: words of the one tool's name or path, or else of its texts, that neither the
    other tool nor its own first sentence has.
    """
    stems = {*_stems(other), *tokenize(sentence)}
    parting = [*_words_without(_name(tool), stems)] or [*_words_without(_texts(tool), stems)]
    if not parting:
        return f"Say when to use it and when {other.name}, or make one tool of them."
    words = list(dict.fromkeys(parting))[:WORDS]
    return f"Say in the first sentence what only it has: {', '.join(words)}."


def _words_without(text: str, stems: Collection[str]) -> Iterator[str]:
    """The words of a text, in lower case, without stop words and those with one of these stems."""
    for word in re.findall(r"[^\W\d_]{3,}", text.lower()):
        if word not in stop_words(LANGUAGE) and not set(tokenize(word)) & set(stems):
            yield word


def _stems(tool: Tool) -> set[str]:
    return {*tokenize(_name(tool)), *tokenize(_texts(tool))}


def _name(tool: Tool) -> str:
    """The words of a tool's name and path."""
    return identifier_words(f"{tool.name} {tool.annotations.get('path', '')}")


def _texts(tool: Tool) -> str:
    """The description of a tool, and its parameters."""
    parameters = argument_descriptions(tool.input_schema)
    return "\n".join((tool.description, *map(identifier_words, parameters), *parameters.values()))
