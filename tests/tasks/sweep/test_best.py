"""The best under limits, what is not told apart from it, and what size does."""

import numpy as np
import polars as pl
import pytest

from pegboard.evaluation.intervals import interval
from tasks.settings.sweep import SweepSettings
from tasks.sweep.best import choose, falls
from tasks.sweep.results import Results, of_all_seeds

QUERIES = 400


def results(*cells):
    """Results of cells: index, strategy, tools, k, the values, tokens and milliseconds."""
    rows, values = [], []
    for index, strategy, tools, k, found, tokens, ms in cells:
        named = {
            "index": index,
            "strategy": strategy,
            "tools": tools,
            "seed": 0,
            "k": k,
            "measure": "Recall",
        }
        rows.append(
            named
            | interval(found).to_dict()
            | {"tokens": float(tokens), "ms_p50": ms / 2, "ms_p95": float(ms)}
        )
        values += [
            named | {"place": place, "value": float(value)} for place, value in enumerate(found)
        ]
    return Results(pl.DataFrame(rows), pl.DataFrame(values))


def hits(share, differing=0):
    """1 for so many of the queries; `differing` of them moved elsewhere, so that the mean is the
    same.
    """
    found = np.zeros(QUERIES)
    found[: int(share * QUERIES)] = 1
    return np.roll(found, differing)


FOUND = results(
    ("a", "search", 1000, 1, hits(0.5), 100, 5),
    ("a", "search", 1000, 5, hits(0.8), 500, 5),
    ("a", "search", 1000, 10, hits(0.81), 1000, 5),
    ("a", "clauses", 1000, 5, hits(0.9), 510, 40),
    ("a", "clauses", 1000, 10, hits(0.905), 1020, 40),
    ("a", "search", 100, 5, hits(0.99), 500, 5),
)


def test_the_best_is_named_and_the_cheapest_that_is_not_worse_recommended():
    best = choose(FOUND, SweepSettings())

    assert (best.measure, best.tools, best.candidates, best.allowed) == ("Recall", 1000, 5, 5)
    assert (best.best.strategy, best.best.k, best.best.value) == ("clauses", 10, 0.905)
    assert (best.recommended.strategy, best.recommended.k) == ("clauses", 5)
    assert best.recommended.against["value"] == pytest.approx(-0.005)
    assert best.recommended.against["p_holm"] > 0.05
    assert [(one.strategy, one.k) for one in best.near] == [("clauses", 5)]
    assert best.best.low < best.best.value < best.best.high


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_tokens": 505}, ("search", 5)),
        ({"max_ms": 10}, ("search", 10)),
        ({"max_ms": 10, "max_tokens": 400}, ("search", 1)),
    ],
)
def test_limits_decide_which_candidates_there_are(limits, expected):
    best = choose(FOUND, SweepSettings(**limits))

    assert (best.best.strategy, best.best.k) == expected


def test_under_limits_that_nothing_keeps_within_there_is_no_best():
    best = choose(FOUND, SweepSettings(max_tokens=10))

    assert (best.best, best.recommended, best.allowed, best.candidates) == (None, None, 0, 5)


def test_of_equals_the_cheapest_is_the_best():
    equal = results(
        ("b", "search", 10, 5, hits(0.7), 500, 5), ("a", "search", 10, 5, hits(0.7), 400, 5)
    )

    best = choose(equal, SweepSettings())

    assert best.best == best.recommended
    assert (best.best.index, [one.index for one in best.near]) == ("a", ["b"])


def test_a_plain_difference_is_one_however_many_candidates_there_are():
    worse = np.repeat([1.0, 0.0], [12, 48])
    many = [
        (f"i{number}", "search", 10, 1, worse, 10, 5) for number in range(300)
    ]  # 300 * 2 / 10,000 is not below .05

    best = choose(results(("best", "search", 10, 5, np.ones(60), 500, 5), *many), SweepSettings())

    assert best.allowed == 301
    assert best.near == ()
    assert best.recommended.index == "best"


def test_one_query_more_tells_two_candidates_not_apart():
    pair = results(
        ("a", "search", 10, 5, hits(0.7025), 500, 5), ("a", "clauses", 10, 5, hits(0.7), 400, 5)
    )

    best = choose(pair, SweepSettings())

    assert (best.best.strategy, best.recommended.strategy) == ("search", "clauses")
    assert best.recommended.against["p_holm"] == 1.0


def test_what_size_does_is_measured_over_the_same_queries():
    few = results(("a", "search", 100, 5, np.ones(40), 500, 5))
    found = Results(
        pl.concat([FOUND.rows, few.rows]), pl.concat([FOUND.values.filter(tools=1000), few.values])
    )

    fall = next(one for one in falls(found, SweepSettings(), 5) if one.strategy == "search")

    assert (fall.smallest, fall.largest, fall.n) == (100, 1000, 40)
    assert fall.value == 0.0  # the first forty are found in both


def test_samples_of_several_seeds_count_each_query_once(bench):
    from tasks.sweep.results import collect

    laid = bench.design(strategies=["search"], indexes=["names"], tools="10,all", samples=3)
    bench.measure(laid)
    found = collect(laid)

    together = found.rows.filter(pl.col("seed").is_null() & (pl.col("k") == 1))
    assert together.get_column("tools").to_list() == [10]
    values = (
        found.values.filter(tools=10, k=1)
        .group_by("place")
        .agg(pl.col("value").mean())
        .get_column("value")
    )
    assert (
        together["n"][0]
        == len(values)
        > max(len(one.queries) for one in laid.samples if one.size == 10)
    )
    assert together["value"][0] == pytest.approx(values.mean())
    assert of_all_seeds(found).height == 2 * 3
