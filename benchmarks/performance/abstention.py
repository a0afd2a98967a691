"""Can a probability tell requests that a board answers from requests that it does not?

    python -m benchmarks abstention [--limit N] [--board DIR] [--real DIR] [--write]

prints one JSON line for each board and what decides, then the means over the boards of the papers'
benchmarks and over the real catalogs; with --write the means go into docs/results.md, too.

Every board is asked by the default strategy.

A board's own requests have an answer. For a paper's board those of the other benchmarks count as
having none; for a real catalog the requests that were written to fit nothing, and those of the
other catalogs. That is not always so: a board with a weather tool answers a question for the
weather, whoever asks it, so a false accept of these is not always false.

    decides             `score`: the score of the best hit; `probability`: that of the result
    auroc               how often an answerable request is above one without an answer
    false_accept        share of those without an answer that is let through where 95 % of the
                        answerable ones are
    calibration_error   expected, of a probability, over 5 bins, both classes weighted alike"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.papers.benchmark import Benchmark, BenchmarkBoard
from benchmarks.papers.loading import load_benchmark
from benchmarks.papers.tables import write_between_marks
from benchmarks.performance.data import BENCHMARKS, embedded_encoder, require_benchmarks
from benchmarks.real.catalogs import unanswerable
from benchmarks.run import open_boards, working_folder
from pegboard.cli.tables import interval_text, markdown_table
from pegboard.errors import PegboardError
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.intervals import RESAMPLES, SEED
from tasks.lake.files import Lake
from tasks.lake.query_vectors import CachedQueryEncoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pegboard.encoders import Encoder
    from pegboard.evaluation.searcher import Searcher

    Scores = NDArray[np.float64]

ACCEPT = 0.95
BINS = 5
LIMIT = 200
DEPTH = 10
PAPERS = {
    "seal-tools": "tools",
    "metatool": "single",
    "toollinkos": "declared",
    "livemcpbench": "tools",
    "ultratool": "tools",
    "bfcl": "tools",
    "acebench-en": "tools",
}
"""The benchmarks, each with the board that is asked."""
RESULTS = Path(__file__).parents[2] / "docs" / "results.md"
MEASURES: "Mapping[str, Callable[[Scores, Scores], float]]"


@dataclass(frozen=True, slots=True)
class Case:
    """A board with requests that it answers, and requests that it does not.

    Attributes:
        group: of boards over which a mean is taken.
        others: requests without an answer.
    """

    group: str
    benchmark: Benchmark
    board: BenchmarkBoard
    queries: tuple[GoldenQuery, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What one decider says of the requests with an answer and of those without."""

    group: str
    board: str
    decides: str
    right: "Scores"
    wrong: "Scores"

    def row(self) -> dict[str, Any]:
        """The measures as JSON values."""
        values = {name: round(measure(self.right, self.wrong), 3) for name, measure in self._own()}
        sizes = {"answerable": len(self.right), "unanswerable": len(self.wrong)}
        return {"board": self.board, "decides": self.decides, **sizes, **values}

    def _own(self) -> "Iterator[tuple[str, Callable[[Scores, Scores], float]]]":
        return (
            (name, measure)
            for name, measure in MEASURES.items()
            if self.decides != "score" or name != "calibration_error"
        )


def auroc(right: "Scores", wrong: "Scores") -> float:
    """The share of pairs in which the answerable request is above; ties count half."""
    order = np.sort(wrong)
    below = np.searchsorted(order, right, "left") + np.searchsorted(order, right, "right")
    return float(below.mean() / 2 / len(wrong))


def false_accept(right: "Scores", wrong: "Scores") -> float:
    """The share of the unanswerable at or above what 95 % of the answerable reach."""
    return float((wrong >= np.quantile(right, 1 - ACCEPT, method="lower")).mean())


def calibration_error(right: "Scores", wrong: "Scores") -> float:
    """How far probabilities are from shares, the classes weighted alike."""
    likely = np.concatenate([right, wrong])
    labels = np.arange(len(likely)) < len(right)
    weights = np.where(labels, 0.5 / len(right), 0.5 / len(wrong))
    bins = np.minimum((likely * BINS).astype(int), BINS - 1)
    gaps = [((likely - labels) * weights)[bins == number].sum() for number in range(BINS)]
    return float(np.abs(gaps).sum())


MEASURES = {
    "auroc": auroc,
    "false_accept": false_accept,
    "calibration_error": calibration_error,
}


def papers_cases(data: Path, limit: int) -> list[Case]:
    """The boards of the papers' benchmarks."""
    loaded = {name: load_benchmark(name, data / name, limit) for name in PAPERS}
    asked: dict[str, tuple[GoldenQuery, ...]] = {}
    for name, board in PAPERS.items():
        own = [one for one in loaded[name].query_sets if one.board == board and not one.agents]
        asked[name] = own[0].queries
    return [
        Case(
            "papers",
            benchmark,
            _board(benchmark, PAPERS[name]),
            asked[name],
            _drawn([q.query for other in PAPERS if other != name for q in asked[other]], limit),
        )
        for name, benchmark in loaded.items()
    ]


