"""The best candidate within limits, those that are not significantly worse, and the size effect."""

import numpy as np
import polars as pl
import pytest

from pegboard.evaluation.intervals import interval
from tasks.settings.sweep import SweepSettings
from tasks.sweep.choice import choose, size_effects
from tasks.sweep.results import Results, collect, over_seeds

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
    values = np.zeros(QUERIES)
    values[: int(share * QUERIES)] = 1
    return values


RESULTS = results(
    ("a", "search", 1000, 1, hits(0.5), 100, 5),
    ("a", "search", 1000, 5, hits(0.8), 500, 5),
    ("a", "search", 1000, 10, hits(0.81), 1000, 5),
    ("a", "clauses", 1000, 5, hits(0.9), 510, 40),
    ("a", "clauses", 1000, 10, hits(0.905), 1020, 40),
    ("a", "search", 100, 5, hits(0.99), 500, 5),
)


def test_the_cheapest_that_is_not_significantly_worse_is_recommended():
    choice = choose(RESULTS, SweepSettings())

    assert (choice.measure, choice.tools) == ("Recall", 1000)
    assert (choice.candidates, choice.allowed) == (5, 5)
    assert (choice.best.strategy, choice.best.k, choice.best.value) == ("clauses", 10, 0.905)
    assert (choice.recommended.strategy, choice.recommended.k) == ("clauses", 5)
    assert choice.recommended.against["value"] == pytest.approx(-0.005)
    assert choice.recommended.against["p_holm"] > 0.05
    assert [(one.strategy, one.k) for one in choice.near] == [("clauses", 5)]
    assert choice.best.low < choice.best.value < choice.best.high


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_tokens": 505}, ("search", 5)),
        ({"max_ms": 10}, ("search", 10)),
        ({"max_ms": 10, "max_tokens": 400}, ("search", 1)),
    ],
)
def test_limits_decide_which_candidates_there_are(limits, expected):
    best = choose(RESULTS, SweepSettings(**limits)).best

    assert (best.strategy, best.k) == expected


def test_without_a_candidate_within_the_limits_there_is_no_best():
    choice = choose(RESULTS, SweepSettings(max_tokens=10))

    assert (choice.best, choice.recommended) == (None, None)
    assert (choice.allowed, choice.candidates) == (0, 5)


def test_of_equals_the_cheapest_is_the_best():
    equal = results(
        ("b", "search", 10, 5, hits(0.7), 500, 5), ("a", "search", 10, 5, hits(0.7), 400, 5)
    )

    choice = choose(equal, SweepSettings())

    assert choice.best == choice.recommended
    assert (choice.best.index, [one.index for one in choice.near]) == ("a", ["b"])


def test_a_large_difference_is_significant_however_many_candidates_there_are():
    worse = np.repeat([1.0, 0.0], [12, 48])
    # 300 * 2 / 10,000 is not below .05
    many = [(f"i{number}", "search", 10, 1, worse, 10, 5) for number in range(300)]

    choice = choose(results(("best", "search", 10, 5, np.ones(60), 500, 5), *many), SweepSettings())

    assert choice.allowed == 301
    assert choice.near == ()
    assert choice.recommended.index == "best"


def test_a_difference_in_one_query_is_not_significant():
    pair = results(
        ("a", "search", 10, 5, hits(0.7025), 500, 5), ("a", "clauses", 10, 5, hits(0.7), 400, 5)
    )

    choice = choose(pair, SweepSettings())

    assert (choice.best.strategy, choice.recommended.strategy) == ("search", "clauses")
    assert choice.recommended.against["p_holm"] == 1.0


def test_the_effect_of_size_is_measured_with_the_same_queries():
    few = results(("a", "search", 100, 5, np.ones(40), 500, 5))
    values = pl.concat([RESULTS.values.filter(tools=1000), few.values])
    both = Results(pl.concat([RESULTS.rows, few.rows]), values)

    effects = {effect.strategy: effect for effect in size_effects(both, SweepSettings(), 5)}

    effect = effects["search"]
    assert (effect.smallest, effect.largest, effect.n) == (100, 1000, 40)
    assert effect.value == 0.0  # the first forty are found in both


def test_samples_of_several_seeds_count_each_query_once(bench):
    design, _ = bench.measure(strategies=["search"], indexes=["names"], tools="10,all", samples=3)
    both = collect(design)

    averaged = both.rows.filter(pl.col("seed").is_null() & (pl.col("k") == 1))
    assert averaged.get_column("tools").to_list() == [10]
    means = both.values.filter(tools=10, k=1).group_by("place").agg(pl.col("value").mean())
    most = max(len(sample.queries) for sample in design.samples if sample.size == 10)
    assert averaged["n"][0] == len(means) > most
    assert averaged["value"][0] == pytest.approx(means["value"].mean())
    assert over_seeds(both).height == 2 * 3
