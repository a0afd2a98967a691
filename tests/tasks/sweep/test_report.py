"""The results as files, and what is said of the choice."""

import json

import polars as pl
import pytest

from tasks.sweep.report import report_sweep
from tasks.sweep.results import COLUMNS

CELL = {"strategies": ["search"], "indexes": ["names"]}


def test_a_sweep_writes_rows_values_and_a_summary(bench):
    own = {"name": "words", "modes": ["text"]}
    design, _ = bench.measure(tools="10,all", strategies=["clauses", own])

    summary = report_sweep(design)

    folder = design.sweep.out
    rows = pl.read_parquet(folder / "sweep.parquet")
    assert tuple(rows.columns) == COLUMNS
    assert rows.height == 2 * 2 * 2 * 3
    assert rows.filter(index="names").get_column("parts").unique().to_list() == ["name"]
    values = pl.read_parquet(folder / "values.parquet")
    point = {"index": "whole", "strategy": "clauses", "tools": 40, "k": 3}
    mean = values.filter(**point)["value"].mean()
    assert rows.filter(**point)["value"][0] == pytest.approx(mean)
    stored = json.loads((folder / "sweep.json").read_text("utf-8"))
    assert {name: stored[name] for name in summary} == summary
    assert summary["says"][0].startswith("Best of 12 candidates among 40 tools: index whole")
    report_sweep(design)  # may be repeated


def test_without_a_candidate_within_the_limits_nothing_is_recommended(bench):
    design, _ = bench.measure(**CELL, max_tokens=0.1)

    summary = report_sweep(design)

    assert (summary["choice"]["recommended"], summary["choice"]["best"]) == (None, None)
    assert "None of the 3 candidates is within the limits" in summary["says"][0]
