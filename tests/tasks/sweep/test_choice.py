"""The best candidate within limits, those within the margin of it, and the size effect."""

import numpy as np
import polars as pl
import pytest

from pegboard.evaluation.intervals import interval
from tasks.settings.sweep import SweepSettings
from tasks.sweep.results import Results, choose

QUERIES = 400


def results(*cells):
    """Results of cells: index, strategy, tools, k, the values, tokens and milliseconds."""
    rows, values = [], []
    for index, strategy, tools, k, column, tokens, ms in cells:
        point = {"index": index, "strategy": strategy, "tools": tools, "seed": 0, "k": k}
        point["measure"] = "Recall"
        cost = {"tokens": float(tokens), "ms_p50": ms / 2, "ms_p95": float(ms)}
        rows.append(point | interval(column).to_dict() | cost)
        values += [
            point | {"place": place, "value": float(value)} for place, value in enumerate(column)
        ]
    return Results(pl.DataFrame(rows), pl.DataFrame(values))


def hits(share):
    """1 for the first queries, 0 for the others, so that the mean is `share`."""
    return (np.arange(QUERIES) < int(share * QUERIES)).astype(float)


RESULTS = results(
    ("a", "search", 1000, 1, hits(0.5), 100, 5),
    ("a", "search", 1000, 5, hits(0.8), 500, 5),
    ("a", "search", 1000, 10, hits(0.81), 1000, 5),
    ("a", "clauses", 1000, 5, hits(0.9), 510, 40),
    ("a", "clauses", 1000, 10, hits(0.905), 1020, 40),
    ("a", "search", 100, 5, hits(0.99), 500, 5),
)


def test_the_cheapest_that_is_shown_to_be_within_the_margin_is_recommended():
    choice = choose(RESULTS, SweepSettings())

    assert (choice.measure, choice.tools) == ("Recall", 1000)
    assert (choice.candidates, choice.allowed) == (5, 5)
    assert (choice.best.strategy, choice.best.k, choice.best.value) == ("clauses", 10, 0.905)
    assert (choice.recommended.strategy, choice.recommended.k) == ("clauses", 5)
    assert choice.recommended.against["value"] == pytest.approx(-0.005)
    assert choice.recommended.against["low"] >= -0.02
    assert [(candidate.strategy, candidate.k) for candidate in choice.near] == [("clauses", 5)]
    assert choice.best.low < choice.best.value < choice.best.high


@pytest.mark.parametrize("others", [1, 300])
def test_what_too_few_queries_show_is_not_recommended_however_many_candidates_there_are(others):
    best, half, close = np.ones(40), hits(0.5)[180:220], np.repeat([0.0, 1.0], [1, 39])
    cheap = [(f"i{number}", "search", 10, 1, half, 10, 5) for number in range(others)]
    rows = [("best", "search", 10, 10, best, 900, 5), ("close", "search", 10, 5, close, 500, 5)]

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
