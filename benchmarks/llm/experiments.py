"""The experiments: which boards, with which texts, are asked by which strategies."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.papers.benchmark import Benchmark, sampled
from benchmarks.papers.indexes import IndexFile, read_index_files
from benchmarks.papers.loading import load_benchmark
from benchmarks.papers.strategies import chosen_strategies
from benchmarks.real.catalogs import unanswerable
from benchmarks.run import BenchSettings, run_benchmark
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.measures import measures_of
from pegboard.evaluation.searcher import Searcher
from pegboard.llm.recorded import ReplyFolder

HERE = Path(__file__).parent
REPLIES = HERE / "replies"
MODEL = "openai/gpt-4o-mini"
"""The model whose prompts are asked; the replies were recorded, and name their authors."""
MEASURES = ("Recall@1", "Recall@5", "Recall@10")
QUERIES = 100
"""Requests of each set that are asked with an LLM at request time, drawn with seed 0."""
WRITTEN_CATALOGS = ("spotify", "slack", "mcp")
"""The real catalogs about whose tools texts were written."""
SHARED_PARTS: Mapping[str, Any] = {"fuse_steps": "round-robin"}


def _part(name: str, **fields: Any) -> str:
    return json.dumps({"name": name, **fields})


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table.

    Attributes:
        name: of the table.
        title: what it shows.
        benchmarks: the names of the benchmarks, `real` among them.
        strategies: as for --strategy.
        indexes: the file in this folder with the indexes of the boards, and the texts in them;
            the benchmark's own index, without written texts, if empty.
        limit: requests of each set of a paper's benchmark; None for all.
        catalogs: of `real`; all if empty.
        boards: of a paper's benchmark, with the requests that are asked there; all if empty.
        unanswerable: whether requests that nothing answers are asked, too.
        recorded: whether its replies stand in `replies`; if not, it runs only where it is named.
    """

    name: str
    title: str
    benchmarks: tuple[str, ...]
    strategies: tuple[str, ...]
    indexes: str = ""
    limit: int | None = None
    catalogs: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()
    unanswerable: bool = False
    recorded: bool = True


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
        "products",
        "What each text of a tool's document adds, alone and together (Toolshed, table I and "
        "appendix I)",
        ("metatool", "real"),
        ("vector", "default"),
        indexes="products.toml",
        catalogs=("spotify",),
        boards=("single-without-examples", "multi"),
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
            "rag-tool-fusion",
        ),
        limit=QUERIES,
        recorded=False,
    ),
    Experiment(
        "plan-select",
        "Retrieval-Plan-Select on UltraTool",
        ("ultratool",),
        ("hybrid", "dummy-steps", "rag-only-select", "rps-dummy", "plan-select"),
        limit=QUERIES,
        recorded=False,
    ),
    Experiment(
        "graph",
        "Graph RAG-Tool Fusion on ToolLinkOS: the best three ordered by an LLM",
        ("toollinkos",),
        ("hybrid", "dependencies", "graph-rag-tool-fusion"),
        limit=QUERIES,
        recorded=False,
    ),
)
"""In the order of the page."""


@dataclass(frozen=True, slots=True)
class Row:
    """One system on one set of requests.

    Attributes:
        values: the mean and its 95 % interval by measure.
        calls, tokens: of the LLM for a request.
        fallbacks: the share of the requests in which a reply was missing.
    """

    task: str
    strategy: str
    index: str
    queries: int
    values: Mapping[str, tuple[float, float, float]]
    calls: float
    tokens: float
    fallbacks: float


