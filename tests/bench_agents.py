"""`python -m tests.bench_agents`: how well requests find the agents that serve them (Tool-to-Agent Retrieval), as JSON lines.

LiveMCPBench: 70 MCP servers with 527 tools; questions with their steps and the tools that their annotator used, by name. A tool name that
several servers have is met by any of them. What is asked, and which agents are right:

    aligned    the i-th step of a question with as many steps as tools; the owner of its i-th tool
    step       every step; the owners of all tools of its question (a step needs one of them, so that 1 is out of reach)
    question   the question; the owners of all its tools
    steps      all steps of a question as one request; the same
    clauses    the question and the clauses found in it as one request; the same

`searched` is what takes part: the agents' own descriptions, the tools, or both. Recall@k is the share of the right agents among the first
k, each distinct one counted once.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pegboard.ranking import Ranked
from pegboard.retrieval.agent_ranking import ENTITIES, Found, rank_agents
from pegboard.retrieval.clauses import split_clauses
from pegboard.text import tokenize
from tests.bench_boards import BenchBoard, Encoding, arguments, load_board
from tests.benchmarks import lines, numbered

DEPTH = 5
SEARCHED = {"agents": (False, True), "tools": (True, False), "tools+agents": (True, True)}
MODES = ("vector", "text", "hybrid")
MEASURES = ("recall@1", "recall@3", "recall@5", "nDCG@5", "mAP@5")


@dataclass(frozen=True, slots=True)
class Asked:
    """The queries of one request, and the agents that serve it: of each set, one is enough."""

    queries: tuple[str, ...]
    right: tuple[frozenset[str], ...]


def asked_of(board: BenchBoard) -> Iterator[tuple[str, Asked]]:
    """Everything that is asked, each with its definition's name. Tools that no server has are left out."""
    owners: dict[str, set[str]] = defaultdict(set)
    for tool in board.listing.tools:
        owners[tool.name].add(tool.agent)
    for line in lines("livemcpbench/annotations.jsonl"):
        question, said = line["Question"], line["Annotator Metadata"]
        steps, tools = numbered(said["Steps"]), numbered(said["Tools"])
        right = tuple(dict.fromkeys(frozenset(owners[tool]) for tool in tools if tool in owners))
        if len(steps) == len(tools):
            pairs = [(step, frozenset(owners[tool])) for step, tool in zip(steps, tools, strict=True) if tool in owners]
            yield from (("aligned", Asked((step,), (own,))) for step, own in pairs)
        yield from (("step", Asked((step,), right)) for step in steps)
        yield "question", Asked((question,), right)
        yield "steps", Asked(tuple(steps), right)
        yield "clauses", Asked((question, *split_clauses(question)), right)


def found_for(board: BenchBoard, query: str, vector: np.ndarray, searched: str, mode: str) -> Found:
    """What one query finds among tools, agents or both."""
    words = tokenize(query)

    def rankings(index: str) -> dict[str, list[Ranked]]:
        rows = board.tools if index == "tools" else board.agents
        found: dict[str, list[Ranked]] = {}
        if mode != "text":
            found["vector"] = rows.vector(vector, ENTITIES)
        if mode != "vector":
            found["text"] = rows.text(words, ENTITIES)
        return found

    by_tools, by_agents = SEARCHED[searched]
    return Found(rankings("tools") if by_tools else {}, rankings("agents") if by_agents else {})


def measured(ranking: Sequence[str], right: Sequence[frozenset[str]]) -> list[float]:
    """The measures of one request, in the order of MEASURES. An agent that meets nothing new is not right."""
    left, hits = list(right), list[bool]()
    for agent in ranking[:DEPTH]:
        hits.append(any(agent in own for own in left))
        left = [own for own in left if agent not in own]
    recalls = [float(np.mean([bool(own & set(ranking[:k])) for own in right])) for k in (1, 3, 5)]
    gains = 1 / np.log2(np.arange(2, DEPTH + 2))
    best = min(DEPTH, len(right))
    precisions = [sum(hits[: at + 1]) / (at + 1) for at, hit in enumerate(hits) if hit]
    return [*recalls, float(gains[: len(hits)][hits].sum() / gains[:best].sum()), sum(precisions) / best]


def bench(encoding: Encoding) -> None:
    """Print one line for each definition, what is searched, and mode."""
    board = load_board("livemcpbench", encoding)
    owner = {tool.id: tool.agent for tool in board.listing.tools}
    asked = list(asked_of(board))
    queries = list(dict.fromkeys(query for _, one in asked for query in one.queries))
    vectors = dict(zip(queries, encoding.encode(queries), strict=True))
    for searched in SEARCHED:
        for mode in MODES:
            rows: dict[str, list[list[float]]] = defaultdict(list)
            brought = 0.0
            for kind, one in asked:
                found = [found_for(board, query, vectors[query], searched, mode) for query in one.queries]
                ranked = rank_agents(found, owner.get, DEPTH)
                rows[kind].append(measured([agent.agent for agent in ranked], one.right))
                if kind == "aligned":
                    brought += float(np.mean([agent.why[0].tool is None for agent in ranked] or [0]))
            for kind, values in rows.items():
                means = dict(zip(MEASURES, np.mean(values, axis=0).round(3).tolist(), strict=True))
                line = {"searched": searched, "mode": mode, "asked": kind, "requests": len(values), **means}
                if kind == "aligned":
                    line["by_own_description"] = round(brought / len(values), 3)
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    bench(arguments(__doc__))
