"""The real catalogs: labels that name listed tools, and means that weigh every catalog alike."""

import json

import numpy as np
import pytest

from benchmarks.papers.loading import load_benchmark
from benchmarks.papers.measuring import default_measures, measure_runs, result_of, runs_of
from benchmarks.papers.strategies import chosen_strategies
from benchmarks.papers.tables import printed, tables_of
from benchmarks.real import catalogs
from benchmarks.strata import mean_difference, mean_interval
from pegboard.errors import ConfigurationError

TOOLS = {"farm": {"hens": ("feed", "count"), "barn": ("open_door",)}, "sea": {"boat": ("sail",)}}
REQUESTS = {
    "farm": [
        ("feed the hens", ["hens/feed"], "imperative"),
        ("how many hens are there? count them", ["count"], "question"),
        ("open the door, then feed", ["open_door", ["feed", "count"]], "two"),
    ],
    "sea": [("sail", ["boat/sail"], "imperative")],
}


@pytest.fixture
def real(tmp_path, monkeypatch):
    """Two catalogs of MCP servers with their requests; returns the folder of the catalogs."""
    monkeypatch.setattr(catalogs, "REQUESTS", tmp_path / "requests")
    known = [catalogs.RealCatalog(name, file="tools.mcp.json") for name in TOOLS]
    monkeypatch.setattr(catalogs, "CATALOGS", known)
    monkeypatch.setattr(
        catalogs.RealCatalog,
        "tables",
        lambda self, folder: {self.name: {"type": "mcp-dump", "path": str(self.path(folder))}},
    )
    (tmp_path / "real").mkdir()
    (tmp_path / "requests").mkdir()
    for name, servers in TOOLS.items():
        listed = {
            server: {"tools": [{"name": tool, "description": f"To {tool}."} for tool in tools]}
            for server, tools in servers.items()
        }
        (tmp_path / "real" / f"{name}.json").write_text(json.dumps(listed), "utf-8")
        rows = [dict(zip(("query", "tools", "kind"), row, strict=True)) for row in REQUESTS[name]]
        requests = tmp_path / "requests"
        (requests / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
        (requests / f"{name}.none.jsonl").write_text('{"query": "what is pi?"}\n', "utf-8")
    return tmp_path


def test_every_request_belongs_to_its_catalog_and_to_its_kind(real):
    found = load_benchmark("real", real)

    assert (found.tools, found.queries) == (4, 4)
    assert found.means == {
        "mean": ("farm", "sea"),
        "mean-imperative": ("farm-imperative", "sea-imperative"),
        "mean-question": ("farm-question",),
        "mean-two": ("farm-two",),
    }
    assert catalogs.unanswerable("farm") == ["what is pi?"]


def test_a_label_that_no_listed_tool_has_is_an_error(real):
    file = real / "requests" / "sea.jsonl"
    file.write_text('{"query": "dive", "tools": [["sail", "boat/dive"]]}\n', "utf-8")

    with pytest.raises(ConfigurationError, match=r"1 label .* sea: boat/dive \(dive\)"):
        load_benchmark("real", real)


def test_a_catalog_that_was_not_fetched_is_left_out_and_none_is_an_error(real):
    (real / "real" / "farm.json").unlink()

    assert load_benchmark("real", real).problems == ("farm is left out: it was not fetched",)

    (real / "real" / "sea.json").unlink()
    with pytest.raises(ConfigurationError, match=r"holds no real catalog. Fetch them"):
        load_benchmark("real", real)


def test_means_weigh_catalogs_alike_and_tables_show_kinds_and_catalogs(real, boards_of):
    benchmark = load_benchmark("real", real)
    measures = default_measures("real")
    runs = runs_of(
        benchmark, boards_of(benchmark), chosen_strategies(["default", "hybrid", "vector"])
    )
    measured = measure_runs(runs, measures)
    result = result_of(benchmark, measured, measures, boards={}, seconds={})

    value = {
        (row["task"], row["strategy"]): row["value"]
        for row in result["rows"]
        if row["measure"] == "Recall@1"
    }
    assert value["mean", "default"] == pytest.approx(
        (value["farm", "default"] + value["sea", "default"]) / 2
    )
    assert value["mean-question", "default"] == value["farm-question", "default"]
    compared = {row["strategy"] for row in result["differences"] if row["task"] == "mean"}
    assert compared == {"default", "vector"}
    overall, parts = tables_of(result)
    assert overall.title == "real, mean: 4 queries, 4 tools"
    counts = {"mean": "4", "mean-imperative": "2", "mean-question": "1", "mean-two": "1"}
    assert dict(line[:2] for line in parts.lines) == {**counts, "farm": "3", "sea": "1"}
    assert "by kind of request and by catalog: default" in printed(result)


def test_the_bootstrap_draws_within_each_set_and_the_test_swaps_queries():
    half = np.array([0.0, 1.0] * 20)
    none = np.zeros(5)

    mean = mean_interval([half, none])

    assert (mean.value, mean.n) == (0.25, 45)
    assert 0.1 < mean.low < 0.25 < mean.high < 0.4
    assert mean_interval([np.ones(3), none]).low == 0.5  # every draw of a constant set is equal
    gap = mean_difference([half, none], [np.zeros(40), none])
    assert (gap.value, gap.n) == (0.25, 45)
    assert gap.p < 0.01 < mean_difference([half, none], [half[::-1], none]).p