def real_cases(folder: Path, limit: int) -> list[Case]:
    """The real catalogs."""
    benchmark = load_benchmark("real", folder)
    cases: list[Case] = []
    for own in benchmark.query_sets:
        others = [q.query for one in benchmark.query_sets if one is not own for q in one.queries]
        nothing = unanswerable(own.board)
        drawn = (*nothing, *_drawn(others, min(limit, len(own.queries))))
        cases.append(Case("real", benchmark, _board(benchmark, own.board), own.queries, drawn))
    return cases


def decisions(case: Case, folder: Path, encoder: "Encoder") -> list[Decision]:
    """What each decider says on one board."""
    plain = _open(case, case.board, folder, encoder)
    queries = [query.query for query in case.queries]
    right, wrong = _said(plain, queries), _said(plain, case.others)
    made = [("score", right["score"], wrong["score"])]
    if not np.isnan(right["probability"]).any():
        made.append(("probability", right["probability"], wrong["probability"]))
    return [
        Decision(case.group, case.board.name if case.group == "real" else case.benchmark.name, *one)
        for one in made
    ]


def means(made: Sequence[Decision]) -> list[dict[str, Any]]:
    """The means over the boards of each group, with intervals bootstrapped within each board."""
    rows: list[dict[str, Any]] = []
    for group, decides in dict.fromkeys((one.group, one.decides) for one in made):
        same = [one for one in made if (one.group, one.decides) == (group, decides)]
        row: dict[str, Any] = {"mean": group, "decides": decides, "boards": len(same)}
        for name in same[0].row().keys() & MEASURES.keys():
            row[name] = _mean(MEASURES[name], same)
        rows.append(row)
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The means as Markdown."""
    header = ["boards", "what decides", "AUROC", "false accepts at 95 % true ones", "ECE"]
    lines = [
        (
            f"{row['mean']} ({row['boards']})",
            row["decides"],
            *(interval_text(row[name]) if name in row else "" for name in MEASURES),
        )
        for row in rows
    ]
    return "\n".join(markdown_table(header, lines)) + "\n"


def _mean(
    measure: "Callable[[Scores, Scores], float]", made: Sequence[Decision]
) -> dict[str, float]:
    rng = np.random.default_rng(SEED)
    draws = [
        np.mean(
            [
                measure(rng.choice(o.right, len(o.right)), rng.choice(o.wrong, len(o.wrong)))
                for o in made
            ]
        )
        for _ in range(RESAMPLES // 4)
    ]
    value = float(np.mean([measure(one.right, one.wrong) for one in made]))
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"value": value, "low": float(low), "high": float(high)}


def _said(board: "Searcher", queries: Sequence[str]) -> "dict[str, Scores]":
    """The best hit's score and the result's probability for each query; NaN where there is none."""
    results = board.search([GoldenQuery(query) for query in queries], DEPTH)
    scores = [max((hit.score for hit in result), default=0.0) for result in results]
    likely = [
        np.nan if one.probability is None and len(one) else one.probability or 0.0
        for one in results
    ]
    return {"score": np.array(scores), "probability": np.array(likely, float)}


def _open(case: Case, board: BenchmarkBoard, folder: Path, encoder: "Encoder") -> "Searcher":
    one = replace(case.benchmark, boards=(board,))
    return open_boards(one, folder / case.benchmark.name, encoder)[board.name]


def _board(benchmark: Benchmark, name: str) -> BenchmarkBoard:
    return next(board for board in benchmark.boards if board.name == name)


def _drawn(queries: Sequence[str], limit: int) -> tuple[str, ...]:
    distinct = list(dict.fromkeys(queries))
    return tuple(random.Random(SEED).sample(distinct, min(limit, len(distinct))))


def main() -> None:
    """Measure and print; write, if that is wished."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--limit", type=int, default=LIMIT, metavar="N", help=f"requests of a board ({LIMIT})")
    add("--board", type=Path, metavar="DIR", help="keep the boards and vectors here")
    add("--real", type=Path, metavar="DIR", help="holds the real catalogs; left out without it")
    add("--only", nargs="+", metavar="BOARD", help="only these boards")
    add("--json", type=Path, metavar="OUT", help="write the rows to a file")
    add("--write", action="store_true", help="put the means into docs/results.md")
    options = parser.parse_args()
    require_benchmarks()
    cases = real_cases(options.real, options.limit) if options.real else []
    cases += papers_cases(BENCHMARKS, options.limit)
    made: list[Decision] = []
    with working_folder(options.board) as folder:
        encoder = CachedQueryEncoder.of(embedded_encoder(), Lake(str(folder / "vectors")))
        for case in cases:
            name = case.board.name if case.group == "real" else case.benchmark.name
            if options.only and name not in options.only:
                continue
            try:
                own = decisions(case, folder, encoder)
            except PegboardError as error:
                print(json.dumps({"board": name, "problem": str(error)}), flush=True)
                continue
            made += own
            for one in own:
                print(json.dumps(one.row()), flush=True)
    rows = means(made)
    for row in rows:
        print(json.dumps(row), flush=True)
    if options.json:
        text = json.dumps({"rows": [one.row() for one in made], "means": rows}, indent=1)
        options.json.write_text(text + "\n", "utf-8")
    if options.write:
        write_between_marks(RESULTS, "abstention", table(rows))
