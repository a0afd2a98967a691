"""Fit the ranker that ships with the library, and show how it does on catalogs that it was not
fitted on.

    python -m benchmarks train_ranker --data DIR --real DIR [--board DIR] [--index FILE] [--write]

Fits on the real catalogs and, with --data, on the development halves of the papers' benchmarks,
first without each in turn, which is then asked (all tasks of a paper are left out together), then
on all; with --write, those weights go into `pegboard/ranker/default.json` as that encoder's, and
the default encoder's table into docs/results.

A request and each clause of it, beside the whole as the default strategy searches them, score every
candidate; a candidate has the best of these. The weights minimise the softmax loss of the right
tools, with every task weighed alike but for real catalogs, which count four times: there are fewer
requests, and their kind is what is hard. Slope and bias of the probability are fitted to the best
scores of requests with an answer and of as many without: of other catalogs, and those written to
fit nothing. A second ranker without the cosines is for catalogs in letters that the encoder does
not know."""

import argparse
import json
import math
import random
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.documents import DOCS, write_result
from benchmarks.papers.benchmark import Benchmark, QuerySet
from benchmarks.papers.indexes import IndexFile, read_index_files
from benchmarks.papers.loading import load_benchmark
from benchmarks.real.catalogs import unanswerable
from benchmarks.run import open_boards, working_folder
from pegboard.encoders import DEFAULT_ENCODER, Encoder, encode_queries, load_encoder
from pegboard.formatting import markdown_table, table_lines
from pegboard.ranker.actions import request_actions
from pegboard.ranker.features import FEATURES, feature_matrix
from pegboard.ranker.model import Ranker, logistic
from pegboard.ranking import ScoredTool, hybrid_depth
from pegboard.retrieval.rules.clauses import split_clauses
from pegboard.search.memory import MemoryIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pegboard.evaluation.searcher import Searcher

    Weights = NDArray[np.float64]

PAPERS = ("seal-tools", "metatool", "livemcpbench", "ultratool", "bfcl", "acebench-en")
TARGET = Path(__file__).parents[1] / "index" / "pegboard" / "ranker" / "default.json"
HEADER = ["task", "requests", "left out: R@1", "R@5", "fitted on all: R@1", "R@5"]
COSINES = ("document", "summary")
REFUSED = {"accept_95": 0.05, "nothing_fits": 0.02}
REAL_WEIGHT = 4.0
RIDGE = 2e-3
FITTED, ASKED, UNANSWERABLE = 100, 500, 50
"""Requests of a task to fit on, to ask, and without an answer."""
DIGITS = 3
SEED = 0


