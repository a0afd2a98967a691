"""The rules that search a catalog's tools as a board of them is searched: whether requests and
examples find their tools, and which tools are taken for each other.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pegboard.board import Board
from pegboard.boilerplate import argument_descriptions, boilerplate, sentence_key
from pegboard.encoders import Encoder
from pegboard.evaluation.golden import GoldenQuery, ToolNames
from pegboard.plain_text import sentences, shortened
from pegboard.records import Tool
from pegboard.search.query_vectors import QueryVectors
from pegboard.search.text import identifier_words, stop_words, tokenize
from pegboard.search.tool_release import AGENT, ToolRelease
from tasks.lint.findings import Finding

K = 5
"""A request finds its tool if it is among the first so many."""
DEPTH = 20
"""Ranks that are looked at to say where a tool is."""
SHOWN = 3
"""Requests that a reason quotes."""
WORDS = 5
"""Words that a suggestion names."""
LANGUAGE = "english"


def board_of(tools: Sequence[Tool], encoder: Encoder) -> Board:
    """Return a board of the tools in memory."""
    owned = [replace(tool, agent=AGENT.id) for tool in tools]
    return Board(ToolRelease(owned, encoder), QueryVectors(encoder, None))


def request_findings(
    board: Board, names: ToolNames, queries: Sequence[GoldenQuery]
) -> Iterator[Finding]:
    """Yield the tools of a board that their golden queries do not find.

    Args:
        names: the tools by what the queries call them.
    """
    asked: dict[str, int] = {}
    requests: list[tuple[str, frozenset[str]]] = []
    for query in queries:
        for ids in names.resolve(query.tools).tools.values():
            asked[min(ids)] = asked.get(min(ids), 0) + 1
            requests.append((query.query, ids))
    by_id = {tool.id: tool for tool in board.list_tools()}
    for tool, own in _misses(board, requests).items():
        quoted = [f'"{request}" ({instead})' for request, instead in own.items()]
        yield Finding(
            "not-found",
            tool,
            f"{len(own)} of its {asked[tool]} requests do not find it among the first {K}: "
            f"{', '.join(quoted[:SHOWN])}",
            _missing_words(by_id[tool], list(own)),
        )


def _misses(
    board: Board, requests: Sequence[tuple[str, frozenset[str]]]
) -> dict[str, dict[str, str]]:
    """The requests that find none of their tools among the first `K`, by the first of these, with
    what they find instead.
    """
    misses: dict[str, dict[str, str]] = {}
    results = board.find_many([request for request, _ in requests], DEPTH) if requests else []
    for (request, ids), result in zip(requests, results, strict=True):
        found = [hit.tool.id for hit in result]
        rank = next((at for at, tool in enumerate(found, start=1) if tool in ids), 0)
        if not 0 < rank <= K:
            place = f"rank {rank}" if rank else f"not in the first {DEPTH}"
            instead = f"{place}; first: {found[0] if found else 'nothing'}"
            misses.setdefault(min(ids), {})[request] = instead
    return misses


def _missing_words(tool: Tool, requests: Sequence[str]) -> str:
    """A suggestion: the words of requests that the tool does not have."""
    own = set(tokenize(_whole(tool)))
    missing: dict[str, None] = {}
    for request in requests:
        missing |= dict.fromkeys(_words_without(request, own))
    if not missing:
        return "Say in the first sentence what tells it from the tools that are found first."
    return f"Say in the description, in words that people use: {', '.join(list(missing)[:WORDS])}."


def twin_findings(board: Board) -> Iterator[Finding]:
    """Yield the tools of a board whose own first sentence finds another tool before them."""
    by_id = {tool.id: tool for tool in board.list_tools()}
    shared = boilerplate(by_id.values())
    own = {
        tool.id: sentence for tool in by_id.values() if (sentence := _first_sentence(tool, shared))
    }
    for identity, sentence in own.items():
        hits = board.search(sentence, DEPTH)
        found = [hit.tool.id for hit in hits]
        if found[0] == identity or identity not in found:
            continue
        rank, other = found.index(identity) + 1, by_id[found[0]]
        same = " word for word" if own.get(other.id) == sentence else ""
        yield Finding(
            "twins",
            identity,
            f'its first sentence, "{sentence}", finds {other.id} first{same}, and itself at rank '
            f"{rank}",
            _parting_words(by_id[identity], other, sentence),
        )


def _first_sentence(tool: Tool, shared: Collection[str]) -> str:
    every = sentences(tool.description)
    own = [sentence for sentence in every if sentence_key(sentence) not in shared]
    return shortened(own[0]) if own else ""


def _parting_words(tool: Tool, other: Tool, sentence: str) -> str:
    """A suggestion: words of the one tool that neither the other nor its first sentence has."""
    known = {*tokenize(_whole(other)), *tokenize(sentence)}
    parting = list(dict.fromkeys(_words_without(_whole(tool), known)))
    if not parting:
        return f"Say when to use it and when {other.name}, or make one tool of them."
    return f"Say in the first sentence what only it has: {', '.join(parting[:WORDS])}."


def _words_without(text: str, known: Collection[str]) -> Iterator[str]:
    """The words of a text, in lower case, whose stems are not known and that say something."""
    for word in re.findall(r"[^\W\d_]{3,}", identifier_words(text).lower()):
        if word not in stop_words(LANGUAGE) and not set(tokenize(word)) & set(known):
            yield word


def _whole(tool: Tool) -> str:
    """The texts of a tool: name, path, description and parameters."""
    parameters = argument_descriptions(tool.input_schema)
    path = str(tool.annotations.get("path", ""))
    return "\n".join((tool.name, path, tool.description, *parameters, *parameters.values()))
