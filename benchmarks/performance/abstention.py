"""`python -m benchmarks.performance.abstention [--cache FOLDER] [--write]`: how well a score tells
that no tool of a board fits, as JSON lines.

With --cache vectors are kept for the next time; with --write the means over the pairs go into
docs/results.md, too.

The requests of one benchmark have an answer on its board; those of another count as having none.
That is not always so: a board with a weather tool answers a question for the weather, whoever asks
it, so a false accept of these is not always false. Each set is halved by a hash of the request;
everything is fitted on the one half and measured on the other.

    score                  what decides: the best cosine, BM25 or hybrid score; or the probability
    of a calibrated curve
    fitted                 what the curve learned from as having no answer: `left-out` or
    `unrelated`
    false_accept_roc       share of the unanswerable let through where exactly 95 % of the
    answerable of the measured half are
    false_accept           the same at the threshold that lets 95 % through of the fitted half
    false_reject           share of the answerable refused at that threshold
    calibration_error      expected, over 5 bins, both classes weighted alike; `reliability` has
    [probability, share, weight] of each bin

`style` fits on requests of one kind and refuses others that the board answers as well: on MetaTool,
the questions that stand in the index itself against new ones; on LiveMCPBench, steps against whole
questions."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.papers.livemcpbench import numbered
from benchmarks.papers.tables import write_between_marks
from benchmarks.performance.data import (
    CachingEncoder,
    MemoryBoard,
    lines,
    memory_board,
    require_benchmarks,
)
from pegboard.retrieval.calibration import Calibration, SearchEvidence
from pegboard.search.ranking import convex_combination
from tasks.calibrate import calibrate_evidence, search_evidence

ACCEPT = 0.95
BINS = 5
PAIRS = (
    ("metatool", ("seal-tools", "ultratool", "toollinkos")),
    ("seal-tools", ("metatool", "ultratool", "toollinkos")),
    ("toollinkos", ("metatool", "ultratool", "seal-tools")),
)
SAID: list[dict[str, Any]] = []
RESULTS = Path(__file__).parents[2] / "docs" / "results.md"
Scoring = Callable[[SearchEvidence], float]


def requests_of(benchmark: str) -> list[tuple[str, list[str]]]:
    """Every request of a benchmark, and the true names of the right tools."""
    if benchmark == "metatool":
        return [
            (one["query"], [one["tool"]]) for one in lines("metatool/single_tool_queries.jsonl")
        ]
    if benchmark == "seal-tools":
        return [
            (one["query"], [call["api"] for call in one["calling"]])
            for one in lines("seal-tools/dev.jsonl")
        ]
    if benchmark == "toollinkos":
        return [
            (one["user_query"], one["golden_function_names"])
            for one in lines("toollinkos/instances.jsonl")
        ]
    return [(one["question"], []) for one in lines("ultratool/instances.jsonl")]


def bench_pairs(encoder: CachingEncoder) -> None:
    """Every board against the requests of the others."""
    for name, others in PAIRS:
        board = memory_board(name, encoder)
        asked = requests_of(name)
        found = search_evidence(board.tools, encoder, [query for query, _ in asked])
        fit, test = _halved([query for query, _ in asked], found)
        left = _halved([query for query, _ in asked], _left_out(board, asked, found))
        every: list[list[SearchEvidence]] = [[], []]
        for other in others:
            queries = [query for query, _ in requests_of(other)]
            unrelated = _halved(queries, search_evidence(board.tools, encoder, queries))
            every = [[*before, *half] for before, half in zip(every, unrelated, strict=True)]
            _compare({"board": name, "unanswerable": other}, fit, test, left[0], unrelated)
        _compare({"board": name, "unanswerable": "all three"}, fit, test, left[0], every)
        made = calibrate_evidence(fit, left[0], left_out=True)
        _print(
            {"board": name, "unanswerable": "left out", "fitted": "left-out"},
            made,
            fit,
            test,
            left[1],
        )


def bench_style(encoder: CachingEncoder) -> None:
    """Requests of one kind against requests of another, all of which the board answers."""
    board = memory_board("metatool", encoder)
    indexed = [(one["query"], [one["tool"]]) for one in lines("metatool/example_queries.jsonl")]
    _style("metatool", board, encoder, {"indexed": indexed, "new": requests_of("metatool")})
    board = memory_board("livemcpbench", encoder)
    questions: list[tuple[str, list[str]]] = []
    steps: list[tuple[str, list[str]]] = []
    for line in lines("livemcpbench/annotations.jsonl"):
        tools = numbered(line["Annotator Metadata"]["Tools"])
        questions.append((line["Question"], tools))
        steps += [(step, tools) for step in numbered(line["Annotator Metadata"]["Steps"])]
    _style("livemcpbench", board, encoder, {"steps": steps, "questions": questions})


def _style(
    name: str,
    board: MemoryBoard,
    encoder: CachingEncoder,
    kinds: dict[str, list[tuple[str, list[str]]]],
) -> None:
    found = {
        kind: search_evidence(board.tools, encoder, [query for query, _ in asked])
        for kind, asked in kinds.items()
    }
    for kind, asked in kinds.items():
        made = calibrate_evidence(found[kind], _left_out(board, asked, found[kind]), left_out=True)
        for other, evidence in found.items():
            for mode, curve in made.curves.items():
                score = _by_curve(made, mode)
                refused = {
                    threshold: round(
                        float(np.mean([score(one) < at.probability for one in evidence])), 3
                    )
                    for threshold, at in curve.thresholds.items()
                }
                line = {
                    "style": name,
                    "fitted": kind,
                    "asked": other,
                    "score": mode,
                    "requests": len(evidence),
                }
                print(json.dumps(line | {"refused": refused}), flush=True)


def _compare(
    label: dict[str, Any],
    fit: Sequence[SearchEvidence],
    test: Sequence[SearchEvidence],
    left: Sequence[SearchEvidence],
    unrelated: Sequence[Sequence[SearchEvidence]],
) -> None:
    plain: dict[str, Scoring] = {
        "best cosine": lambda one: one.vector[0].score if one.vector else -1.0,
        "best BM25": lambda one: one.text[0].score if one.text else 0.0,
        "best hybrid": lambda one: convex_combination(one.vector or (), one.text or ())[0][1],
    }
    for name, score in plain.items():
        line = label | {"score": name, "fitted": "nothing"}
        _say(line | _accepts(score, fit, test, unrelated[1]))
    for fitted, others in {"left-out": left, "unrelated": unrelated[0]}.items():
        made = calibrate_evidence(fit, others, left_out=fitted == "left-out")
        _print(label | {"fitted": fitted}, made, fit, test, unrelated[1])


def _print(
    label: dict[str, Any],
    made: Calibration,
    fit: Sequence[SearchEvidence],
    test: Sequence[SearchEvidence],
    others: Sequence[SearchEvidence],
) -> None:
    for mode, curve in made.curves.items():
        score = _by_curve(made, mode)
        line = label | {"score": f"probability, {mode}"} | _accepts(score, fit, test, others)
        line |= _reliability([score(one) for one in test], [score(one) for one in others])
        line["curve"] = [curve.bias, curve.cosine, curve.words]
        _say(line)


def _say(line: dict[str, Any]) -> None:
    SAID.append(line)
    print(json.dumps(line), flush=True)


def _accepts(
    score: Scoring,
    fit: Sequence[SearchEvidence],
    test: Sequence[SearchEvidence],
    others: Sequence[SearchEvidence],
) -> dict[str, Any]:
    learned, right, wrong = (np.array([score(one) for one in side]) for side in (fit, test, others))
    threshold, exact = (
        float(np.quantile(side, 1 - ACCEPT, method="lower")) for side in (learned, right)
    )
    return {
        "answerable": len(right),
        "unanswerable_n": len(wrong),
        "false_accept_roc": round(float((wrong >= exact).mean()), 3),
        "false_accept": round(float((wrong >= threshold).mean()), 3),
        "false_reject": round(float((right < threshold).mean()), 3),
    }


def _reliability(right: Sequence[float], wrong: Sequence[float]) -> dict[str, Any]:
    """The expected calibration error and its bins, the classes weighted alike, as a curve with a
    share of .5 means it.
    """
    likely = np.array([*right, *wrong])
    labels = np.arange(len(likely)) < len(right)
    weights = np.where(labels, 0.5 / len(right), 0.5 / len(wrong))
    bins = np.minimum((likely * BINS).astype(int), BINS - 1)
    table: list[list[float]] = []
    for number in range(BINS):
        inside = bins == number
        weight = float(weights[inside].sum())
        if weight:
            said = float((weights * likely)[inside].sum() / weight)
            share = float((weights * labels)[inside].sum() / weight)
            table.append([round(said, 3), round(share, 3), round(weight, 3)])
    error = sum(weight * abs(said - share) for said, share, weight in table)
    return {"calibration_error": round(error, 3), "reliability": table}


def _by_curve(made: Calibration, mode: str) -> Scoring:
    curve = made.curves[mode]

    def score(found: SearchEvidence) -> float:
        return max(
            map(curve.probability, found.searched_by(mode).similarities().values()), default=0.0
        )

    return score


def _left_out(
    board: MemoryBoard, asked: Sequence[tuple[str, list[str]]], found: Sequence[SearchEvidence]
) -> list[SearchEvidence]:
    ids = {names: board.ids(names) for names in {tuple(sorted(tools)) for _, tools in asked}}
    return [
        one.without(ids[tuple(sorted(tools))]) for one, (_, tools) in zip(found, asked, strict=True)
    ]


def _halved(queries: Sequence[str], found: Sequence[SearchEvidence]) -> list[list[SearchEvidence]]:
    return [
        [
            one
            for query, one in zip(queries, found, strict=True)
            if crc32(query.encode()) % 2 == half
        ]
        for half in (0, 1)
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The means over the pairs of a board and one other benchmark, as Markdown."""
    own = [
        row
        for row in rows
        if row.get("unanswerable") in {other for _, others in PAIRS for other in others}
    ]
    pairs = {(row["board"], row["unanswerable"]) for row in own}
    written = [
        f"Means over {len(pairs)} pairs of a board and requests of another benchmark.\n",
        "| what decides | learned from | false accepts at 95 % true ones | at the fitted "
        "threshold | false rejects there |",
        "|---|---|---|---|---|",
    ]
    for score, fitted in dict.fromkeys((row["score"], row["fitted"]) for row in own):
        same = [row for row in own if (row["score"], row["fitted"]) == (score, fitted)]
        means = [
            fmean(row[name] for row in same)
            for name in ("false_accept_roc", "false_accept", "false_reject")
        ]
        written.append(f"| {score} | {fitted} | {' | '.join(f'{value:.3f}' for value in means)} |")
    return "\n".join(written) + "\n"


def main() -> None:
    """Measure and print; write, if that is wished."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cache", type=Path, help="a folder that keeps the vectors for the next time"
    )
    parser.add_argument("--write", action="store_true", help="put the means into docs/results.md")
    options = parser.parse_args()
    require_benchmarks()
    encoder = CachingEncoder(options.cache)
    bench_pairs(encoder)
    bench_style(encoder)
    if options.write:
        write_between_marks(RESULTS, "abstention", table(SAID))


if __name__ == "__main__":
    main()
