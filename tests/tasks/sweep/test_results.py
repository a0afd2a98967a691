"""The best candidate within limits, those within the margin of it, and what is said of them."""

import json

import numpy as np
import pytest

from pegboard.evaluation.intervals import interval
from tasks.settings.sweep import SweepSettings
from tasks.sweep.measuring import Result
from tasks.sweep.results import choose, report_sweep, result_table

QUERIES = 400


def results(*systems, tools=1000):
    """Results of systems: index, strategy, k, the values, tokens and milliseconds."""
    return [
        Result(
            index, strategy, tools, k, "Recall", **interval(values).to_dict(),
            tokens=float(tokens), ms_p50=ms / 2, ms_p95=float(ms), values=values,
        )
        for index, strategy, k, values, tokens, ms in systems
    ]  # fmt: skip


def hits(share):
    """1 for the first queries, 0 for the others, so that the mean is `share`."""
    return (np.arange(QUERIES) < int(share * QUERIES)).astype(float)


RESULTS = results(
    ("a", "search", 1, hits(0.5), 100, 5),
    ("a", "search", 5, hits(0.8), 500, 5),
    ("a", "search", 10, hits(0.81), 1000, 5),
    ("a", "clauses", 5, hits(0.9), 510, 40),
    ("a", "clauses", 10, hits(0.905), 1020, 40),
) + results(("a", "search", 5, hits(0.99), 500, 5), tools=100)


def test_the_cheapest_that_is_shown_to_be_within_the_margin_is_recommended():
    choice = choose(RESULTS, SweepSettings())

    assert (choice.candidates, choice.allowed) == (5, 5)
    assert (choice.best.strategy, choice.best.k, choice.best.value) == ("clauses", 10, 0.905)
    assert (choice.recommended.strategy, choice.recommended.k) == ("clauses", 5)
    [(near, gap)] = choice.near
    assert near is choice.recommended
    assert gap.value == pytest.approx(-0.005)
    assert gap.low >= -0.02
    assert choice.best.low < choice.best.value < choice.best.high


@pytest.mark.parametrize("others", [1, 300])
def test_what_too_few_queries_show_is_not_recommended_however_many_candidates_there_are(others):
    best, half, close = np.ones(40), hits(0.5)[180:220], np.repeat([0.0, 1.0], [1, 39])
    cheap = [(f"i{number}", "search", 1, half, 10, 5) for number in range(others)]
    rows = [("best", "search", 10, best, 900, 5), ("close", "search", 5, close, 500, 5)]

    choice = choose(results(*rows, *cheap), SweepSettings(margin=0.03))

    assert (choice.recommended, choice.near) == (choice.best, ())
    assert choose(results(*rows), SweepSettings(margin=0.1)).recommended.index == "close"


@pytest.mark.parametrize(
    ("limits", "allowed", "best"),
    [
        ({"max_tokens": 505}, 2, ("search", 5)),
        ({"max_ms": 10}, 3, ("search", 10)),
        ({"max_ms": 10, "max_tokens": 400}, 1, ("search", 1)),
        ({"max_tokens": 10}, 0, None),
    ],
)
def test_limits_decide_which_candidates_there_are(limits, allowed, best):
    choice = choose(RESULTS, SweepSettings(**limits))

    assert (choice.allowed, choice.candidates) == (allowed, 5)
    assert (choice.best and (choice.best.strategy, choice.best.k)) == best
    assert (choice.recommended is None) == (best is None)


def test_a_sweep_writes_rows_and_a_summary(bench):
    own = {"name": "words", "modes": ["text"]}
    design, results = bench.measure(strategies=["clauses", own])

    summary = report_sweep(design, results)

    folder = design.sweep.out
    assert len(summary["rows"]) == 2 * 2 * 3
    assert len(summary["table"]) == 2 * 2
    stored = json.loads((folder / "sweep.json").read_text("utf-8"))
    assert {name: stored[name] for name in summary} == summary
    assert summary["says"][0].startswith("Best of 12 candidates: index whole")
    header, lines = result_table(summary)
    assert header[:2] == ["index", "strategy"]
    assert [line[:2] for line in lines] == [
        ["whole", "clauses"], ["whole", "words"], ["names", "clauses"], ["names", "words"],
    ]  # fmt: skip
    report_sweep(design, results)  # may be repeated


def test_without_a_candidate_within_the_limits_nothing_is_recommended(bench):
    design, results = bench.measure(strategies=["search"], indexes=["names"], max_tokens=0.1)

    summary = report_sweep(design, results)

    assert (summary["choice"]["recommended"], summary["choice"]["best"]) == (None, None)
    assert "None of the 3 candidates is within the limits" in summary["says"][0]
