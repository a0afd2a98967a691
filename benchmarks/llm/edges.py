"""Edges by rules, proposed by an LLM, by both, and declared: on ToolLinkOS, by the strategy that
follows dependencies, and against the declared edges.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.llm.measured import (
    MODEL,
    Experiment,
    Measured,
    MoreTable,
    Places,
    Row,
    rows_of,
)
from benchmarks.llm.tables import share
from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard, QuerySet
from benchmarks.papers.loading import load_benchmark
from benchmarks.papers.strategies import chosen_strategies
from benchmarks.run import BenchSettings, open_boards, run_benchmark
from pegboard.encoders import DEFAULT_ENCODER, load_encoder
from pegboard.errors import CompletionError
from pegboard.evaluation.measures import measures_of
from pegboard.evaluation.searcher import Searcher
from pegboard.llm.recorded import ReplyFolder
from pegboard.records import Edge
from tasks.dependencies.propose import Proposals, overrides_toml, propose_dependencies
from tasks.enrichment.models import configured_completer
from tasks.settings.enrichment import EnrichSettings

NO_RULES = "\n[graph]\ninfer = false\n"
BY_BOARD = {
    "hidden": "rules",
    "llm": "an LLM",
    "rules-and-llm": "rules and an LLM",
    "declared": "declared",
}
"""Where the edges of each board come from."""


def measure_edges(experiment: Experiment, places: Places) -> Measured:
    """Return what is found by the edges of each origin, and how many of them are declared; nothing
    where replies are missing.
    """
    benchmark = load_benchmark(experiment.benchmarks[0], places.data, experiment.limit)
    proposals = _proposals(benchmark, places)
    if ReplyFolder(places.replies).open_requests():
        return Measured()
    if proposals.unanswered:
        raise CompletionError(
            f"There are no proposals for {len(proposals.unanswered)} tools, of which "
            f"{proposals.unanswered[0]} is the first: replies are missing or invalid "
            f"({proposals.reasons or 'none is recorded'}). Write the requests down by "
            "--missing-replies write, or correct the replies.",
            kind="unrecorded",
        )
    by_origin = _with_boards(benchmark, proposals.edges)
    settings = BenchSettings(
        chosen_strategies(experiment.strategies), tuple(measures_of(list(experiment.measures)))
    )
    result, _ = run_benchmark(by_origin, places.boards, settings)
    rows = list(_rows(benchmark.name, result))
    return Measured(rows, more=[_against_declared(by_origin, places, proposals)])


def _rows(benchmark: str, result: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows with the origin of their edges; a search without edges is one row."""
    for row in rows_of(benchmark, result):
        origin = BY_BOARD[row.task.rpartition(", ")[2]]
        task = f"{benchmark}, all"
        if row.strategy == "dependencies":
            yield replace(row, index=origin, task=task)
        elif origin == "declared":
            yield replace(row, index="none", task=task)


def _proposals(benchmark: Benchmark, places: Places) -> Proposals:
    """Return what an LLM proposes of the tools, whose declarations it does not see."""
    hidden = replace(benchmark, boards=(_board(benchmark, "hidden"),))
    searcher = _opened(hidden, places)["hidden"]
    settings = EnrichSettings.model_validate({"model": MODEL, **places.llm_options})
    completer = configured_completer(settings, places.replies)
    return propose_dependencies(searcher.loaded.all_tools(), settings, completer)


def _opened(benchmark: Benchmark, places: Places) -> dict[str, Searcher]:
    folder = places.boards / benchmark.name
    return open_boards(benchmark, folder, load_encoder(DEFAULT_ENCODER))


def _board(benchmark: Benchmark, name: str) -> BenchmarkBoard:
    """Return a board of a linked benchmark with the default index alone."""
    [board] = [one for one in benchmark.boards if one.name == name]
    return replace(board, indexes="")


def _with_boards(benchmark: Benchmark, proposed: Sequence[Edge]) -> Benchmark:
    """Return the benchmark with a board for each origin of edges; every board is asked all
    requests.
    """
    hidden = _board(benchmark, "hidden")
    overrides = overrides_toml(proposed)
    boards = (
        hidden,
        replace(hidden, name="llm", catalog=f"{hidden.catalog}{NO_RULES}\n{overrides}"),
        replace(hidden, name="rules-and-llm", catalog=f"{hidden.catalog}\n{overrides}"),
        _board(benchmark, "declared"),
    )
    [query_set] = benchmark.query_sets
    query_sets = [QuerySet.of_task(one.name, one.name, query_set.queries) for one in boards]
    return replace(benchmark, boards=boards, query_sets=tuple(query_sets))


def _against_declared(benchmark: Benchmark, places: Places, proposals: Proposals) -> MoreTable:
    """Return how many edges of each origin are declared, and how many declared ones they are."""
    boards = _opened(benchmark, places)
    declared = {
        (edge.source, edge.target)
        for edge in boards.pop("declared").loaded.graph.edges
        if edge.origin == "declared"
    }
    pairs = {
        name: {(edge.source, edge.target) for edge in board.loaded.graph.edges}
        for name, board in boards.items()
    }
    lines = [
        [
            BY_BOARD[name],
            share(len(own & declared), len(own)),
            share(len(own & declared), len(declared)),
        ]
        for name, own in pairs.items()
    ]
    reasons = proposals.reasons
    return MoreTable(
        ["edges by", "of them declared (precision)", "of the declared ones (recall)"],
        lines,
        f"Proposals of the LLM that were left out: {reasons}." if reasons else "",
    )
