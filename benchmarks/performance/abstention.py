"""Can a probability tell requests that a board answers from requests that it does not?

    python -m benchmarks abstention --data DIR [--real DIR] [--limit N] [--board DIR] [--write]

prints one JSON line for each board and what decides, then the means over the boards of the papers'
benchmarks and over the real catalogs; with --write the means go into docs/results, too.

Every board is asked by the default strategy.

A board's own requests have an answer. For a paper's board those of the other benchmarks count as
having none; for a real catalog the requests that were written to fit nothing, and those of the
other catalogs. That is not always so: a board with a weather tool answers a question for the
weather from another catalog's requests, so a false accept of these is not always false.

    decides             `score`: the score of the best hit; `probability`: that of the result
    auroc               how often an answerable request is above one without an answer
    false_accept        share of those without an answer that is let through where 95 % of the
                        answerable ones are
    calibration_error   expected, of a probability, over 5 bins, both classes weighted alike"""

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.documents import DOCS, write_result
from benchmarks.papers.benchmark import Benchmark, QuerySet
from benchmarks.papers.loading import load_benchmark
from benchmarks.real.catalogs import unanswerable
from benchmarks.run import open_boards, working_folder
from pegboard.cli.main import run_command
from pegboard.encoders import DEFAULT_ENCODER, load_encoder
from pegboard.evaluation.golden import GoldenQuery
from pegboard.evaluation.intervals import RESAMPLES, SEED
from pegboard.formatting import interval_text, markdown_table
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
PAPERS = (
    "seal-tools",
    "metatool",
    "toollinkos",
    "livemcpbench",
    "ultratool",
    "bfcl",
    "acebench-en",
)
"""The benchmarks; of each the board of its first set of requests is asked."""


@dataclass(frozen=True, slots=True)
class Case:
    """A board with requests that it answers, and requests that it does not.

    Attributes:
        group: of boards over which a mean is taken.
        name: of the board in results.
        benchmark: with that board only.
        others: requests without an answer.
    """

    group: str
    name: str
    benchmark: Benchmark
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
        values = {
            name: round(measure(self.right, self.wrong), 3)
            for name, measure in MEASURES.items()
            if self.decides == "probability" or name != "calibration_error"
        }
        sizes = {"answerable": len(self.right), "unanswerable": len(self.wrong)}
        return {"board": self.board, "decides": self.decides, **sizes, **values}


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


MEASURES: "Mapping[str, Callable[[Scores, Scores], float]]" = {
    "auroc": auroc,
    "false_accept": false_accept,
    "calibration_error": calibration_error,
}


def papers_cases(data: Path, limit: int) -> list[Case]:
    """The boards of the papers' benchmarks."""
    loaded = {name: load_benchmark(name, data, limit) for name in PAPERS}
    asked = {name: benchmark.query_sets[0] for name, benchmark in loaded.items()}

    def others(name: str) -> list[str]:
        return [q.query for other, own in asked.items() if other != name for q in own.queries]

    return [
        _case("papers", name, loaded[name], query_set, _drawn(others(name), limit))
        for name, query_set in asked.items()
    ]


def real_cases(folder: Path, limit: int) -> list[Case]:
    """The real catalogs."""
    benchmark = load_benchmark("real", folder)
    cases: list[Case] = []
    for own in benchmark.query_sets:
        others = [q.query for one in benchmark.query_sets if one is not own for q in one.queries]
        drawn = _drawn(others, min(limit, len(own.queries)))
        nothing = (*unanswerable(own.board), *drawn)
        cases.append(_case("real", own.board, benchmark, own, nothing))
    return cases


def decisions(case: Case, folder: Path, encoder: "Encoder") -> list[Decision]:
    """What each decider says on one board."""
    (board,) = open_boards(case.benchmark, folder / case.benchmark.name, encoder).values()
    queries = [query.query for query in case.queries]
    right, wrong = _said(board, queries), _said(board, case.others)
    return [Decision(case.group, case.name, one, right[one], wrong[one]) for one in right]


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

    def drawn(scores: "Scores") -> "Scores":
        return rng.choice(scores, len(scores))

    draws = [
        np.mean([measure(drawn(one.right), drawn(one.wrong)) for one in made])
        for _ in range(RESAMPLES // 4)
    ]
    value = float(np.mean([measure(one.right, one.wrong) for one in made]))
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"value": value, "low": float(low), "high": float(high)}


def _said(board: "Searcher", queries: Sequence[str]) -> "dict[str, Scores]":
    """The best hit's score and the result's probability for each query; 0 where there is no hit."""
    results = board.search([GoldenQuery(query) for query in queries], DEPTH)
    scores = [max((hit.score for hit in result), default=0.0) for result in results]
    likely = [result.probability or 0.0 for result in results]
    return {"score": np.array(scores), "probability": np.array(likely, float)}


def _case(
    group: str, name: str, benchmark: Benchmark, own: QuerySet, others: tuple[str, ...]
) -> Case:
    boards = tuple(board for board in benchmark.boards if board.name == own.board)
    return Case(group, name, replace(benchmark, boards=boards), own.queries, others)


def _drawn(queries: Sequence[str], limit: int) -> tuple[str, ...]:
    distinct = list(dict.fromkeys(queries))
    return tuple(random.Random(SEED).sample(distinct, min(limit, len(distinct))))


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", required=True, type=Path, metavar="DIR", help="holds the benchmarks' folders")
    add("--real", type=Path, metavar="DIR", help="holds the real catalogs; left out without it")
    add("--limit", type=int, default=LIMIT, metavar="N", help=f"requests of a board ({LIMIT})")
    add("--board", metavar="DIR", help="keep the boards and vectors here")
    add("--write", action="store_true", help="put the means into docs/results")
    parser.set_defaults(run=_measure)
    return run_command("python -m benchmarks abstention", parser.parse_args())


def _measure(options: argparse.Namespace) -> int:
    cases = real_cases(options.real, options.limit) if options.real else []
    cases += papers_cases(options.data, options.limit)
    made: list[Decision] = []
    with working_folder(options.board) as folder:
        lake = Lake(str(folder / "vectors"))
        encoder = CachedQueryEncoder(load_encoder(DEFAULT_ENCODER), lake)
        for case in cases:
            own = decisions(case, folder, encoder)
            made += own
            for one in own:
                print(json.dumps(one.row()), flush=True)
    rows = means(made)
    for row in rows:
        print(json.dumps(row), flush=True)
    if options.write:
        write_result(DOCS, "abstention", table(rows))
    return 0
