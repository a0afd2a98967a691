"""The results as files, and the choice written into the configuration."""

import json

import polars as pl
import pytest

from pegboard.errors import ConfigurationError
from pegboard.retrieval.strategies import named_strategy
from pegboard.retrieval.strategy import Strategy
from tasks.settings.configuration import load_configuration
from tasks.sweep.report import report_sweep, write_choice
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


def test_a_choice_is_written_and_the_rest_of_the_file_stays(bench):
    text = bench.config.read_text("utf-8")
    bench.config.write_text(
        f"# Ours.\n\n{text}\n[graph]  # between tools\ninfer = false\n", "utf-8"
    )
    design, _ = bench.measure(**CELL)

    summary = report_sweep(design, write=True)

    assert summary["written"] == {
        "default_index": {"before": "whole", "now": "names"},
        "find.strategy": {"before": None, "now": "search"},
    }
    after = bench.config.read_text("utf-8")
    assert after.startswith('default_index = "names"\n\n# Ours.\n\n')
    for line in ('name = "whole"  # every part', "[graph]  # between tools"):
        assert line in after
    configuration = load_configuration(bench.config)
    assert (configuration.default, configuration.find.strategy) == ("names", "search")
    assert configuration.catalogs
    assert report_sweep(bench.design(**CELL), write=True)["written"] == {}


def test_a_custom_strategy_is_written_and_an_unknown_index_is_not(bench):
    find = '\n[find]\nstrategy = "search"  # for now\n'
    bench.config.write_text(bench.config.read_text("utf-8") + find, "utf-8")
    own = Strategy.from_dict({"name": "mine", "transforms": [{"part": "clauses"}], "depth": 20})

    changes = write_choice(load_configuration(bench.config), "whole", own)

    assert list(changes) == ["find.strategy"]
    assert load_configuration(bench.config).find.strategy == own.to_dict()
    assert write_choice(load_configuration(bench.config), "whole", own) == {}
    before = bench.config.read_bytes()
    reason = "has no index 'gone', which the sweep chose; it has whole, names"
    with pytest.raises(ConfigurationError, match=reason):
        write_choice(load_configuration(bench.config), "gone", named_strategy("search"))
    assert bench.config.read_bytes() == before


def test_without_a_candidate_within_the_limits_nothing_is_written(bench):
    before = bench.config.read_bytes()
    design, _ = bench.measure(**CELL, max_tokens=0.1)

    summary = report_sweep(design, write=True)

    assert (summary["written"], summary["choice"]["best"]) == (None, None)
    assert "None of the 3 candidates is within the limits" in summary["says"][0]
    assert bench.config.read_bytes() == before


def test_a_strategy_that_was_measured_without_its_llm_has_a_warning(bench):
    design, _ = bench.measure(strategies=["step-back"], indexes=["names"])

    assert report_sweep(design)["warnings"] == [
        "Strategy step-back was measured without the LLM that step-back-prompting would use: none "
        "was named, or it did not answer. Name one with --llm."
    ]