@dataclass(frozen=True, slots=True)
class NothingFits:
    """How often a strategy said that nothing fits: of requests without an answer, and of others."""

    strategy: str
    index: str
    right: int
    without_answer: int
    false: int
    with_answer: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where an experiment finds its files.

    Attributes:
        data: the folder of the papers' benchmarks.
        real: the fetched real catalogs; None leaves them out.
        boards: the folder for boards.
        missing: what happens to requests without a recorded reply.
    """

    data: Path
    real: Path | None
    boards: Path
    missing: str = "fail"
    replies: Path = REPLIES

    @property
    def llm_options(self) -> dict[str, Any]:
        """The options of the LLM: its recorded replies."""
        return {"replies": str(self.replies), "missing_replies": self.missing}


def benchmarks_of(experiment: Experiment, places: Places) -> Iterator[Benchmark]:
    """Yield the benchmarks of an experiment; raises as `load_benchmark` does."""
    for name in experiment.benchmarks:
        if name != "real":
            benchmark = load_benchmark(name, places.data, experiment.limit)
            yield with_boards(benchmark, experiment.boards)
        elif places.real is not None:
            yield load_benchmark(name, places.real, only=experiment.catalogs)


def with_boards(benchmark: Benchmark, names: Sequence[str]) -> Benchmark:
    """Return a benchmark with the boards of these names and what is asked there; all if empty."""
    if not names:
        return benchmark
    return replace(
        benchmark,
        boards=tuple(board for board in benchmark.boards if board.name in names),
        query_sets=tuple(one for one in benchmark.query_sets if one.board in names),
    )


def settings_of(experiment: Experiment, places: Places) -> BenchSettings:
    """Return what is measured; `missing_replies` of [enrich] as well."""
    return BenchSettings(
        chosen_strategies(experiment.strategies),
        tuple(measures_of(list(MEASURES))),
        MODEL,
        places.llm_options,
        index_files(experiment, places),
    )


def index_files(experiment: Experiment, places: Places) -> list[IndexFile]:
    """Return the indexes of an experiment with the recorded replies.

    Where missing replies are written down, boards are built without them, so that one run writes
    the requests of all boards.
    """
    if not experiment.indexes:
        return []
    files = read_index_files([str(HERE / experiment.indexes)])
    incomplete = "publish" if places.missing == "write" else None
    return [file.with_replies(str(places.replies), places.missing, incomplete) for file in files]


def run_experiment(experiment: Experiment, places: Places) -> tuple[list[Row], list[NothingFits]]:
    """Build the boards, ask, and measure; returns the rows and what was said to fit nothing.

    Where missing replies are written down and texts of the boards are among them, nothing is
    measured: there are no rows.
    """
    rows: list[Row] = []
    settings = settings_of(experiment, places)
    if settings.indexes and places.missing == "write":
        for benchmark in benchmarks_of(experiment, places):
            run_benchmark(sampled(benchmark, 1, 0), places.boards, settings)
        if ReplyFolder(places.replies).open_requests():
            return [], []
    for benchmark in benchmarks_of(experiment, places):
        result, _ = run_benchmark(benchmark, places.boards, settings)
        rows += rows_of(benchmark.name, result)
    if not experiment.unanswerable or places.real is None:
        return rows, []
    return rows, list(_nothing_fits(experiment, places))


def rows_of(benchmark: str, result: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row for each task and system of a benchmark."""
    overheads = {(row["strategy"], row["index"]): row for row in _summed(result["overhead"])}
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in result["rows"]:
        task = f"{benchmark}, {row['task']}"
        if benchmark == "real" and row["task"] != "mean":
            continue
        group = groups.setdefault((task, row["strategy"], row["index"]), {"n": row["n"]})
        group[row["measure"]] = (row["value"], row["low"], row["high"])
    for (task, strategy, index), group in groups.items():
        overhead = overheads.get((strategy, index), {})
        queries = overhead.get("queries", 0) or 1
        yield Row(
            task,
            strategy,
            index,
            group.pop("n"),
            group,
            overhead.get("llm_calls", 0) / queries,
            overhead.get("tokens", 0) / queries,
            overhead.get("fallbacks", 0) / queries,
        )


def _summed(overheads: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the overhead of each system over all its sets of requests."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for row in overheads:
        total = sums.setdefault(
            (row["strategy"], row["index"]), dict.fromkeys(("queries", "llm_calls", "tokens"), 0)
        )
        for name in ("queries", "llm_calls", "tokens", "fallbacks"):
            total[name] = total.get(name, 0) + row[name]
    for (strategy, index), total in sums.items():
        yield {"strategy": strategy, "index": index, **total}


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
