"""What calls so far add to a request (`find(..., called=...)`): the next tool of a sequence, by the
request alone, with the edges of the tools called so far, and with sequences of other requests, too.

    python -m benchmarks called DIR [--board DIR]

DIR holds ultratool, toollinkos and livemcpbench. A place is a tool behind the first of a request;
those before it are called, and left out of its ranking. Recall is the mean over requests of that of
their places. ToolLinkOS is in the order of its declared dependencies. Sequences are learned from
four fifths of the requests for the others, as if each were a client.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.papers.loading import load_benchmark
from benchmarks.papers.reading import folders_of
from benchmarks.run import open_boards, working_folder
from pegboard.encoders import DEFAULT_ENCODER, load_encoder
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.intervals import compare
from pegboard.evaluation.searcher import Searcher
from pegboard.evaluation.usage import MIN_CLIENTS
from pegboard.graph.tool_graph import ToolGraph
from pegboard.ranking import ScoredTool
from pegboard.retrieval.called import evidence_of, raised

NAMES = ("ultratool", "toollinkos", "livemcpbench")
FOLDS = 5
DEPTH = 50  # tools of a request's own ranking
DEPTHS = (1, 5)
WAYS = ("request alone", "with edges", "with sequences, too")


def in_order(tools: Sequence[str], graph: ToolGraph) -> list[str]:
    """Return tools in their order, each behind those of them that it declares to depend on."""
    order: dict[str, None] = {}
    begun: set[str] = set()

    def add(tool: str) -> None:
        if tool in tools and tool not in begun:
            begun.add(tool)
            for edge in graph.edges_from(tool):
                if edge.origin == "declared":
                    add(edge.target)
            order[tool] = None

    for tool in tools:
        add(tool)
    return list(order)


def learned(orders: Sequence[Sequence[str]]) -> dict[str, dict[str, float]]:
    """Return the share of each tool behind another, as a release has it of a log."""
    counts: dict[str, Counter[str]] = {}
    for before, tool in (pair for order in orders for pair in pairwise(order)):
        counts.setdefault(before, Counter())[tool] += 1
    shares: dict[str, dict[str, float]] = {}
    for before, own in counts.items():
        often = {tool: count for tool, count in own.items() if count >= MIN_CLIENTS}
        shares[before] = {tool: count / (sum(often.values()) + 1) for tool, count in often.items()}
    return shares


def recalls(
    board: Searcher, queries: Sequence[GoldenQuery], orders: Sequence[Sequence[str]]
) -> list[list[list[float]]]:
    """Return the mean recall of each request's places, by `WAYS` and `DEPTHS`.

    Args:
        orders: the tools of each request, in the order of their calls.
    """
    values: list[list[list[float]]] = []
    graph, nothing = board.loaded.graph, ToolGraph([])
    folds = [learned([o for n, o in enumerate(orders) if n % FOLDS != k]) for k in range(FOLDS)]
    for number, result in enumerate(board.search(queries, DEPTH)):
        order, ranking = orders[number], [ScoredTool(hit.tool.id, hit.score) for hit in result]
        ways = ((nothing, {}), (graph, {}), (graph, folds[number % FOLDS]))
        places = [
            [_hits(ranking, order[:at], order[at], *way) for way in ways]
            for at in range(1, len(order) if ranking else 0)
        ]
        if places:
            values.append(np.mean(places, axis=0).tolist())
    return values


def _hits(
    ranking: Sequence[ScoredTool],
    called: Sequence[str],
    tool: str,
    graph: ToolGraph,
    sequences: Mapping[str, Mapping[str, float]],
) -> list[bool]:
    rows = raised(ranking, evidence_of(called, graph, sequences))
    ids = [row.tool for row in rows if row.tool not in called]
    return [tool in ids[:depth] for depth in DEPTHS]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the recalls on each board, and the interval of what both kinds of evidence add."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks called", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--board", metavar="DIR", help="keep the boards here")
    options = parser.parse_args(arguments)
    folders = folders_of(options.folder)
    with working_folder(options.board) as folder:
        for name in filter(folders.__contains__, NAMES):
            benchmark = load_benchmark(name, folders[name])
            boards = open_boards(benchmark, folder / name, load_encoder(DEFAULT_ENCODER))
            queries, first = benchmark.query_sets[0].queries, next(iter(boards.values()))
            needed = [first.names.resolve(query.tools).tools.values() for query in queries]
            orders = [in_order([min(ids) for ids in own], first.loaded.graph) for own in needed]
            for title, board in boards.items():
                values = np.array(recalls(board, queries, orders))
                print(f"{name} {title}: {len(values)} requests, recall at {DEPTHS}")
                for way, means in zip(WAYS, values.mean(axis=0).tolist(), strict=True):
                    print(f"  {way}: {' '.join(f'{mean:.3f}' for mean in means)}")
                added = compare(values[:, -1, -1], values[:, 0, -1])
                print(f"  added at {DEPTHS[-1]}: {added.low:+.3f} to {added.high:+.3f}", flush=True)
