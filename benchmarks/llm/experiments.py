"""The experiments: which boards, with which texts, are asked by which strategies."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.llm.boards import benchmarks_of, index_files
from benchmarks.llm.collisions import measure_collisions
from benchmarks.llm.edges import measure_edges
from benchmarks.llm.measured import (
    MODEL,
    Experiment,
    Measured,
    NothingFits,
    Places,
    Row,
    rows_of,
)
from benchmarks.papers.benchmark import sampled
from benchmarks.papers.strategies import chosen_strategies
from benchmarks.real.catalogs import unanswerable
from benchmarks.run import BenchSettings, run_benchmark
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.measures import measures_of
from pegboard.evaluation.searcher import Searcher
from pegboard.llm.recorded import ReplyFolder

QUERIES = 100
"""Requests of each set that are asked with an LLM at request time, drawn with seed 0."""
WRITTEN_CATALOGS = ("spotify", "slack", "mcp")
"""The real catalogs about whose tools texts were written."""
SELECTED = ("Recall", "Precision", "F1")
"""Measures of all tools that a strategy selects, however many."""
SHARED_PARTS: Mapping[str, Any] = {"fuse_steps": "round-robin"}


def _part(name: str, **fields: Any) -> str:
    return json.dumps({"name": name, **fields})


PAPERS = ("seal-tools", "metatool", "toollinkos", "ultratool", "livemcpbench")
EXPERIMENTS = (
    Experiment(
        "written",
        "Texts written once, offline: what each adds, asked by the default strategy",
        ("real", "livemcpbench", "ultratool", "toollinkos"),
        ("default",),
        indexes="written.toml",
        catalogs=WRITTEN_CATALOGS,
    ),
    Experiment(
        "collisions",
        "Vectors that collide, before and after texts are written",
        ("real", "livemcpbench", "ultratool"),
        (),
        indexes="written.toml",
        catalogs=WRITTEN_CATALOGS,
    ),
    Experiment(
        "products",
        "What each text of a tool's document adds, alone and together (Toolshed, table I and "
        "appendix I)",
        ("metatool", "real"),
        ("vector", "default"),
        indexes="products.toml",
        catalogs=("spotify",),
        boards=("single-without-examples", "multi"),
        measures=("Recall@1", "Recall@5"),
        published=True,
        recorded=False,
    ),
    Experiment(
        "asked",
        "One call for each request, nothing written",
        ("real",),
        ("default", "ask-as-agent", "look-at-fifteen"),
        unanswerable=True,
    ),
    Experiment(
        "asked-written",
        "The same where texts are written",
        ("real",),
        ("default", "ask-as-agent"),
        indexes="both.toml",
        catalogs=WRITTEN_CATALOGS,
        unanswerable=True,
    ),
    Experiment(
        "papers",
        "The papers' requests, nothing written: one call for each request",
        PAPERS,
        (
            "default",
            "hybrid",
            "ask-as-agent",
            _part("decompose", transforms=["decompose"], **SHARED_PARTS),
        ),
        limit=QUERIES,
    ),
    Experiment(
        "parts",
        "What each further part of Toolshed adds",
        PAPERS,
        (
            "hybrid",
            _part("rewrite", transforms=["rewrite"]),
            _part("expand", transforms=["expand"], fuse_queries="reciprocal-rank"),
            "step-back",
            _part("rerank", refine=["listwise-rerank"]),
            _part("grade", refine=["grade"]),
        ),
        limit=QUERIES,
        published=True,
    ),
    Experiment(
        "fusion",
        "The whole of Toolshed: rewrite, decompose, expand and rerank",
        PAPERS,
        ("hybrid", "rag-tool-fusion"),
        limit=QUERIES,
        published=True,
        recorded=False,
    ),
    Experiment(
        "plan-select",
        "Retrieval-Plan-Select on UltraTool, by its own measures: recall and F1 of the tools that "
        "are selected",
        ("ultratool",),
        ("rag-only-select", "rps-dummy", "plan-select", "plan-select-precise"),
        limit=QUERIES,
        measures=SELECTED,
        published=True,
        recorded=False,
    ),
    Experiment(
        "plan-select-written",
        "The same end to end where texts are written, as in the paper",
        ("ultratool",),
        ("plan-select", "plan-select-precise"),
        indexes="both.toml",
        limit=QUERIES,
        measures=SELECTED,
        published=True,
        recorded=False,
    ),
    Experiment(
        "edges",
        "Dependencies on ToolLinkOS by rules, proposed by an LLM, by both, and declared",
        ("toollinkos",),
        ("hybrid", "dependencies"),
        measures=("mAP@10", "Recall@10"),
        compared="edges",
        published=True,
        recorded=False,
    ),
    Experiment(
        "graph",
        "Graph RAG-Tool Fusion on ToolLinkOS: the best three ordered by an LLM",
        ("toollinkos",),
        ("hybrid", "dependencies", "graph-rag-tool-fusion"),
        limit=QUERIES,
        measures=("mAP@10", "Recall@10", "nDCG@10"),
        published=True,
        recorded=False,
    ),
)
"""In the order of the page."""
OF_THEIR_OWN: Mapping[str, Callable[[Experiment, Places], Measured]] = {
    "collisions": measure_collisions,
    "edges": measure_edges,
}
"""Experiments that measure more than which strategies find what on which boards."""


def settings_of(experiment: Experiment, places: Places) -> BenchSettings:
    """Return what is measured; `missing_replies` of [enrich] as well."""
    return BenchSettings(
        chosen_strategies(experiment.strategies),
        tuple(measures_of(list(experiment.measures))),
        MODEL,
        places.llm_options,
        index_files(experiment, places),
    )


def run_experiment(experiment: Experiment, places: Places) -> Measured:
    """Build the boards, ask, and measure.

    Where missing replies are written down and texts of the boards are among them, nothing is
    measured.
    """
    if experiment.name in OF_THEIR_OWN:
        return OF_THEIR_OWN[experiment.name](experiment, places)
    settings = settings_of(experiment, places)
    benchmarks = list(benchmarks_of(experiment, places))
    if settings.indexes and places.missing == "write":
        for benchmark in benchmarks:
            run_benchmark(sampled(benchmark, 1, 0), places.boards, settings)
        if ReplyFolder(places.replies).open_requests():
            return Measured()
    rows: list[Row] = []
    for benchmark in benchmarks:
        result, _ = run_benchmark(benchmark, places.boards, settings)
        rows += rows_of(benchmark.name, result)
    if not experiment.unanswerable or places.real is None:
        return Measured(rows)
    return Measured(rows, list(_nothing_fits(experiment, places)))


def _nothing_fits(experiment: Experiment, places: Places) -> Iterator[NothingFits]:
    """Ask each catalog what nothing in it answers, and what something does."""
    [benchmark] = benchmarks_of(experiment, places)
    names = [board.name for board in benchmark.boards]
    files = index_files(experiment, places)
    suffix = "".join(f"@{file.name}" for file in files)
    for index in [name for file in files for name in file.names] or [None]:
        for strategy in experiment.strategies:
            counts = {True: [0, 0], False: [0, 0]}
            for query_set, name in zip(benchmark.query_sets, names, strict=True):
                board = places.boards / f"real{suffix}" / name / "board"
                searcher = Searcher.open(str(board), llm=MODEL, llm_options=places.llm_options)
                wanted: dict[bool, list[GoldenQuery]] = {
                    True: list(query_set.queries),
                    False: [GoldenQuery(text, ()) for text in unanswerable(name)],
                }
                for answerable, queries in wanted.items():
                    results = searcher.search(
                        queries,
                        10,
                        strategy=None if strategy == "default" else strategy,
                        index=index,
                    )
                    counts[answerable][0] += sum(result.nothing_fits for result in results)
                    counts[answerable][1] += len(queries)
                searcher.close()
            yield NothingFits(strategy, index or "full", *counts[False], *counts[True])