@dataclass(frozen=True, slots=True)
class Example:
    """A request and its candidates.

    Attributes:
        steps: features, shape (whole and clauses, candidates, features).
        right: for each needed tool that was found the places of its alternatives.
        needed: how many tools are needed; none if it has no answer.
    """

    steps: "NDArray[np.float64]"
    right: tuple[tuple[int, ...], ...]
    needed: int

    def scores(self, weights: "Weights") -> "NDArray[np.float64]":
        """Of the candidates, as the default strategy fuses them: shares of each step, the best."""
        scores = self.steps @ weights
        scores -= scores.max(axis=1, keepdims=True)
        return (scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))).max(axis=0)

    def best(self, weights: "Weights") -> float:
        """The highest score of any candidate."""
        return float((self.steps @ weights).max())


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """The requests of one task of a benchmark, or of one real catalog.

    Attributes:
        family: tasks of one family share tools, so they are left out together.
        weight: in the loss.
    """

    name: str
    family: str
    weight: float
    answerable: tuple[Example, ...]
    unanswerable: tuple[Example, ...]

    def recall(self, weights: "Weights", k: int) -> float:
        """Mean Recall@k."""
        return float(np.mean([_recall(one, weights, k) for one in self.answerable]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print, and write if that is wished."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks train_ranker",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", metavar="DIR", type=Path, help="holds the benchmarks' folders")
    add("--real", required=True, metavar="DIR", type=Path, help="holds the real catalogs")
    add("--board", metavar="DIR", type=Path, help="keep the boards here")
    add("--index", metavar="FILE", help="TOML with [[indexes]]: another encoder and its options")
    add("--write", action="store_true", help="write the weights into the library")
    options = parser.parse_args(arguments)
    default = IndexFile("", f'[[indexes]]\nencoder = "{DEFAULT_ENCODER}"\n')
    index = read_index_files([options.index])[0] if options.index else default
    table = index.tables["indexes"][0]
    encoder = load_encoder(table["encoder"], **table.get("options", {}))
    with working_folder(options.board) as folder:
        tasks = list(training_tasks(options.data, options.real, folder, index, encoder))
    left_out = {
        family: fit_weights([task for task in tasks if task.family != family])
        for family in dict.fromkeys(task.family for task in tasks)
    }
    weights = fit_weights(tasks)
    lines = [_line(task, left_out[task.family], weights) for task in tasks]
    lines += [_mean(name, lines[first:last]) for name, first, last in _groups(tasks)]
    texts = [_texts(line) for line in lines]
    print(*table_lines(HEADER, texts), sep="\n")
    rankers = {encoder.name: fit_curve(tasks, left_out, weights)}
    if encoder.name == DEFAULT_ENCODER:
        by_words = fit_weights(tasks, [name for name in FEATURES if name not in COSINES])
        rankers["words"] = fit_curve(tasks, dict.fromkeys(left_out, by_words), by_words)
    values = {name: ranker.to_dict() for name, ranker in rankers.items()}
    print(json.dumps(values, indent=1))
    if options.write:
        shipped = json.loads(TARGET.read_text("utf-8")) | values
        TARGET.write_text(json.dumps(shipped, indent=1) + "\n", "utf-8")
    if options.write and encoder.name == DEFAULT_ENCODER:
        write_result(DOCS, "ranker", "\n".join(markdown_table(HEADER, texts)) + "\n")
    return 0


def training_tasks(
    data: Path | None, real: Path, folder: Path, index: IndexFile, encoder: Encoder
) -> Iterator[TrainingTask]:
    """Build the boards with that index, and measure the candidates of every request."""
    benchmarks = {"real": load_benchmark("real", real)}
    if data is not None:
        benchmarks |= {paper: load_benchmark(paper, data, ASKED, SEED) for paper in PAPERS}
    for name, benchmark in benchmarks.items():
        boards = open_boards(index.applied_to(benchmark), folder / name, encoder)
        others = [other for paper, other in benchmarks.items() if paper not in {name, "real"}]
        for query_set in benchmark.query_sets:
            if query_set.agents:
                continue
            task = query_set.board if name == "real" else f"{name} {next(iter(query_set.tasks))}"
            print(task, file=sys.stderr, flush=True)
            asked = partial(_example, boards[query_set.board], encoder)
            strange = _strange(query_set, [benchmark] if name == "real" else others)
            written = unanswerable(task) if name == "real" else []
            yield TrainingTask(
                task,
                task if name == "real" else name,
                REAL_WEIGHT if name == "real" else 1.0,
                tuple(asked(query.query, query.tools) for query in query_set.queries),
                tuple(asked(query, ()) for query in (*written, *strange)),
            )


def fit_weights(tasks: Sequence[TrainingTask], used: Collection[str] = FEATURES) -> "Weights":
    """Return the weights with the least softmax loss over the tasks, shape (features,); 0 for
    features that are not used.
    """
    from scipy.optimize import minimize

    examples = [
        (example, task.weight / len(found))
        for task in tasks
        if (found := [one for one in task.answerable if one.right][:FITTED])
        for example in found
    ]
    total = sum(weight for _, weight in examples)

    def loss(weights: "Weights") -> "tuple[float, Weights]":
        value, slope = RIDGE * total * weights @ weights / 2, RIDGE * total * weights
        for example, weight in examples:
            own, gradient = _loss(example, weights)
            value, slope = value + weight * own, slope + weight * gradient
        return value / total, slope / total * chosen

    chosen = np.array([float(name in used) for name in FEATURES])
    fitted = minimize(loss, chosen, jac=True, method="L-BFGS-B")
    return fitted.x


def fit_curve(
    tasks: Sequence[TrainingTask], left_out: Mapping[str, "Weights"], weights: "Weights"
) -> Ranker:
    """Return the ranker of these weights, with the curve through the best scores: every task weighs
    alike, and both classes do.

    Thresholds refuse a share of the requests with an answer, every task weighed alike, by the
    weights that were fitted without it; see `REFUSED`.
    """
    from sklearn.linear_model import LogisticRegression

    scores, labels, shares = [], [], []
    for task in tasks:
        for label, side in ((1, task.answerable), (0, task.unanswerable)):
            scores += [one.best(weights) for one in side]
            labels += [label] * len(side)
            shares += [1 / len(side)] * len(side)
    model = LogisticRegression(C=1e3)
    model.fit(np.array(scores)[:, None], labels, sample_weight=np.array(shares) / np.mean(shares))
    slope, bias = float(model.coef_[0][0]), float(model.intercept_[0])
    best = [
        (one.best(left_out[task.family]), 1 / len(task.answerable))
        for task in tasks
        for one in task.answerable
    ]
    reached = {name: _quantile(best, share) for name, share in REFUSED.items()}
    thresholds = {
        name: round(logistic(slope * score + bias), DIGITS) for name, score in reached.items()
    }
    rounded = tuple(round(float(weight), DIGITS) for weight in weights)
    return Ranker(rounded, round(slope, DIGITS), round(bias, DIGITS), thresholds)


def _quantile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """The value below which that share of the weight lies."""
    values, weights = np.array(sorted(weighted)).T
    return float(values[np.searchsorted(np.cumsum(weights) / weights.sum(), share)])


def _loss(example: Example, weights: "Weights") -> "tuple[float, Weights]":
    """Minus the log-likelihood of the right tools under a softmax of the best steps' scores."""
    scores = example.steps @ weights
    best = scores.argmax(axis=0), np.arange(scores.shape[1])
    features, scores = example.steps[best], scores[best]
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    expected = shares @ features
    value, gradient = 0.0, np.zeros_like(weights)
    for places in map(list, example.right):
        own = shares[places]
        likely = own.sum() + 1e-12
        value -= math.log(likely) / len(example.right)
        gradient -= (own @ features[places] / likely - expected) / len(example.right)
    return value, gradient


def _example(board: "Searcher", encoder: Encoder, text: str, names: Sequence[str]) -> Example:
    loaded = board.loaded
    name = loaded.index_name(None)
    index = loaded.index(name)
    assert isinstance(index, MemoryIndex), "the catalogs are small"
    texts = [text, *split_clauses(text)]
    spelled_out = [loaded.spelled_out(each) for each in texts]
    vectors = np.asarray(encode_queries(encoder, spelled_out), np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    words = [loaded.query_words(name, each) for each in texts]
    found = index.both_many(units, words, hybrid_depth(1))
    tools = list(dict.fromkeys(tool for each in found for tool in each.tools))
    union = [ScoredTool(tool, 0.0) for tool in tools]
    measured = [
        feature_matrix(index.measured(unit, own, union, ()), request_actions(each))
        for each, unit, own in zip(texts, units, words, strict=True)
    ]
    steps = [measured[0], *((measured[0] + clause) / 2 for clause in measured[1:])]
    places = {tool: place for place, tool in enumerate(tools)}
    needed = board.names.resolve(names)
    right = (tuple(places[one] for one in ids if one in places) for ids in needed.tools.values())
    return Example(np.stack(steps), tuple(filter(None, right)), len(needed.labels))


def _recall(example: Example, weights: "Weights", k: int) -> float:
    first = set(np.argsort(-example.scores(weights), kind="stable")[:k].tolist())
    return sum(not first.isdisjoint(places) for places in example.right) / example.needed


def _strange(query_set: QuerySet, others: Sequence[Benchmark]) -> list[str]:
    """Requests for other boards."""
    queries = [
        query.query
        for benchmark in others
        for one in benchmark.query_sets
        if one.board != query_set.board and not one.agents
        for query in one.queries
    ]
    return random.Random(SEED).sample(sorted(set(queries)), UNANSWERABLE)  # noqa: S311  a sample


def _line(
    task: TrainingTask, left_out: "Weights", fitted: "Weights"
) -> tuple[str, int, *tuple[float, ...]]:
    recalls = [task.recall(weights, k) for weights in (left_out, fitted) for k in (1, 5)]
    return (task.name, len(task.answerable), *recalls)


def _groups(tasks: Sequence[TrainingTask]) -> Iterator[tuple[str, int, int]]:
    """The name of each mean, and the span of its tasks: real catalogs come first."""
    real = sum(task.weight == REAL_WEIGHT for task in tasks)
    yield "mean of real catalogs", 0, real
    if real < len(tasks):
        yield "mean of papers' tasks", real, len(tasks)


def _mean(
    name: str, lines: Sequence[tuple[str, int, *tuple[float, ...]]]
) -> tuple[str, int, *tuple[float, ...]]:
    return (name, sum(line[1] for line in lines), *np.mean([line[2:] for line in lines], axis=0))


def _texts(line: tuple[str, int, *tuple[float, ...]]) -> tuple[str, ...]:
    return (line[0], str(line[1]), *(f"{value:.3f}" for value in line[2:]))
